/**
 * Code made ready to run, block by block as it is come to. Instructions between two
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

/**
 * Instructions that are kept ready, with a place for every byte of their codes counted along; some
 * 100 bytes each. Beyond it all are forgotten and made again where they run: whoever fills this
 * pays for each of them by running it.
 */
const MAX_READY = 400_000;

/** Bytes of code whose places take as much room as one instruction. */
const BYTES_PER_READY = 12;

let known = new WeakMap<Uint8Array, Code>();
let ready = 0;

/** The code, ready to be entered; its instructions are made as they are come to. */
export function prepareCode(bytes: Uint8Array): Code {
  const found = known.get(bytes);
  if (found !== undefined) return found;
  const handlers: (Handler | undefined)[] = [];
  // Of its final size at once: growing to far places would make a slow kind of array.
  handlers.length = bytes.length;
  const code = { bytes, handlers, jumpTable: jumpTableOf(bytes) };
  remember(bytes.length / BYTES_PER_READY);
  known.set(bytes, code);
  return code;
}

function remember(count: number): void {
  ready += count;
  if (ready <= MAX_READY) return;
  known = new WeakMap();
  ready = 0;
}

function jumpTableOf(bytes: Uint8Array): Uint8Array {
  const table = new Uint8Array(bytes.length);
  for (let place = 0; place < bytes.length; place++) {
    const opcode = bytes[place] ?? STOP;
    if (opcode === JUMPDEST) table[place] = 1;
    else if (opcode >= PUSH1 && opcode <= PUSH32) place += opcode - PUSH1 + 1;
  }
  return table;
}

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
  /** Items more, or less, than at its start. */
  change: number;
}

/**
 * Makes the instructions from a place on ready, to the end of their block. A block is entered at its
 * first one alone: behind a jump, behind an end of a block, or at a JUMPDEST.
 */
export function prepareBlock({ bytes, handlers }: Code, start: number): Handler {
  const block = newBlock();
  let first: Handler | undefined;
  let count = 0;
  for (let place = start; place < bytes.length; place++) {
    const opcode = bytes[place] ?? STOP;
    if (opcode === JUMPDEST && place > start) break;
    const instruction = INSTRUCTIONS[opcode] ?? INVALID_INSTRUCTION;
    const pushed = pushedBytes(opcode);
    const handler = pushed > 0 ? pushHandler(bytes, place + 1, pushed) : instruction.run;
    if (first === undefined) first = enter(block, handler);
    else handlers[place] = handler;
    addTo(block, opcode, instruction);
    count++;
    place += pushed;
    if (instruction.endsBlock) break;
  }
  if (first === undefined) throw new RangeError("there is no code at this place");
  handlers[start] = first;
  remember(count);
  return first;
}

/** The block that begins at a place, without its handlers: for who takes it step by step. */
export function measureBlock(bytes: Uint8Array, start: number): Block {
  const block = newBlock();
  for (let place = start; place < bytes.length; place++) {
    const opcode = bytes[place] ?? STOP;
    if (opcode === JUMPDEST && place > start) break;
    const instruction = INSTRUCTIONS[opcode] ?? INVALID_INSTRUCTION;
    addTo(block, opcode, instruction);
    place += pushedBytes(opcode);
    if (instruction.endsBlock) break;
  }
  return block;
}

/** True where a block may be entered at this height of the stack, with this gas. */
export function canEnter(block: Block, height: number, gas: number): boolean {
  return height >= block.needs && height + block.grows <= MAX_STACK && block.gas <= gas;
}

/** Bytes behind the opcode that it pushes. */
export function pushedBytes(opcode: number): number {
  return opcode >= PUSH1 && opcode <= PUSH32 ? opcode - PUSH1 + 1 : 0;
}

function newBlock(): Block {
  return { gas: 0, computeNs: 0, needs: 0, grows: 0, change: 0 };
}

function addTo(block: Block, opcode: number, { gas, takes, gives }: Instruction): void {
  block.gas += gas;
  block.computeNs += opcodeNs(opcode);
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

function pushHandler(bytes: Uint8Array, start: number, length: number): Handler {
  const word = pushedWord(bytes, start, length);
  return (frame) => {
    frame.push(word);
    frame.place += length;
  };
}

/** The word that stands in the code; bytes behind its end are zero. */
export function pushedWord(bytes: Uint8Array, start: number, length: number): bigint {
  let word = 0n;
  for (let index = 0; index < length; index++) {
    word = (word << 8n) | BigInt(bytes[start + index] ?? 0);
  }
  return word;
}
