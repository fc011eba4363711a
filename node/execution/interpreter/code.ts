/**
 * Code made ready to run: analysed once, kept as long as its bytes are. Instructions between two
 * places where control or gas can be seen form a block; its gas and its needs of the stack are
 * checked in one go when it is entered. That tells nothing a frame could see: within a block
 * nothing but a failure can happen, and every failure costs the frame all its gas.
 */
import type { Code, Handler } from "./frame.js";
import { OUT_OF_GAS, STACK_OVERFLOW, STACK_UNDERFLOW } from "./halt.js";
import { opcodeNs } from "../../../chain/evm/compute-weights.js";
import { INVALID_INSTRUCTION, type Instruction, INSTRUCTIONS } from "./instructions.js";

const MAX_STACK = 1_024;
const STOP = 0x00;
const JUMPDEST = 0x5b;
const PUSH1 = 0x60;
const PUSH32 = 0x7f;

const known = new WeakMap<Uint8Array, Code>();

/** The code, ready to run. */
export function prepareCode(bytes: Uint8Array): Code {
  const found = known.get(bytes);
  if (found !== undefined) return found;
  const code = analyse(bytes);
  known.set(bytes, code);
  return code;
}

interface Block {
  /** Gas of its instructions that is always the same. */
  gas: number;
  /** Compute units that are always the same. */
  computeNs: number;
  /** Items that must be on the stack. */
  needs: number;
  /** Items by which the stack grows at most. */
  grows: number;
  /** Items more, or less, than at its start. */
  change: number;
}

function analyse(bytes: Uint8Array): Code {
  const handlers: Handler[] = [];
  const jumpTable = new Uint8Array(bytes.length);
  let block: Block | undefined;
  for (let place = 0; place < bytes.length; place++) {
    const opcode = bytes[place] ?? STOP;
    const instruction = INSTRUCTIONS[opcode] ?? INVALID_INSTRUCTION;
    const isTarget = opcode === JUMPDEST;
    if (isTarget) jumpTable[place] = 1;
    const pushed = opcode >= PUSH1 && opcode <= PUSH32 ? opcode - PUSH1 + 1 : 0;
    const handler = pushed > 0 ? pushHandler(bytes, place + 1, pushed) : instruction.run;
    if (block === undefined || isTarget) {
      block = { gas: 0, computeNs: 0, needs: 0, grows: 0, change: 0 };
      handlers[place] = enter(block, handler);
    } else {
      handlers[place] = handler;
    }
    addTo(block, instruction);
    block.computeNs += opcodeNs(opcode);
    if (instruction.endsBlock) block = undefined;
    // Bytes that are pushed are never run: nothing jumps there.
    for (let skipped = 0; skipped < pushed; skipped++) handlers[++place] = INVALID_INSTRUCTION.run;
  }
  return { bytes, handlers, jumpTable };
}

function addTo(block: Block, { gas, takes, gives }: Instruction): void {
  block.gas += gas;
  block.needs = Math.max(block.needs, takes - block.change);
  block.change += gives - takes;
  block.grows = Math.max(block.grows, block.change);
}

/** The block's checks, then its first instruction. */
function enter(block: Block, first: Handler): Handler {
  return (frame) => {
    const height = frame.stackHeight;
    if (height < block.needs) throw STACK_UNDERFLOW;
    if (height + block.grows > MAX_STACK) throw STACK_OVERFLOW;
    if (block.gas > frame.gas) throw OUT_OF_GAS;
    frame.gas -= block.gas;
    frame.spend(block.computeNs);
    first(frame);
  };
}

/** Bytes behind the end of the code are zero. */
function pushHandler(bytes: Uint8Array, start: number, length: number): Handler {
  let word = 0n;
  for (let index = 0; index < length; index++) {
    word = (word << 8n) | BigInt(bytes[start + index] ?? 0);
  }
  return (frame) => {
    frame.push(word);
    frame.place += length;
  };
}
