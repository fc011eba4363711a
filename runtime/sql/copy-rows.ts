/**
 * Rows for COPY in PostgreSQL's binary format, written into bytes as they come: kept as texts they
 * would be most of what the garbage collector has to look at, and the server would have to read each
 * number and each hex digit again. The type of each column is said once, and held against what is added
 * by the compiler. Source: PostgreSQL's documentation of COPY, and the `*_recv` function of each type.
 */
import { type Hex, writeHex } from "../../chain/hex.js";

/** What a value of each type of column is; NULL is undefined. */
interface CopyValues {
  readonly bytea: Hex;
  readonly text: string;
  readonly int2: number;
  readonly int4: number;
  readonly int8: number;
  readonly numeric: bigint;
  readonly bool: boolean;
  /** Unix milliseconds. */
  readonly timestamptz: number;
}

type CopyType = keyof CopyValues;

/** Name and type of a column, as a table is made with them. */
export type CopyColumn = `${string} ${CopyType}`;

/** The values of a row of these columns. */
type CopyRow<Columns extends readonly CopyColumn[]> = {
  readonly [Index in keyof Columns]: Columns[Index] extends `${string} ${infer Type extends CopyType}`
    ? CopyValues[Type] | undefined
    : never;
};

/** Bytes of the first piece, and of the largest. */
const FIRST_BYTES = 4 * 1024;
const PIECE_BYTES = 256 * 1024;

/** The signature, no flags, no extension. */
const HEADER = Buffer.from("PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", "latin1");
const END = Buffer.from([0xff, 0xff]);

/** The length that means NULL. */
const NULL_BYTES = -1;

/** Unix time of 2000-01-01, from which the server counts. */
const EPOCH_MS = 946_684_800_000;

/** A numeric is made of groups of four decimal digits. */
const GROUP = 10_000;
const GROUP_DIGITS = 4;
const NEGATIVE = 0x4000;
const SAFE = BigInt(Number.MAX_SAFE_INTEGER);

/** Groups of the number that is being written, the lowest first; of 2^256 there are twenty. */
const groups: number[] = [];

/** The rows of one table. */
export class CopyRows<const Columns extends readonly CopyColumn[] = readonly CopyColumn[]> {
  /** Names of the columns, as a list of SQL. */
  readonly names: string;
  private readonly types: readonly string[];
  private readonly full: Buffer[] = [];
  private piece: Buffer = Buffer.alloc(0);
  private used = 0;

  constructor(columns: Columns) {
    const parts = columns.map((column) => column.split(" "));
    this.names = parts.map(([name]) => name).join(", ");
    this.types = parts.map(([, type]) => type ?? "");
  }

  /** Appends a row. Throws RangeError for an integer that its column cannot hold. */
  add(...values: CopyRow<Columns>): void {
    const { types } = this;
    if (this.isEmpty) this.addBytes(HEADER);
    this.room(2);
    this.used = this.piece.writeInt16BE(types.length, this.used);
    for (let index = 0; index < types.length; index++) this.addField(types[index], values[index]);
  }

  get isEmpty(): boolean {
    return this.used === 0 && this.full.length === 0;
  }

  /** What was written, in order; nothing where there are no rows. */
  *pieces(): Generator<Buffer> {
    if (this.isEmpty) return;
    yield* this.full;
    yield this.piece.subarray(0, this.used);
    yield END;
  }

  private addField(
    type: string | undefined,
    value: string | number | bigint | boolean | undefined,
  ): void {
    if (value === undefined) this.addLength(NULL_BYTES);
    else if (typeof value === "bigint") this.addNumeric(value);
    else if (typeof value === "number") this.addNumber(type, value);
    else if (typeof value === "boolean") this.addBoolean(value);
    else if (type === "bytea") this.addHex(value);
    else this.addText(value);
  }

  private addHex(hex: string): void {
    const sizeBytes = (hex.length - 2) >> 1;
    this.addLength(sizeBytes);
    this.room(sizeBytes);
    this.used = writeHex(this.piece, this.used, hex);
  }

  /** NUL is the one character that no text of the server can hold. */
  private addText(text: string): void {
    const held = text.includes("\0") ? text.replaceAll("\0", "\ufffd") : text;
    const sizeBytes = Buffer.byteLength(held);
    this.addLength(sizeBytes);
    this.room(sizeBytes);
    this.used += this.piece.write(held, this.used);
  }

  private addNumber(type: string | undefined, value: number): void {
    switch (type) {
      case "int2":
        this.addLength(2);
        this.room(2);
        this.used = this.piece.writeInt16BE(value, this.used);
        return;
      case "int4":
        this.addLength(4);
        this.room(4);
        this.used = this.piece.writeInt32BE(value, this.used);
        return;
      default: {
        this.addLength(8);
        this.room(8);
        const wide = type === "timestamptz" ? BigInt(value - EPOCH_MS) * 1_000n : BigInt(value);
        this.used = this.piece.writeBigInt64BE(wide, this.used);
      }
    }
  }

  private addBoolean(value: boolean): void {
    this.addLength(1);
    this.room(1);
    this.used = this.piece.writeUInt8(value ? 1 : 0, this.used);
  }

  /** How many groups, the place of the first before the point, the sign, digits behind the point; groups. */
  private addNumeric(value: bigint): void {
    const isNegative = value < 0n;
    const count = splitIntoGroups(isNegative ? -value : value);
    const sizeBytes = 8 + 2 * count;
    this.addLength(sizeBytes);
    this.room(sizeBytes);
    const { piece } = this;
    let at = piece.writeInt16BE(count, this.used);
    at = piece.writeInt16BE(Math.max(count - 1, 0), at);
    at = piece.writeUInt16BE(isNegative ? NEGATIVE : 0, at);
    at = piece.writeInt16BE(0, at);
    for (let index = count - 1; index >= 0; index--) {
      at = piece.writeInt16BE(groups[index] ?? 0, at);
    }
    this.used = at;
  }

  private addLength(sizeBytes: number): void {
    this.room(4);
    this.used = this.piece.writeInt32BE(sizeBytes, this.used);
  }

  private addBytes(bytes: Buffer): void {
    this.room(bytes.length);
    this.used += bytes.copy(this.piece, this.used);
  }

  /** Makes room for so many bytes behind what is there. */
  private room(sizeBytes: number): void {
    if (this.used + sizeBytes <= this.piece.length) return;
    if (this.used > 0) this.full.push(this.piece.subarray(0, this.used));
    const nextBytes = Math.min(PIECE_BYTES, Math.max(FIRST_BYTES, 2 * this.piece.length));
    this.piece = Buffer.allocUnsafe(Math.max(nextBytes, sizeBytes));
    this.used = 0;
  }
}

/** @returns how many groups of `groups` are this number's; none of zero */
function splitIntoGroups(value: bigint): number {
  let count = 0;
  if (value <= SAFE) {
    for (let rest = Number(value); rest > 0; rest = Math.floor(rest / GROUP)) {
      groups[count++] = rest % GROUP;
    }
    return count;
  }
  // A division of a long number for each group would cost more than its decimal digits.
  const digits = value.toString();
  for (let end = digits.length; end > 0; end -= GROUP_DIGITS) {
    let group = 0;
    for (let at = Math.max(0, end - GROUP_DIGITS); at < end; at++) {
      group = 10 * group + digits.charCodeAt(at) - 48;
    }
    groups[count++] = group;
  }
  return count;
}
