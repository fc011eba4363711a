/**
 * Code made ready to run, block by block as it is come to. Instructions between two
 * places where control or gas can be seen form a block; its gas and its needs of the stack are
 * checked in one go when it is entered. That tells nothing a frame could see: within a block
 * nothing but a failure can happen, and every failure costs the frame all its gas.
 */
import { type Block, type Code, type Frame, type Handler, JUMP_TARGET } from "./frame.js";
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

/**
 * What a block is measured by is kept from this size on. A frame that cannot pay for its block has paid for
 * nothing of it, however long it is.
 */
const KEPT_MEASURE_BYTES = 64;

/** A word of so many bytes takes some ten times as long to read as to look up. */
const KEPT_WORD_BYTES = 17;

/** Some 115 bytes each; beyond it words are read each time. */
const MAX_KEPT_WORDS = 200_000;

/** Used again by each block that runs from its bytes. */
const scratch = newBlock();

let known = new WeakMap<Uint8Array, Code>();
let ready = 0;
let runsFromBytes = 0;
let keptWords = 0;

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
  const nothingYet = { handlers: [], measured: undefined, words: undefined };
  const code: Code = { bytes, opcodesNs, jumpTable, ...nothingYet };
  known.set(bytes, code);
  return code;
}

/** True where one more block of the code may be made ready; most code of creations never asks. */
function hasRoom({ bytes, handlers }: Code): boolean {
  return ready + (handlers.length === 0 ? roomOf(bytes) : 0) <= MAX_READY;
}

/** Instructions in whose room the places of a code lie. */
function roomOf(bytes: Uint8Array): number {
  return bytes.length / BYTES_PER_READY;
}

/** Makes room for what runs now, if it is needed. */
function forget(): void {
  runsFromBytes = 0;
  if (ready < MAX_READY / 2) return;
  known = new WeakMap();
  ready = 0;
  keptWords = 0;
}

/**
 * Runs the block that begins at a place which has no handler yet. Often it runs once: only one that
 * is come to again is made ready, while there is room.
 */
export function enterBlock(frame: Frame, start: number): void {
  const { code } = frame;
  const { jumpTable } = code;
  const marks = jumpTable[start] ?? 0;
  const isAgain = marks >= ENTRY * ENTRIES_BEFORE_READY;
  if (!isAgain) jumpTable[start] = marks + ENTRY;
  else if (hasRoom(code)) {
    prepareBlock(code, start)(frame);
    return;
  }
  if (runsFromBytes > RUNS_BEFORE_FORGETTING) forget();
  runFromBytes(frame, start, isAgain ? keptWord : firstWord);
}

/** Reads a word that code pushes. */
type WordReader = (code: Code, start: number, size: number) => bigint;

const firstWord: WordReader = ({ bytes }, start, size) => wordFrom(bytes, start, size);

const keptWord: WordReader = (code, start, size) => {
  if (size < KEPT_WORD_BYTES) return wordFrom(code.bytes, start, size);
  const kept = code.words?.get(start);
  if (kept !== undefined) return kept;
  const word = wordFrom(code.bytes, start, size);
  if (keptWords >= MAX_KEPT_WORDS) return word;
  keptWords++;
  code.words ??= new Map();
  code.words.set(start, word);
  return word;
};

/** Runs blocks one behind the other, up to an instruction that leaves the line. */
function runFromBytes(frame: Frame, start: number, wordOf: WordReader): void {
  const { code } = frame;
  const { bytes, handlers } = code;
  let place = start;
  do {
    pay(frame, blockAt(code, place));
    let opcode = bytes[place] ?? STOP;
    do {
      runsFromBytes++;
      const next = place + (STEP_BYTES[opcode] ?? 1);
      frame.place = next;
      if (opcode >= PUSH1 && opcode <= PUSH32) {
        frame.push(wordOf(code, place + 1, next - place - 1));
      } else if (opcode !== JUMPDEST) instructionOf(opcode).run(frame);
      if (ENDS[opcode] === 1) return;
      place = next;
      opcode = bytes[place] ?? JUMPDEST;
    } while (opcode !== JUMPDEST);
  } while (place < bytes.length && handlers[place] === undefined);
}

/** What the block at a place is checked for; valid until the next is asked for. */
function blockAt(code: Code, start: number): Block {
  const kept = code.measured?.get(start);
  if (kept !== undefined) return kept;
  const end = measure(scratch, code, start);
  if (end - start < KEPT_MEASURE_BYTES) return scratch;
  code.measured ??= new Map();
  code.measured.set(start, { ...scratch });
  return scratch;
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

/**
 * Makes the instructions from a place on ready, to the end of their block. A block is entered at its
 * first one alone: behind a jump, behind an end of a block, or at a JUMPDEST.
 */
export function prepareBlock(code: Code, start: number): Handler {
  const { bytes, handlers } = code;
  if (handlers.length === 0) {
    // Of its final size at once: growing to far places would make a slow kind of array.
    handlers.length = bytes.length;
    ready += roomOf(bytes);
  }
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

/**
 * Reads no place behind the end: the same loop with such reads takes twice as long, and code that fails at
 * its entry has paid for little.
 * @returns the place at which the block ends
 */
function measure(block: Block, { bytes, opcodesNs }: Code, start: number): number {
  let [gas, computeNs, needs, grows, change] = [0, 0, 0, 0, 0];
  let place = start;
  while (place < bytes.length) {
    const opcode = bytes[place] ?? STOP;
    if (opcode === JUMPDEST && place > start) break;
    gas += GAS[opcode] ?? 0;
    computeNs += opcodesNs[opcode] ?? 0;
    const needed = (TAKES[opcode] ?? 0) - change;
    if (needed > needs) needs = needed;
    change += CHANGE[opcode] ?? 0;
    if (change > grows) grows = change;
    if (ENDS[opcode] === 1) break;
    place += STEP_BYTES[opcode] ?? 1;
  }
  block.gas = gas;
  block.computeNs = computeNs;
  block.needs = needs;
  block.grows = grows;
  return place;
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
