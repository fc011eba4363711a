/** What a reverted call said, in go-ethereum's words. */
import { bytesToBigint, bytesToHex } from "../../../chain/hex.js";
import { RpcFault } from "./errors.js";

/** Selector of `Error(string)`. */
const ERROR_SELECTOR = "0x08c379a0";

/** Selector of `Panic(uint256)`. */
const PANIC_SELECTOR = "0x4e487b71";

/** Solidity's panic codes with go-ethereum's texts. */
const PANICS: ReadonlyMap<bigint, string> = new Map([
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

/** The error of a reverted call: code 3, the reason where it can be read, the bytes as data. */
export function revertFault(returnData: Uint8Array): RpcFault {
  const reason = revertReason(returnData);
  const message = reason === undefined ? "execution reverted" : `execution reverted: ${reason}`;
  return new RpcFault("EXECUTION_REVERTED", message, bytesToHex(returnData));
}

/** Reason in revert data of the two standard forms; undefined for anything else. */
export function revertReason(data: Uint8Array): string | undefined {
  const selector = bytesToHex(data.subarray(0, 4));
  const body = data.subarray(4);
  if (selector === PANIC_SELECTOR && body.length >= 32) {
    const code = bytesToBigint(body.subarray(0, 32));
    return PANICS.get(code) ?? `unknown panic code: 0x${code.toString(16)}`;
  }
  if (selector !== ERROR_SELECTOR || body.length < 64) return undefined;
  const offset = bytesToBigint(body.subarray(0, 32));
  if (offset + 32n > BigInt(body.length)) return undefined;
  const start = Number(offset) + 32;
  const length = bytesToBigint(body.subarray(start - 32, start));
  if (length > BigInt(body.length - start)) return undefined;
  return Buffer.from(body.subarray(start, start + Number(length))).toString("utf8");
}
