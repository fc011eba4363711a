/** Memory of a frame: bytes that grow by words; whoever grows it has been charged for it. */
import { bigintAt, writeWord } from "../../../chain/hex.js";

const NO_BYTES = new Uint8Array(0);
const WORD_BYTES = 32;
/** Memory grows by doubling from here: a frame that needs none gets none. */
const FIRST_BYTES = 512;

/** Offsets and sizes are numbers: the gas for more than 2^32 bytes does not exist. */
export class Memory {
  private bytes: Uint8Array<ArrayBuffer> = NO_BYTES;
  /** Words that are paid for; MSIZE shows them as bytes. */
  words = 0;

  /** Makes room for so many words. */
  growTo(words: number): void {
    this.words = words;
    const needed = words * WORD_BYTES;
    if (needed <= this.bytes.length) return;
    const grown = new Uint8Array(Math.max(needed, 2 * this.bytes.length, FIRST_BYTES));
    grown.set(this.bytes);
    this.bytes = grown;
  }

  wordAt(offset: number): bigint {
    return bigintAt(this.bytes, offset, offset + WORD_BYTES);
  }

  setWord(offset: number, word: bigint): void {
    writeWord(this.bytes, offset, word);
  }

  setByte(offset: number, byte: number): void {
    this.bytes[offset] = byte;
  }

  /** A view that the next growth may leave behind: for reading at once. */
  view(offset: number, size: number): Uint8Array {
    return size === 0 ? NO_BYTES : this.bytes.subarray(offset, offset + size);
  }

  /** A copy that stays. */
  copy(offset: number, size: number): Uint8Array {
    return size === 0 ? NO_BYTES : this.bytes.slice(offset, offset + size);
  }

  /** Writes a range of a source; zeros where the source has ended. */
  write(offset: number, source: Uint8Array, from: number, size: number): void {
    if (size === 0) return;
    const found = source.subarray(Math.min(from, source.length), from + size);
    this.bytes.set(found, offset);
    this.bytes.fill(0, offset + found.length, offset + size);
  }

  /** MCOPY: the ranges may overlap. */
  move(to: number, from: number, size: number): void {
    if (size > 0) this.bytes.copyWithin(to, from, from + size);
  }
}
