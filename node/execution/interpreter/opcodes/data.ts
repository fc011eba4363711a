/** Memory, call data, code and return data: what copies, loads and stores bytes; KECCAK256 and LOG. */
import { keccak256 } from "../../../../chain/hashes.js";
import { bytesToBigint } from "../../../../chain/hex.js";
import type { Frame } from "../frame.js";
import { RETURN_DATA_BOUNDS, STATIC_STATE_CHANGE } from "../halt.js";
import { COPY_WORD_GAS, HASH_WORD_GAS, LOG_BYTE_GAS, LOG_TOPIC_GAS, wordsOf } from "../schedule.js";
import { chargeAccount, codeHashOf } from "./accounts.js";
import { wordFrom, wordToSize, wordToSlot } from "../words.js";

const WORD_BYTES = 32;

/** MLOAD: a word of memory. */
export function mload(frame: Frame): void {
  const offset = wordToSize(frame.pop());
  frame.reserve(offset, WORD_BYTES);
  frame.push(frame.memory.wordAt(offset));
}

/** MSTORE: a word to memory. */
export function mstore(frame: Frame): void {
  const offset = wordToSize(frame.pop());
  frame.reserve(offset, WORD_BYTES);
  frame.memory.setWord(offset, frame.pop());
}

/** MSTORE8: the lowest byte to memory. */
export function mstore8(frame: Frame): void {
  const offset = wordToSize(frame.pop());
  frame.reserve(offset, 1);
  frame.memory.setByte(offset, Number(frame.pop() & 0xffn));
}

/** MSIZE: bytes of memory that are paid for. */
export function msize(frame: Frame): void {
  frame.push(BigInt(WORD_BYTES * frame.memory.words));
}

/** EIP-5656. */
export function mcopy(frame: Frame): void {
  const to = wordToSize(frame.pop());
  const from = wordToSize(frame.pop());
  const size = wordToSize(frame.pop());
  frame.reserve(Math.max(to, from), size);
  chargeCopy(frame, size);
  frame.memory.move(to, from, size);
}

/** CALLDATALOAD: zeros behind the end. */
export function calldataload(frame: Frame): void {
  const { input } = frame.message;
  const from = wordToSize(frame.pop());
  frame.push(wordFrom(input, from, WORD_BYTES));
}

/** CALLDATASIZE. */
export function calldatasize(frame: Frame): void {
  frame.push(BigInt(frame.message.input.length));
}

/** CALLDATACOPY: zeros behind the end. */
export function calldatacopy(frame: Frame): void {
  copyFrom(frame, frame.message.input);
}

/** CODESIZE: bytes of the code that runs. */
export function codesize(frame: Frame): void {
  frame.push(BigInt(frame.code.bytes.length));
}

/** CODECOPY: zeros behind the end. */
export function codecopy(frame: Frame): void {
  copyFrom(frame, frame.code.bytes);
}

/** EXTCODECOPY: another account's code, zeros behind the end. */
export function extcodecopy(frame: Frame): void {
  const address = frame.popAddress();
  chargeAccount(frame, address);
  const to = wordToSize(frame.pop());
  const from = wordToSize(frame.pop());
  const size = wordToSize(frame.pop());
  frame.reserve(to, size);
  chargeCopy(frame, size);
  if (size === 0) return;
  const { state } = frame.execution;
  const codeHash = codeHashOf(frame, address);
  frame.spend(frame.weights.copiedCodeByteNs * state.codeSizeNow(codeHash));
  frame.memory.write(to, state.codeNow(codeHash), from, size);
}

/** RETURNDATASIZE: bytes of the last child's output. */
export function returndatasize(frame: Frame): void {
  frame.push(BigInt(frame.returnData.length));
}

/** Unlike the other copies it may not read behind the end (EIP-211). */
export function returndatacopy(frame: Frame): void {
  const to = wordToSize(frame.pop());
  const from = wordToSize(frame.pop());
  const size = wordToSize(frame.pop());
  frame.reserve(to, size);
  chargeCopy(frame, size);
  if (!(from + size <= frame.returnData.length)) throw RETURN_DATA_BOUNDS;
  frame.memory.write(to, frame.returnData, from, size);
}

function chargeCopy(frame: Frame, size: number): void {
  const words = wordsOf(size);
  frame.charge(COPY_WORD_GAS * words);
  frame.spend(frame.weights.copyWordNs * words);
}

/** Takes where to, where from and how much from the stack; zeros behind the source's end. */
function copyFrom(frame: Frame, source: Uint8Array): void {
  const to = wordToSize(frame.pop());
  const from = wordToSize(frame.pop());
  const size = wordToSize(frame.pop());
  frame.reserve(to, size);
  chargeCopy(frame, size);
  frame.memory.write(to, source, from, size);
}

/** KECCAK256 of a range of memory. */
export function keccak(frame: Frame): void {
  const offset = wordToSize(frame.pop());
  const size = wordToSize(frame.pop());
  frame.reserve(offset, size);
  frame.charge(HASH_WORD_GAS * wordsOf(size));
  frame.spend(frame.weights.hashWordNs * wordsOf(size));
  frame.push(bytesToBigint(keccak256(frame.memory.view(offset, size))));
}

/** LOG0 to LOG4. */
export function logWith(topicCount: number): (frame: Frame) => void {
  return (frame) => {
    const offset = wordToSize(frame.pop());
    const size = wordToSize(frame.pop());
    frame.reserve(offset, size);
    frame.charge(LOG_TOPIC_GAS * topicCount + LOG_BYTE_GAS * size);
    frame.spend(frame.weights.logByteNs * size);
    if (frame.message.isStatic) throw STATIC_STATE_CHANGE;
    const topics = [];
    for (let index = 0; index < topicCount; index++) topics.push(wordToSlot(frame.pop()));
    const { reads, substate, watcher } = frame.execution;
    if (!reads.seeLog(frame.self, topics[0])) frame.spend(frame.weights.logTermNs);
    const data = frame.memory.copy(offset, size);
    const log = { address: frame.self, topics, data };
    substate.logs.push(log);
    watcher?.log?.(log);
  };
}
