/** Takes the time out of sign bytes, so that two of them can be compared without it. */
import { decodeTime } from "../../../chain/consensus/block-id.js";
import { invalidMessage } from "../../../chain/protobuf/wire.js";

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;

/**
 * Splits canonical sign bytes (length in front) into the time in field `timeField` and the rest.
 * @throws INVALID_MESSAGE
 */
export function takeSignedTime(
  signBytes: Buffer,
  timeField: number,
): { readonly timeNs: bigint; readonly rest: Buffer } {
  const others: Buffer[] = [];
  let timeNs = 0n;
  let at = varintAt(signBytes, 0).end;
  while (at < signBytes.length) {
    const tag = varintAt(signBytes, at);
    const content = contentAt(signBytes, tag.end, tag.value & 7);
    const isTime = tag.value >> 3 === timeField;
    if (isTime) timeNs = decodeTime(signBytes.subarray(content.start, content.end));
    else others.push(signBytes.subarray(at, content.end));
    at = content.end;
  }
  return { timeNs, rest: Buffer.concat(others) };
}

function contentAt(bytes: Buffer, at: number, wireType: number): { start: number; end: number } {
  switch (wireType) {
    case VARINT:
      return { start: at, end: varintAt(bytes, at).end };
    case FIXED64:
      return { start: at, end: at + 8 };
    case BYTES: {
      const length = varintAt(bytes, at);
      return { start: length.end, end: length.end + length.value };
    }
    default:
      throw invalidMessage("sign bytes are damaged");
  }
}

/** A varint; values above 2^32 lose their upper bits, only their ends are of interest. */
function varintAt(bytes: Buffer, start: number): { value: number; end: number } {
  let value = 0;
  for (let at = start; at < Math.min(bytes.length, start + 10); at++) {
    const byte = bytes[at] ?? 0;
    value += (byte & 0x7f) * 2 ** (7 * (at - start));
    if (byte < 0x80) return { value, end: at + 1 };
  }
  throw invalidMessage("sign bytes are damaged");
}
