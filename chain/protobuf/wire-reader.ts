/**
 * Protobuf's wire format of any message, known or not: fields one by one as they stand. Bytes come
 * from outside; what is malformed is refused.
 */
import { ChainError } from "../errors.js";

/** Wire types; groups do not occur. */
export const WIRE = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

const MAX_FIELD_NUMBER = 0x1f_ff_ff_ff;

/** Largest integer of 64 bits; as a mask, two's complement of an int64 as the wire has it. */
export const UINT64_MAX = (1n << 64n) - 1n;

/** One field: `integer` of the three numeric wire types, else `bytes`. */
export interface WireField {
  readonly number: number;
  readonly wire: number;
  /** Unsigned, as it stands; 0 for bytes. */
  readonly integer: bigint;
  /** Empty for numbers. A part of the message, not a copy. */
  readonly bytes: Uint8Array;
}

const NO_BYTES = new Uint8Array(0);

/** The error for bytes or JSON that are not the message they should be. */
export function malformed(reason: string): ChainError {
  return new ChainError("INVALID_MESSAGE", `malformed message: ${reason}`);
}

/** Reads fields until the end. */
export class WireReader {
  private at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  /** Reads a message that has its length in front, and nothing behind it. Throws INVALID_MESSAGE. */
  static delimited(bytes: Uint8Array): WireReader {
    const reader = new WireReader(bytes);
    const length = reader.varint();
    if (length !== BigInt(bytes.length - reader.at)) throw malformed("its length is another one");
    return reader;
  }

  /** Where the next field begins, in bytes. */
  get offset(): number {
    return this.at;
  }

  /** The next field; undefined at the end. Throws INVALID_MESSAGE. */
  next(): WireField | undefined {
    if (this.at >= this.bytes.length) return undefined;
    const tag = this.varint();
    const number = Number(tag >> 3n);
    const wire = Number(tag & 7n);
    if (number < 1 || number > MAX_FIELD_NUMBER) throw malformed("a field number is out of range");
    if (wire === WIRE.bytes) {
      const length = this.varint();
      if (length > BigInt(this.bytes.length)) throw malformed("a field is longer than the message");
      return { number, wire, integer: 0n, bytes: this.take(Number(length)) };
    }
    return { number, wire, integer: this.number(wire), bytes: NO_BYTES };
  }

  /** The numbers of a packed field's bytes, one by one. Throws INVALID_MESSAGE. */
  static *packed(bytes: Uint8Array, wire: number): Generator<bigint> {
    const reader = new WireReader(bytes);
    while (reader.at < bytes.length) yield reader.number(wire);
  }

  private number(wire: number): bigint {
    if (wire === WIRE.varint) return this.varint();
    const size = wire === WIRE.fixed64 ? 8 : 4;
    if (wire !== WIRE.fixed64 && wire !== WIRE.fixed32) {
      throw malformed(`wire type ${wire} does not occur`);
    }
    let value = 0n;
    for (const [place, byte] of this.take(size).entries()) {
      value |= BigInt(byte) << BigInt(place * 8);
    }
    return value;
  }

  private varint(): bigint {
    // Most are one byte: tags, lengths, small numbers.
    const first = this.bytes[this.at];
    if (first !== undefined && first < 0x80) {
      this.at += 1;
      return BigInt(first);
    }
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.bytes[this.at++];
      if (byte === undefined) break;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte >= 0x80) continue;
      if (value > UINT64_MAX) throw malformed("an integer has more than 64 bits");
      return value;
    }
    throw malformed("an integer does not end");
  }

  private take(length: number): Uint8Array {
    const end = this.at + length;
    if (end > this.bytes.length) throw malformed("a field is longer than the message");
    const taken = this.bytes.subarray(this.at, end);
    this.at = end;
    return taken;
  }
}
