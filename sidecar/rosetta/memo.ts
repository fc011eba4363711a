/** Memos: calldata that is text. The same rule writes and reads them, so that they round-trip. */
import { bytesToHex, type Hex, hexToBytes } from "../../chain/hex.js";

/** Longest memo in UTF-8 bytes; longer calldata is shown as input only. */
const MAX_MEMO_BYTES = 1_024;

/** Controls other than tab and line ends make bytes data, not text. */
const CONTROL_PATTERN = /(?![\t\n\r])\p{Cc}/u;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/**
 * Calldata of a memo; undefined when the text is empty, longer than `MAX_MEMO_BYTES`, not
 * well-formed, or holds control characters: then it could not be read back.
 */
export function memoToData(memo: string): Hex | undefined {
  const data = bytesToHex(encoder.encode(memo));
  return memoOfData(data) === memo ? data : undefined;
}

/** The memo that calldata is, or undefined where it is not one. */
export function memoOfData(data: Hex): string | undefined {
  const sizeBytes = (data.length - 2) / 2;
  if (sizeBytes === 0 || sizeBytes > MAX_MEMO_BYTES) return undefined;
  try {
    const text = decoder.decode(hexToBytes(data));
    return CONTROL_PATTERN.test(text) ? undefined : text;
  } catch {
    return undefined; // Not UTF-8: data for a contract.
  }
}
