/** One message frame: its stack, memory and gas, and what it runs with. */
import type { Address } from "../../../chain/address.js";
import type { JournaledState } from "../../state/journaled-state.js";
import type { BlockContext } from "../message.js";
import { OUT_OF_COMPUTE, OUT_OF_GAS, STACK_UNDERFLOW } from "./halt.js";
import type { BlockReads } from "./block-reads.js";
import type { Message } from "./frame-message.js";
import { Memory } from "./memory.js";
import { memoryGas, wordsOf } from "./schedule.js";
import type { Substate } from "./substate.js";
import type { Watcher } from "./watcher.js";
import type { ComputeWeights } from "../../../chain/evm/compute-weights.js";
import type { Atoken } from "../../../chain/units.js";
import { wordToAddress } from "./words.js";

const NO_BYTES = new Uint8Array(0);

/** No gas pays for more memory than this; below it every sum of offsets is exact. */
const MAX_MEMORY_BYTES = 0xffff_ffff;

/** Runs one instruction; `place` of the frame is the next one already. */
export type Handler = (frame: Frame) => void;

/** Bit of a place in the jump table where a jump may land. */
export const JUMP_TARGET = 1;

/** What a block of instructions is checked for when it is entered. */
export interface Block {
  /** Gas of its instructions that is always the same. */
  gas: number;
  /** Compute units that are always the same. */
  computeNs: number;
  /** Items that must be on the stack. */
  needs: number;
  /** Items by which the stack grows at most. */
  grows: number;
}

/** What is executed. */
export interface Code {
  readonly bytes: Uint8Array;
  /** Handler by place; none yet where the code has not come to. Of no length before one is ready. */
  readonly handlers: (Handler | undefined)[];
  /** Long blocks that are not ready, by their first place; undefined before one is measured. */
  measured: Map<number, Block> | undefined;
  /** Large words that blocks push again and again without being ready, by place; undefined before one. */
  words: Map<number, bigint> | undefined;
  /** Compute units by opcode, as the blocks of its instructions are measured by. */
  readonly opcodesNs: Int32Array;
  /** JUMP_TARGET, where a jump may land. Above it: entries into a block that begins there. */
  readonly jumpTable: Uint8Array;
}

/** What is left of a transaction's compute units; below zero every frame halts. */
export interface Meter {
  leftNs: number;
}

/** What all frames of a transaction share. */
export interface Execution {
  readonly meter: Meter;
  /** Of compute units, by the chain's version. */
  readonly weights: ComputeWeights;
  readonly state: JournaledState;
  /** What the block has read by then. */
  readonly reads: BlockReads<Code>;
  readonly substate: Substate;
  readonly block: BlockContext;
  readonly chainId: bigint;
  readonly origin: Address;
  readonly gasPriceAtoken: Atoken;
  readonly watcher: Watcher | undefined;
}

/** Where the answer to a child's message goes. */
export interface Child {
  readonly message: Message;
  /** Range of memory for the child's output; a creation has none. */
  readonly outOffset: number;
  readonly outSize: number;
}

/** Mutable for speed: handlers of opcodes work on it, one frame at a time. */
export class Frame {
  /** Place of the next instruction. */
  place = 0;
  gas: number;
  readonly memory = new Memory();
  /** Output of the last child, as RETURNDATACOPY reads it. */
  returnData: Uint8Array = NO_BYTES;
  /** What RETURN or REVERT gave. */
  output: Uint8Array = NO_BYTES;
  isRunning = true;
  /** Set by a call or creation: the frame waits for it. */
  child: Child | undefined;
  private height = 0;
  private readonly stack: bigint[] = [];

  constructor(
    readonly execution: Execution,
    readonly message: Message,
    /** The account that the frame acts as. */
    readonly self: Address,
    readonly code: Code,
  ) {
    this.gas = message.gas;
  }

  /** What its compute units are counted by. */
  get weights(): ComputeWeights {
    return this.execution.weights;
  }

  /** Items on the stack. */
  get stackHeight(): number {
    return this.height;
  }

  push(word: bigint): void {
    this.stack[this.height++] = word;
  }

  /** The entry of each block of code has made sure that there is one. */
  pop(): bigint {
    const word = this.stack[--this.height];
    if (word === undefined) throw STACK_UNDERFLOW;
    return word;
  }

  popAddress(): Address {
    return wordToAddress(this.pop());
  }

  /** The item so many places below the top. */
  peek(depth: number): bigint {
    const word = this.stack[this.height - 1 - depth];
    if (word === undefined) throw STACK_UNDERFLOW;
    return word;
  }

  /** A copy of all items, the top last. */
  stackItems(): bigint[] {
    return this.stack.slice(0, this.height);
  }

  /** Swaps the top with the item so many places below it. */
  swap(depth: number): void {
    const top = this.peek(0);
    const other = this.peek(depth);
    this.stack[this.height - 1] = other;
    this.stack[this.height - 1 - depth] = top;
  }

  /** Takes gas. @throws OUT_OF_GAS */
  charge(gas: number): void {
    // Not `gas > this.gas`: a cost beyond all numbers is NaN or Infinity and must fail, too.
    if (!(gas <= this.gas)) throw OUT_OF_GAS;
    this.gas -= gas;
  }

  /** Takes compute units. @throws OUT_OF_COMPUTE */
  spend(ns: number): void {
    const { meter } = this.execution;
    meter.leftNs -= ns;
    if (meter.leftNs < 0) throw OUT_OF_COMPUTE;
  }

  /** Pays for memory up to the end of the range. @throws OUT_OF_GAS */
  reserve(offset: number, size: number): void {
    if (size === 0) return;
    const end = offset + size;
    if (!(end <= MAX_MEMORY_BYTES)) throw OUT_OF_GAS;
    const words = wordsOf(end);
    const { memory } = this;
    if (words <= memory.words) return;
    this.charge(memoryGas(words) - memoryGas(memory.words));
    this.spend(this.weights.memoryWordNs * (words - memory.words));
    memory.growTo(words);
  }

  /** Ends the frame well. */
  end(output: Uint8Array): void {
    this.output = output;
    this.isRunning = false;
  }
}
