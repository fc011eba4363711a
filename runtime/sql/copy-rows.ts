/**
 * Rows for COPY in PostgreSQL's binary format, written into bytes as they come: kept as texts they
 * would be most of what the garbage collector has to look at. The type of each column is said once, and
 * held against what is added by the compiler. Source: PostgreSQL's documentation of COPY.
 */
import type { Hex } from "../../chain/hex.js";
import { BinaryValues } from "./binary-values.js";

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

/** The rows of one table. */
export class CopyRows<
  const Columns extends readonly CopyColumn[] = readonly CopyColumn[],
> extends BinaryValues {
  /** Names of the columns, as a list of SQL. */
  readonly names: string;
  private readonly types: readonly string[];
  private readonly full: Buffer[] = [];

  constructor(columns: Columns) {
    super();
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
    if (value === undefined) this.addNull();
    else if (typeof value === "bigint") this.addNumeric(value);
    else if (typeof value === "number") this.addNumber(type, value);
    else if (typeof value === "boolean") this.addBoolean(value);
    else if (type === "bytea") this.addHex(value);
    // NUL is the one character that no text of the server can hold.
    else this.addText(value.includes("\0") ? value.replaceAll("\0", "\ufffd") : value);
  }

  private addNumber(type: string | undefined, value: number): void {
    if (type === "int2") this.addInt2(value);
    else if (type === "int4") this.addInt4(value);
    else if (type === "timestamptz") this.addTimestamp(value);
    else this.addInt8(value);
  }

  private addBytes(bytes: Buffer): void {
    this.room(bytes.length);
    this.used += bytes.copy(this.piece, this.used);
  }

  protected override grow(sizeBytes: number): void {
    if (this.used > 0) this.full.push(this.piece.subarray(0, this.used));
    const nextBytes = Math.min(PIECE_BYTES, Math.max(FIRST_BYTES, 2 * this.piece.length));
    this.piece = Buffer.allocUnsafe(Math.max(nextBytes, sizeBytes));
    this.used = 0;
  }
}
