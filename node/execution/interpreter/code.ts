/**
 * Code made ready to run, block by block as it is come to. Instructions between two
 * places where control or gas can be seen form a block; its gas and its needs of the stack are
 * checked in one go when it is entered. That tells nothing a frame could see: within a block
 * nothing but a failure can happen, and every failure costs the frame all its gas.
 */
import { type Code, type Frame, type Handler, JUMP_TARGET } from "./frame.js";
import { OUT_OF_GAS, STACK_OVERFLOW, STACK_UNDERFLOW } from "./halt.js";
import { INVALID_INSTRUCTION, type Instruction, INSTRUCTIONS } from "./opcodes/instructions.js";
import { wordFrom } from "./words.js";

const MAX_STACK = 1_024;
const STOP = 0x00;
const JUMPDEST = 0x5b;
const PUSH1 = 0x60;
const PUSH32 = 0x7f;

/**
 * Instructions that are kept ready, with a place for every byte of their codes counted along; some
 * 100 bytes each. Beyond it none are made ready any more, and blocks run from their bytes.
 */
const MAX_READY = 400_000;

/**
 * Making an instruction ready takes as long as running it ten times from its bytes. All are
 * forgotten only after so many have run like this: who goes round more code than is kept cannot
 * have it made ready again and again.
 */
const RUNS_BEFORE_FORGETTING = 50 * MAX_READY;

/** Entries into a block that make it worth while; those before are counted beside the jump table. */
const ENTRIES_BEFORE_READY = 2;
const ENTRY = 2;

/** Bytes of code whose places take as much room as one instruction. */
const BYTES_PER_READY = 12;

/** Of codes for which there is no room; nothing is ever put into it. */
const NONE: (Handler | undefined)[] = [];

/** Of the block that runs from its bytes. */
const scratch = newBlock();

let known = new WeakMap<Uint8Array, Code>();
let ready = 0;
let runsFromBytes = 0;

/** What blocks are measured by, by opcode: in arrays, because much code is only run once. */
const STEP_BYTES = table((opcode) => 1 + pushedBytes(opcode));
const GAS = table((opcode) => instructionOf(opcode).gas);
const TAKES = table((opcode) => instructionOf(opcode).takes);
const CHANGE = table((opcode) => instructionOf(opcode).gives - instructionOf(opcode).takes);
const ENDS = table((opcode) => (instructionOf(opcode).endsBlock ? 1 : 0));

function table(valueOf: (opcode: number) => number): Int32Array {
  return Int32Array.from({ length: 256 }, (_, opcode) => valueOf(opcode));
}

function instructionOf(opcode: number): Instruction {
  return INSTRUCTIONS[opcode] ?? INVALID_INSTRUCTION;
}

/**
 * The code, ready to be entered; its instructions are made as they are come to.
 * @param opcodesNs compute units by opcode: one table for all codes of a chain
 */
export function prepareCode(bytes: Uint8Array, opcodesNs: Int32Array): Code {
  const found = known.get(bytes);
  if (found?.opcodesNs === opcodesNs) return found;
  const jumpTable = jumpTableOf(bytes);
  const room = bytes.length / BYTES_PER_READY;
  if (ready + room > MAX_READY) return { bytes, opcodesNs, handlers: NONE, jumpTable };
  const handlers: (Handler | undefined)[] = [];
  // Of its final size at once: growing to far places would make a slow kind of array.
  handlers.length = bytes.length;
  const code = { bytes, opcodesNs, handlers, jumpTable };
  ready += room;
  known.set(bytes, code);
  return code;
}

/** Makes room for what runs now, if it is needed. */
function forget(): void {
  runsFromBytes = 0;
  if (ready < MAX_READY / 2) return;
  known = new WeakMap();
  ready = 0;
}

/**
 * Runs the block that begins at a place which has no handler yet. Often it runs once: only one that
 * is come to again is made ready, while there is room.
 */
