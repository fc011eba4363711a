/** Takes the time out of sign bytes, so that two of them can be compared without it. */
import { decodeTime } from "../../../chain/consensus/block-id.js";
import { WIRE, WireReader } from "../../../chain/protobuf/wire-reader.js";
import { invalidMessage } from "../../../chain/protobuf/wire.js";

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
  for (const { number, time, whole } of fieldsOf(signBytes)) {
    if (number === timeField && time !== undefined) timeNs = decodeTime(time);
    else others.push(whole);
  }
  return { timeNs, rest: Buffer.concat(others) };
}

/** A field of sign bytes as it stands there. */
interface SignedField {
  readonly number: number;
  /** Its content where it may be a time: a message, no number. */
  readonly time: Uint8Array | undefined;
  /** With its tag and length. */
  readonly whole: Buffer;
}

function fieldsOf(signBytes: Buffer): SignedField[] {
  const fields: SignedField[] = [];
  try {
    const reader = WireReader.delimited(signBytes);
    let start = reader.offset;
    for (let field = reader.next(); field !== undefined; field = reader.next()) {
      const { number, wire, bytes } = field;
      const time = wire === WIRE.bytes ? bytes : undefined;
      fields.push({ number, time, whole: signBytes.subarray(start, reader.offset) });
      start = reader.offset;
    }
  } catch (cause) {
    throw invalidMessage("sign bytes are damaged", cause);
  }
  return fields;
}
