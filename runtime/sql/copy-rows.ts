/**
 * Rows for COPY in its text format, written into bytes as they come: kept as texts they would be
 * most of what the garbage collector has to look at.
 */
import type { Hex } from "../../chain/hex.js";

/** A text of a row. Said by its type, because a text may look like bytes. */
export class CopyText {
  constructor(readonly text: string) {}
}

/** Values that a row may have: hex is BYTEA, undefined is NULL. */
export type CopyValue = Hex | CopyText | number | bigint | boolean | undefined;

/** Bytes of the first piece, and of the largest. */
const FIRST_BYTES = 4 * 1024;
const PIECE_BYTES = 64 * 1024;

/** Bytes of UTF-8 that a unit of a text takes at most. */
const BYTES_PER_UNIT = 3;

/** The rows of one table. */
export class CopyRows {
  private readonly full: Buffer[] = [];
  private piece: Buffer = Buffer.alloc(0);
  private used = 0;

  /** Appends a row; values in the order of the columns. */
  add(...values: readonly CopyValue[]): void {
    let line = "";
    for (let index = 0; index < values.length; index++) {
      line += (index === 0 ? "" : "\t") + copyField(values[index]);
    }
    this.addLine(line);
  }

  /**
   * Appends a row whose fields are made already, for tables of which a batch has tens of thousands.
   * @param fields in the order of the columns with a tab between them: numbers as they are, all else
   *   by `copyField`
   */
  addLine(fields: string): void {
    const line = `${fields}\n`;
    const wanted = BYTES_PER_UNIT * line.length;
    if (this.used + wanted > this.piece.length) this.begin(wanted);
    this.used += this.piece.write(line, this.used, "utf8");
  }

  get isEmpty(): boolean {
    return this.used === 0 && this.full.length === 0;
  }

  /** What was written, in order. */
  *pieces(): Generator<Buffer> {
    yield* this.full;
    if (this.used > 0) yield this.piece.subarray(0, this.used);
  }

  private begin(leastBytes: number): void {
    if (this.used > 0) this.full.push(this.piece.subarray(0, this.used));
    const sizeBytes = Math.min(PIECE_BYTES, Math.max(FIRST_BYTES, 2 * this.piece.length));
    this.piece = Buffer.allocUnsafe(Math.max(sizeBytes, leastBytes));
    this.used = 0;
  }
}

/** One field of a row, as `addLine` takes it. */
export function copyField(value: CopyValue): string {
  if (value === undefined) return "\\N";
  if (typeof value === "string") return `\\\\x${value.slice(2)}`;
  if (!(value instanceof CopyText)) return String(value);
  return value.text.replace(/[\\\t\n\r]/g, (character) => ESCAPES[character] ?? "");
}

const ESCAPES: Readonly<Record<string, string>> = {
  "\\": "\\\\",
  "\t": "\\t",
  "\n": "\\n",
  "\r": "\\r",
};
