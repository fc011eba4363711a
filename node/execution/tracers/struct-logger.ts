/** geth's default tracer: one entry for each opcode, before it runs. */
import type { ExecResult, InterpreterStep } from "@ethereumjs/evm";
import type { Address } from "../../../chain/address.js";
import {
  bigintToWord,
  bytesToBigint,
  bytesToHash32,
  bytesToHex,
  type Hex,
} from "../../../chain/hex.js";
import { frameErrorText, isRevert } from "../calls/call-evm-errors.js";
import { toAddress } from "../evm/evm-state.js";
import type { Machine } from "../evm/evm.js";
import type { JournaledState } from "../../state/journaled-state.js";
import type { TraceBudget, Tracer, TraceSummary } from "./tracer.js";

/** JSON of an entry without its lists. */
const ENTRY_BYTES = 100;
const WORD_BYTES = 32;
/** Opcodes whose cost in geth holds the gas that goes to the frame they open. */
const FORWARDING = new Set([0xf1, 0xf2, 0xf4, 0xfa]);
const OPCODE_DIFFICULTY = 0x44;
const OPCODE_SLOAD = 0x54;
const OPCODE_SSTORE = 0x55;

/** Options as in geth's logger config. */
export interface StructLoggerOptions {
  readonly enableMemory: boolean;
  readonly disableStack: boolean;
  readonly disableStorage: boolean;
  readonly enableReturnData: boolean;
}

interface Entry {
  readonly pc: number;
  readonly op: string;
  readonly gas: number;
  readonly gasCost: number;
  readonly depth: number;
  error?: string;
  readonly stack?: readonly Hex[];
  readonly returnData?: Hex;
  readonly memory?: readonly string[];
  readonly storage?: Readonly<Record<string, string>>;
  readonly refund?: number;
}

/** One frame that is being executed. */
interface OpenFrame {
  last: Entry | undefined;
  returnData: Uint8Array;
}

/** Records every step. It reads the state at once, so its reader must answer at once. */
export class StructLogger implements Tracer {
  private isActive = false;
  private entries: Entry[] = [];
  private readonly frames: OpenFrame[] = [];
  private readonly storage = new Map<Address, Record<string, string>>();

  constructor(
    machine: Machine,
    private readonly state: JournaledState,
    private readonly options: StructLoggerOptions,
    private readonly budget: TraceBudget,
  ) {
    const { events } = machine.evm;
    events.on("beforeMessage", () => {
      if (this.isActive) this.frames.push({ last: undefined, returnData: new Uint8Array(0) });
    });
    events.on("afterMessage", ({ execResult }) => {
      if (this.isActive) this.leave(execResult);
    });
    // Subscribed only while recording: the EVM builds no step where nobody listens.
    this.listen = (isWanted) => {
      if (isWanted) events.on("step", this.onStep);
      else events.off("step", this.onStep);
    };
  }

  private readonly listen: (isWanted: boolean) => void;
  private readonly onStep = (step: InterpreterStep): void => this.step(step);

  start(): void {
    this.isActive = true;
    this.entries = [];
    this.frames.length = 0;
    this.storage.clear();
    this.listen(true);
  }

  finish({ gasUsed, error, isRevert: reverted, returnData }: TraceSummary): unknown {
    this.isActive = false;
    this.listen(false);
    const isShown = error === undefined || reverted;
    const result = {
      gas: Number(gasUsed),
      failed: error !== undefined,
      returnValue: isShown ? bytesToHex(returnData) : "0x",
      structLogs: this.entries,
    };
    this.entries = [];
    return result;
  }

  private step(step: InterpreterStep): void {
    const frame = this.frames.at(-1);
    if (frame === undefined) return;
    const { opcode, stack, memory } = step;
    const cost = opcode.dynamicFee ?? BigInt(opcode.fee);
    const { disableStack, enableMemory } = this.options;
    const storage = this.storageAt(step);
    const { returnData } = frame;
    const isReturnShown = this.options.enableReturnData && returnData.length > 0;
    const entry: Entry = {
      pc: step.pc,
      op: opcode.code === OPCODE_DIFFICULTY ? "DIFFICULTY" : opcode.name,
      gas: Number(step.gasLeft),
      gasCost: Number(cost + forwardedGas(step, cost)),
      depth: step.depth + 1,
      ...(disableStack ? {} : { stack: stack.map((item): Hex => `0x${item.toString(16)}`) }),
      ...(isReturnShown ? { returnData: bytesToHex(returnData) } : {}),
      ...(enableMemory && memory.length > 0 ? { memory: memoryWords(memory) } : {}),
      ...(storage === undefined ? {} : { storage }),
      ...(step.gasRefund > 0n ? { refund: Number(step.gasRefund) } : {}),
    };
    this.budget.take(sizeOf(entry));
    this.entries.push(entry);
    frame.last = entry;
  }

  /** Slots of the contract that were seen so far; only at SLOAD and SSTORE, as in geth. */
  private storageAt({ opcode, stack, address }: InterpreterStep): Entry["storage"] {
    if (this.options.disableStorage) return undefined;
    const isStore = opcode.code === OPCODE_SSTORE;
    if (opcode.code !== OPCODE_SLOAD && !isStore) return undefined;
    const key = stack.at(-1);
    const stored = isStore ? stack.at(-2) : 0n;
    if (key === undefined || stored === undefined) return undefined;
    const owner = toAddress(address);
    const value = isStore ? stored : this.slotNow(owner, key);
    const seen = { ...this.storage.get(owner), [word(key)]: word(value) };
    this.storage.set(owner, seen);
    return seen;
  }

  private slotNow(owner: Address, key: bigint): bigint {
    const value = this.state.storage(owner, bytesToHash32(bigintToWord(key)));
    if (value instanceof Promise) throw new TypeError("the state reader is not immediate");
    return bytesToBigint(value);
  }

  private leave(result: ExecResult): void {
    const frame = this.frames.pop();
    const error = frameErrorText(result);
    const reverted = isRevert(result);
    if (error !== undefined && !reverted && frame?.last !== undefined) frame.last.error = error;
    const parent = this.frames.at(-1);
    if (parent === undefined) return;
    const isReturned = error === undefined || reverted;
    parent.returnData = isReturned ? result.returnValue.slice() : new Uint8Array(0);
  }
}

/** Gas that the opcode hands to the frame it opens: what is asked, at most 63/64 (EIP-150). */
function forwardedGas({ opcode, stack, gasLeft }: InterpreterStep, cost: bigint): bigint {
  const asked = stack.at(-1);
  if (!FORWARDING.has(opcode.code) || asked === undefined || gasLeft < cost) return 0n;
  const left = gasLeft - cost;
  const most = left - left / 64n;
  return asked < most ? asked : most;
}

function memoryWords(memory: Uint8Array): string[] {
  const hex = bytesToHex(memory).slice(2);
  return Array.from({ length: memory.length / WORD_BYTES }, (_, index) =>
    hex.slice(2 * WORD_BYTES * index, 2 * WORD_BYTES * (index + 1)),
  );
}

function word(value: bigint): string {
  return value.toString(16).padStart(2 * WORD_BYTES, "0");
}

function sizeOf({ stack, memory, storage, returnData }: Entry): number {
  const stackBytes = stack?.reduce((sum, item) => sum + item.length + 3, 0) ?? 0;
  const storageBytes = storage === undefined ? 0 : Object.keys(storage).length * 135;
  return (
    ENTRY_BYTES + stackBytes + 67 * (memory?.length ?? 0) + storageBytes + (returnData?.length ?? 0)
  );
}
