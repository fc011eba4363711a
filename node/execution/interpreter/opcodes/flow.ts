/** Control: jumps, ends, and what shows gas and place. */
import { type Frame, type Handler, JUMP_TARGET } from "../frame.js";
import { INVALID_JUMP, INVALID_OPCODE, REVERTED } from "../halt.js";
import { wordsOf } from "../schedule.js";
import { wordToSize } from "../words.js";

const NO_BYTES = new Uint8Array(0);

/** STOP: ends well, without output. */
export function stop(frame: Frame): void {
  frame.end(NO_BYTES);
}

/** JUMP to a JUMPDEST. */
export function jump(frame: Frame): void {
  jumpTo(frame, frame.pop());
}

/** JUMPI: jumps where the second item is not 0. */
export function jumpi(frame: Frame): void {
  const target = frame.pop();
  if (frame.pop() !== 0n) jumpTo(frame, target);
}

function jumpTo(frame: Frame, target: bigint): void {
  const place = wordToSize(target);
  if (((frame.code.jumpTable[place] ?? 0) & JUMP_TARGET) === 0) throw INVALID_JUMP;
  frame.place = place;
}

/** JUMPDEST: its gas is all that it does. */
export function jumpdest(): void {
  // Nothing.
}

/** PC: the place of this instruction. */
export function pc(frame: Frame): void {
  frame.push(BigInt(frame.place - 1));
}

/** GAS that is left behind this instruction. */
export function gas(frame: Frame): void {
  frame.push(BigInt(frame.gas));
}

/** RETURN: ends well, with a range of memory. */
export function returnOutput(frame: Frame): void {
  frame.end(outputOf(frame));
}

/** REVERT (EIP-140): undoes the frame and gives its remaining gas back. */
export function revert(frame: Frame): void {
  frame.output = outputOf(frame);
  throw REVERTED;
}

function outputOf(frame: Frame): Uint8Array {
  const offset = wordToSize(frame.pop());
  const size = wordToSize(frame.pop());
  frame.reserve(offset, size);
  frame.spend(frame.weights.copyWordNs * wordsOf(size));
  return frame.memory.copy(offset, size);
}

/** INVALID, and every opcode that is none. */
export function invalid(): void {
  throw INVALID_OPCODE;
}

/** POP. */
export function pop(frame: Frame): void {
  frame.pop();
}

/** PUSH0; the others are made with their bytes. */
export function pushZero(frame: Frame): void {
  frame.push(0n);
}

/** DUP1 to DUP16: copies the n-th item. */
export function dup(n: number): Handler {
  return (frame) => {
    frame.push(frame.peek(n - 1));
  };
}

/** SWAP1 to SWAP16: the top and the item n below it. */
export function swap(n: number): Handler {
  return (frame) => {
    frame.swap(n);
  };
}