export function enterBlock(frame: Frame, start: number): void {
  const { code } = frame;
  const { jumpTable, handlers } = code;
  const marks = jumpTable[start] ?? 0;
  if (marks < ENTRY * ENTRIES_BEFORE_READY) jumpTable[start] = marks + ENTRY;
  else if (ready <= MAX_READY && handlers !== NONE) {
    prepareBlock(code, start)(frame);
    return;
  }
  if (runsFromBytes > RUNS_BEFORE_FORGETTING) forget();
  runFromBytes(frame, start);
}

/** Runs blocks one behind the other, up to an instruction that leaves the line. */
function runFromBytes(frame: Frame, start: number): void {
  const { code } = frame;
  const { bytes, handlers } = code;
  let place = start;
  do {
    measure(scratch, code, place);
    pay(frame, scratch);
    let opcode = bytes[place] ?? STOP;
    do {
      runsFromBytes++;
      const next = place + (STEP_BYTES[opcode] ?? 1);
      frame.place = next;
      if (opcode >= PUSH1 && opcode <= PUSH32) {
        frame.push(wordFrom(bytes, place + 1, next - place - 1));
      } else if (opcode !== JUMPDEST) instructionOf(opcode).run(frame);
      if (ENDS[opcode] === 1) return;
      place = next;
      opcode = bytes[place] ?? JUMPDEST;
    } while (opcode !== JUMPDEST);
  } while (place < bytes.length && handlers[place] === undefined);
}

function jumpTableOf(bytes: Uint8Array): Uint8Array {
  const targets = new Uint8Array(bytes.length);
  for (let place = 0; place < bytes.length; place++) {
    const opcode = bytes[place] ?? STOP;
    if (opcode === JUMPDEST) targets[place] = JUMP_TARGET;
    else if (opcode >= PUSH1 && opcode <= PUSH32) place += opcode - PUSH1 + 1;
  }
  return targets;
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
}

/**
 * Makes the instructions from a place on ready, to the end of their block. A block is entered at its
 * first one alone: behind a jump, behind an end of a block, or at a JUMPDEST.
 */
export function prepareBlock(code: Code, start: number): Handler {
  const { bytes, handlers } = code;
  const block = measureBlock(code, start);
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
    count++;
    place += pushed;
    if (instruction.endsBlock) break;
  }
  if (first === undefined) throw new RangeError("there is no code at this place");
  handlers[start] = first;
  ready += count;
  return first;
}

/** The block that begins at a place: up to an end of the line, a JUMPDEST or the end of the code. */
export function measureBlock(code: Code, start: number): Block {
  const block = newBlock();
  measure(block, code, start);
  return block;
}

function measure(block: Block, { bytes, opcodesNs }: Code, start: number): void {
  let [gas, computeNs, needs, grows, change] = [0, 0, 0, 0, 0];
  let place = start;
  let opcode = bytes[place] ?? STOP;
  do {
    gas += GAS[opcode] ?? 0;
    computeNs += opcodesNs[opcode] ?? 0;
    const needed = (TAKES[opcode] ?? 0) - change;
    if (needed > needs) needs = needed;
    change += CHANGE[opcode] ?? 0;
    if (change > grows) grows = change;
    if (ENDS[opcode] === 1) break;
    place += STEP_BYTES[opcode] ?? 1;
    opcode = bytes[place] ?? JUMPDEST;
  } while (opcode !== JUMPDEST);
  block.gas = gas;
  block.computeNs = computeNs;
  block.needs = needs;
  block.grows = grows;
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
  return { gas: 0, computeNs: 0, needs: 0, grows: 0 };
}

/** The block's checks, then its first instruction. */
function enter(block: Block, first: Handler): Handler {
  return (frame) => {
    pay(frame, block);
    first(frame);
  };
}

function pay(frame: Frame, block: Block): void {
  const height = frame.stackHeight;
  if (height < block.needs) throw STACK_UNDERFLOW;
  if (height + block.grows > MAX_STACK) throw STACK_OVERFLOW;
  if (block.gas > frame.gas) throw OUT_OF_GAS;
  frame.gas -= block.gas;
  frame.spend(block.computeNs);
}

function pushHandler(bytes: Uint8Array, start: number, length: number): Handler {
  const word = wordFrom(bytes, start, length);
  return (frame) => {
    frame.push(word);
    frame.place += length;
  };
}
