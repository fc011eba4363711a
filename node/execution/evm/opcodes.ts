/**
 * Handlers and gas functions of single opcodes, in place of the library's where those are far
 * dearer in time than in gas: padding that spreads arrays byte by byte, hashing the code at every
 * bad jump, waiting for what is known. Same results; a test compares them on random programs.
 */
import { type EVM, EVMError } from "@ethereumjs/evm";
import { createAddressFromBigInt } from "@ethereumjs/util";
import { bytesToBigint } from "../../../chain/hex.js";
import { jumpTable, type RunState } from "./loop.js";

const { INVALID_JUMP } = EVMError.errorMessages;
const WORD_BYTES = 32;
const ADDRESS_MASK = (1n << 160n) - 1n;
const BYTE_MASK = 0xffn;
const PUSH1 = 0x60;
const PUSH32 = 0x7f;
/** Longest push that a number holds exactly. */
const MAX_NUMBER_BYTES = 6;
/** Yellow Paper, appendix G: a word of memory, and the divisor of its quadratic part. */
const MEMORY_WORD_GAS = 3n;
const MEMORY_QUADRATIC_DIVISOR = 512n;

type Handler = (state: RunState) => void | Promise<void>;

const HANDLERS: readonly (readonly [number, Handler])[] = [
  [0x35, callDataLoad],
  [0x37, callDataCopy],
  [0x39, codeCopy],
  [0x3c, extCodeCopy],
  [0x51, mload],
  [0x52, mstore],
  [0x53, mstore8],
  [0x56, jump],
  [0x57, jumpIf],
];

/** Bytes of memory that each opcode touches at the offset on top of the stack. */
const MEMORY_OPCODES: readonly (readonly [number, bigint])[] = [
  [0x51, 32n],
  [0x52, 32n],
  [0x53, 1n],
];

/** Puts the opcodes into an EVM. */
export function installOpcodes(evm: EVM): void {
  const map = evm["_opcodeMap"];
  for (const [opcode, handler] of HANDLERS) entryOf(map, opcode).opHandler = handler;
  for (let opcode = PUSH1; opcode <= PUSH32; opcode++) {
    entryOf(map, opcode).opHandler = pushHandler(opcode - PUSH1 + 1);
  }
  for (const [opcode, length] of MEMORY_OPCODES) {
    entryOf(map, opcode).gasHandler = (state, gas) =>
      gas + memoryGas(state, state.stack.peek(1)[0] ?? 0n, length);
  }
}

function entryOf(map: EVM["_opcodeMap"], opcode: number): EVM["_opcodeMap"][number] {
  const entry = map[opcode];
  if (entry === undefined) throw new TypeError(`the EVM has no opcode ${opcode}`);
  return entry;
}

/** Gas of growing the memory so that the range lies in it. */
function memoryGas(state: RunState, offset: bigint, length: bigint): bigint {
  const words = (offset + length + 31n) >> 5n;
  if (words <= state.memoryWordCount) return 0n;
  const cost = words * MEMORY_WORD_GAS + (words * words) / MEMORY_QUADRATIC_DIVISOR;
  const grown = cost - state.highestMemCost;
  state.highestMemCost = cost;
  state.memoryWordCount = words;
  return grown;
}

function pushHandler(length: number): Handler {
  return length <= MAX_NUMBER_BYTES
    ? (state) => {
        const { code } = state;
        let value = 0;
        for (let index = 0; index < length; index++) {
          value = value * 256 + (code[state.programCounter + index] ?? 0);
        }
        state.programCounter += length;
        state.stack.push(BigInt(value));
      }
    : (state) => {
        const start = state.programCounter;
        state.programCounter += length;
        state.stack.push(bigintAt(state.code, start, length));
      };
}

/** Big-endian number; bytes behind the end are zero. */
function bigintAt(bytes: Uint8Array, start: number, length: number): bigint {
  const found = bytes.subarray(start, start + length);
  return bytesToBigint(found) << BigInt(8 * (length - found.length));
}

function callDataLoad(state: RunState): void {
  const { callData } = state.env;
  const position = state.stack.pop();
  const isInside = position < BigInt(callData.length);
  state.stack.push(isInside ? bigintAt(callData, Number(position), WORD_BYTES) : 0n);
}

function callDataCopy(state: RunState): void {
  const [to = 0n, from = 0n, length = 0n] = state.stack.popN(3);
  copyToMemory(state, to, state.env.callData, from, length);
}

function codeCopy(state: RunState): void {
  const [to = 0n, from = 0n, length = 0n] = state.stack.popN(3);
  copyToMemory(state, to, state.env.code, from, length);
}

async function extCodeCopy(state: RunState): Promise<void> {
  const [account = 0n, to = 0n, from = 0n, length = 0n] = state.stack.popN(4);
  if (length === 0n) return;
  const address = createAddressFromBigInt(account & ADDRESS_MASK);
  copyToMemory(state, to, await state.stateManager.getCode(address), from, length);
}

/** Copies a range into memory, which its gas function has paid for; zeros behind the end. */
function copyToMemory(
  { memory }: RunState,
  to: bigint,
  source: Uint8Array,
  from: bigint,
  length: bigint,
): void {
  if (length === 0n) return;
  const start = Number(to);
  const size = Number(length);
  memory.extend(start, size);
  const begin = from < BigInt(source.length) ? Number(from) : source.length;
  const found = source.subarray(begin, begin + size);
  const { _store: store } = memory;
  store.set(found, start);
  store.fill(0, start + found.length, start + size);
}

function mload(state: RunState): void {
  const offset = Number(state.stack.pop());
  state.stack.push(bytesToBigint(state.memory.read(offset, WORD_BYTES, true)));
}

function mstore(state: RunState): void {
  const [offset = 0n, value = 0n] = state.stack.popN(2);
  const start = Number(offset);
  const { memory } = state;
  memory.extend(start, WORD_BYTES);
  const { _store: store } = memory;
  if (value <= BYTE_MASK) {
    store.fill(0, start, start + WORD_BYTES);
    store[start + WORD_BYTES - 1] = Number(value);
    return;
  }
  const view = Buffer.from(store.buffer, store.byteOffset + start, WORD_BYTES);
  view.write(value.toString(16).padStart(2 * WORD_BYTES, "0"), "hex");
}

function mstore8(state: RunState): void {
  const [offset = 0n, value = 0n] = state.stack.popN(2);
  const start = Number(offset);
  const { memory } = state;
  memory.extend(start, 1);
  const { _store: store } = memory;
  store[start] = Number(value & BYTE_MASK);
}

function jump(state: RunState): void {
  jumpTo(state, state.stack.pop());
}

function jumpIf(state: RunState): void {
  const [target = 0n, condition = 0n] = state.stack.popN(2);
  if (condition !== 0n) jumpTo(state, target);
}

function jumpTo(state: RunState, target: bigint): void {
  const { code } = state;
  if (target >= BigInt(code.length)) throw new EVMError(INVALID_JUMP);
  const destination = Number(target);
  if (jumpTable(code)[destination] !== 1) throw new EVMError(INVALID_JUMP);
  state.programCounter = destination;
}
