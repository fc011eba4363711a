/**
 * Protobuf wire format, as much of it as messages of consensus and SDK transactions use. The writer
 * leaves zero values out, as proto3 does; the reader is for bytes from outside and throws on
 * anything malformed.
 */
import { ChainError } from "../errors.js";
import { UINT64_MAX, WIRE } from "./wire-reader.js";

const { varint: VARINT, fixed64: FIXED64, bytes: BYTES } = WIRE;

/** Two's complement of an int64 as the wire has it. */
function toUint64(value: bigint): bigint {
  return value & UINT64_MAX;
}

/** Base-128 varint of an unsigned integer below 2^64. */
export function encodeVarint(value: bigint | number): Buffer {
  const bytes: number[] = [];
  let rest = BigInt(value);
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

/** Bytes with their length in front, as CometBFT delimits what is signed. */
export function delimited(bytes: Uint8Array): Buffer {
  return Buffer.concat([encodeVarint(bytes.length), bytes]);
}

/** Bytes of a length or a tag as a varint. */
export function varintBytes(value: number): number {
  let size = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size++;
  return size;
}

/** Writes a length or a tag as a varint. @returns where the next byte goes */
export function writeVarint(target: Uint8Array, start: number, value: number): number {
  let at = start;
  let rest = value;
  while (rest >= 0x80) {
    target[at++] = (rest % 0x80) | 0x80;
    rest = Math.floor(rest / 0x80);
  }
  target[at++] = rest;
  return at;
}

/**
 * Builds one message; fields must be added in the order of their numbers. Tags, lengths and
 * messages inside are kept until everything is written at once: a block has thousands of them.
 */
export class ProtoWriter {
  private readonly parts: (number | Uint8Array | ProtoWriter)[] = [];
  /** Length of what `finish` gives. */
  private sizeBytes = 0;

  /** int64, uint64, int32, uint32, enum or bool; zero is left out. */
  integer(field: number, value: bigint | number): this {
    if (value >= 0 && value <= Number.MAX_SAFE_INTEGER) {
      const small = Number(value);
      return small === 0 ? this : this.varint((field << 3) | VARINT).varint(small);
    }
    const wire = toUint64(BigInt(value));
    return this.varint((field << 3) | VARINT).raw(encodeVarint(wire));
  }

  /** sfixed64; zero is left out. */
  fixed64(field: number, value: bigint | number): this {
    const wire = BigInt(value);
    if (wire === 0n) return this;
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(wire);
    return this.varint((field << 3) | FIXED64).raw(bytes);
  }

  /** bytes or string; empty is left out. */
  bytes(field: number, value: Uint8Array | string): this {
    const content = typeof value === "string" ? Buffer.from(value, "utf8") : value;
    return content.length === 0 ? this : this.message(field, content);
  }

  /**
   * An embedded message, or an element of a repeated field: present even when it is empty. A writer
   * must be complete; nothing may be added to it any more.
   */
  message(field: number, content: Uint8Array | ProtoWriter): this {
    const sizeBytes = content instanceof ProtoWriter ? content.sizeBytes : content.length;
    this.varint((field << 3) | BYTES).varint(sizeBytes);
    this.parts.push(content);
    this.sizeBytes += sizeBytes;
    return this;
  }

  /** Fields that are encoded already, as constant ones are. */
  encoded(fields: Uint8Array): this {
    return this.raw(fields);
  }

  /** The message's bytes. */
  finish(): Buffer {
    const target = Buffer.allocUnsafe(this.sizeBytes);
    this.writeTo(target, 0);
    return target;
  }

  /** @returns where the next byte goes */
  private writeTo(target: Uint8Array, start: number): number {
    let at = start;
    for (const part of this.parts) {
      if (typeof part === "number") {
        at = writeVarint(target, at, part);
      } else if (part instanceof ProtoWriter) {
        at = part.writeTo(target, at);
      } else {
        target.set(part, at);
        at += part.length;
      }
    }
    return at;
  }

  private varint(value: number): this {
    this.parts.push(value);
    this.sizeBytes += varintBytes(value);
    return this;
  }

  private raw(content: Uint8Array): this {
    this.parts.push(content);
    this.sizeBytes += content.length;
    return this;
  }
}

/** One field as it stands on the wire. */
interface WireField {
  readonly integer: bigint | undefined;
  readonly bytes: Uint8Array | undefined;
}

/** Repeated fields of a message by number, with the most elements that each may have. */
export type RepeatedFields = Readonly<Record<number, number>>;

/** A message's fields by number; only numbers that the message has are accepted. */
export class ProtoReader {
  private readonly fields = new Map<number, WireField>();
  private readonly lists = new Map<number, Uint8Array[]>();

  /**
   * Reads untrusted bytes. What is one too many is refused when it is met, before anything more is
   * kept: two bytes on the wire would otherwise become a hundred and fifty in memory.
   * @param single fields that may occur once
   * @param repeated fields of bytes or messages that may occur more often
   * @throws INVALID_MESSAGE on malformed bytes, and on fields that are neither
   */
  constructor(
    bytes: Uint8Array,
    single: readonly number[],
    private readonly repeatedFields: RepeatedFields = {},
  ) {
    const cursor = new Cursor(bytes);
    while (!cursor.isAtEnd) {
      const tag = cursor.size();
      const [field, wireType] = [Math.floor(tag / 8), tag % 8];
      const max = repeatedFields[field];
      if (max !== undefined) this.append(field, max, readField(cursor, wireType));
      else if (!single.includes(field)) throw invalidMessage(`field ${field} is unknown`);
      else if (this.fields.has(field)) throw invalidMessage(`field ${field} is repeated`);
      else this.fields.set(field, readField(cursor, wireType));
    }
  }

  /** int64 (negative values included); 0 where absent. */
  int64(field: number): bigint {
    return BigInt.asIntN(64, this.fields.get(field)?.integer ?? this.absent(field, "integer"));
  }

  /** A whole number from 0 to 2^53 - 1; 0 where absent. */
  count(field: number): number {
    const value = this.int64(field);
    if (value < 0n || value > BigInt(Number.MAX_SAFE_INTEGER)) {
      throw invalidMessage(`field ${field} is out of range`);
    }
    return Number(value);
  }

  /** Bytes or an embedded message; empty where absent. */
  bytes(field: number): Uint8Array {
    return this.fields.get(field)?.bytes ?? this.noBytes(field);
  }

  /** Whether the field occurs. */
  has(field: number): boolean {
    return this.fields.has(field);
  }

  /** UTF-8 text; empty where absent. */
  text(field: number): string {
    return Buffer.from(this.bytes(field)).toString("utf8");
  }

  /** All elements of a field that was declared as repeated, in their order. */
  repeated(field: number): Uint8Array[] {
    if (this.repeatedFields[field] === undefined) {
      throw new RangeError(`field ${field} is not declared as repeated`);
    }
    return this.lists.get(field) ?? [];
  }

  private append(field: number, max: number, { bytes }: WireField): void {
    if (bytes === undefined) throw invalidMessage(`field ${field} is not bytes`);
    const list = this.lists.get(field) ?? [];
    if (list.length === max) throw invalidMessage(`field ${field} occurs more than ${max} times`);
    if (list.push(bytes) === 1) this.lists.set(field, list);
  }

  private absent(field: number, kind: string): bigint {
    if (this.fields.has(field)) throw invalidMessage(`field ${field} is not an ${kind}`);
    return 0n;
  }

  private noBytes(field: number): Uint8Array {
    if (this.fields.has(field)) throw invalidMessage(`field ${field} is not bytes`);
    return new Uint8Array(0);
  }
}

/**
 * Looks at each field of untrusted bytes in the order of the wire; nothing of them is kept.
 * @param use told the field's number and its bytes, undefined for an integer
 * @throws INVALID_MESSAGE on malformed bytes, and what `use` throws
 */
export function eachField(
  bytes: Uint8Array,
  use: (field: number, content: Uint8Array | undefined) => void,
): void {
  const cursor = new Cursor(bytes);
  while (!cursor.isAtEnd) {
    const tag = cursor.size();
    use(Math.floor(tag / 8), readField(cursor, tag % 8).bytes);
  }
}

/** The error for bytes that are not the message they should be. */
export function invalidMessage(reason: string, cause?: unknown): ChainError {
  return new ChainError("INVALID_MESSAGE", `malformed consensus message: ${reason}`, { cause });
}

class Cursor {
  private at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  get isAtEnd(): boolean {
    return this.at >= this.bytes.length;
  }

  /** A tag or a length: a varint of at most 49 bits, as a number because there are many. */
  size(): number {
    let value = 0;
    for (let scale = 1; scale < 2 ** 49; scale *= 128) {
      const byte = this.bytes[this.at++];
      if (byte === undefined) break;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
    throw invalidMessage("a tag or a length does not end");
  }

  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.bytes[this.at++];
      if (byte === undefined) break;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) {
        if (value > UINT64_MAX) throw invalidMessage("an integer has more than 64 bits");
        return value;
      }
    }
    throw invalidMessage("an integer does not end");
  }

  take(length: number): Uint8Array {
    const end = this.at + length;
    if (end > this.bytes.length) throw invalidMessage("a field is longer than the message");
    const taken = this.bytes.subarray(this.at, end);
    this.at = end;
    return taken;
  }
}

function readField(cursor: Cursor, wireType: number): WireField {
  if (wireType === VARINT) return { integer: cursor.varint(), bytes: undefined };
  if (wireType !== BYTES) throw invalidMessage(`wire type ${wireType} does not occur`);
  return { integer: undefined, bytes: cursor.take(cursor.size()) };
}
