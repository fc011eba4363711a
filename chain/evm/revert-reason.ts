/** Solidity's revert data in words, as geth prints it (abi.UnpackRevert). */
import { bytesToBigint, bytesToHex } from "../hex.js";
import { readSize, WORD_BYTES } from "./abi/abi-words.js";

const ERROR_SELECTOR = "0x08c379a0";
const PANIC_SELECTOR = "0x4e487b71";
const SELECTOR_BYTES = 4;

/**
 * Longest reason that is read. What a call gives back may be megabytes, and a byte of a text six
 * characters where it is written as JSON.
 */
const MAX_REASON_BYTES = 65_536;

/** Texts of Solidity's panic codes, as in geth. */
const PANICS = new Map<bigint, string>([
  [0x00n, "generic panic"],
  [0x01n, "assert(false)"],
  [0x11n, "arithmetic underflow or overflow"],
  [0x12n, "division or modulo by zero"],
  [0x21n, "enum overflow"],
  [0x22n, "invalid encoded storage byte array accessed"],
  [0x31n, "out-of-bounds array access; popping on an empty array"],
  [0x32n, "out-of-bounds access of an array or bytesN"],
  [0x41n, "out of memory"],
  [0x51n, "uninitialized function"],
]);

/** What clients are told of a call that reverted: that it did, and why where that can be read. */
export function revertText(data: Uint8Array): string {
  const reason = revertReason(data);
  return reason === undefined ? "execution reverted" : `execution reverted: ${reason}`;
}

/** Reason in `Error(string)` or `Panic(uint256)`; undefined for anything else. */
export function revertReason(data: Uint8Array): string | undefined {
  const selector = bytesToHex(data.subarray(0, SELECTOR_BYTES));
  const body = data.subarray(SELECTOR_BYTES);
  if (selector === PANIC_SELECTOR && body.length >= WORD_BYTES) {
    const code = bytesToBigint(body.subarray(0, WORD_BYTES));
    return PANICS.get(code) ?? `unknown panic code: 0x${code.toString(16)}`;
  }
  return selector === ERROR_SELECTOR ? errorString(body) : undefined;
}

function errorString(body: Uint8Array): string | undefined {
  const offset = sizeAt(body, 0);
  const length = offset === undefined ? undefined : sizeAt(body, offset);
  if (offset === undefined || length === undefined) return undefined;
  const start = offset + WORD_BYTES;
  if (start + length > body.length || length > MAX_REASON_BYTES) return undefined;
  return Buffer.from(body.subarray(start, start + length)).toString("utf8");
}

function sizeAt(body: Uint8Array, at: number): number | undefined {
  return readSize(body.subarray(at, at + WORD_BYTES), body.length);
}
