/**
 * Short texts by address, held in three arrays of numbers. A `Map` of a million addresses is 145 MiB of
 * objects, which the garbage collector looks through again each time that replies of the network have
 * filled its measure; this is 64 MiB that it need not look into.
 */
import assert from "node:assert/strict";
import type { Address } from "./address.js";

/** Words of 32 bits that the 20 bytes of an address fill. */
const KEY_WORDS = 5;

/** A row: the address, where its text begins, how long it is. */
const ROW_WORDS = KEY_WORDS + 2;

/** Rows to begin with; a power of two, as are all later sizes. */
const FIRST_ROWS = 16;

/** Places of the hash table for each row, so that at most every second one is taken. */
const SLOTS_PER_ROW = 2;

/** Bytes of texts to begin with. */
const FIRST_TEXT_BYTES = 256;

/** Where the hash table has nothing. */
const EMPTY = 0;

const WORD_DIGITS = 8;
const TEXT_LENGTH = 2 + KEY_WORDS * WORD_DIGITS;

/** A map that grows only. An entry takes 36 to 72 bytes, and its text. */
export class AddressMap {
  #rows = new Uint32Array(FIRST_ROWS * ROW_WORDS);
  /** Number of a row and one, or `EMPTY`. */
  #slots = new Uint32Array(FIRST_ROWS * SLOTS_PER_ROW);
  #texts = Buffer.alloc(FIRST_TEXT_BYTES);
  #textBytes = 0;
  #size = 0;
  /** The address that is looked for, as words. */
  readonly #key = new Uint32Array(KEY_WORDS);

  /** Entries. */
  get size(): number {
    return this.#size;
  }

  /** @param text of ASCII; another text of the same address takes its place */
  set(address: Address, text: string): void {
    assert(this.#readKey(address), "an address as it stands inside");
    const slot = this.#findSlot();
    const row = this.#slots[slot] ?? EMPTY;
    if (row !== EMPTY) {
      if (this.#textOf(row - 1) !== text) this.#writeText(row - 1, text);
      return;
    }
    this.#rows.set(this.#key, this.#size * ROW_WORDS);
    this.#writeText(this.#size, text);
    this.#size += 1;
    this.#slots[slot] = this.#size;
    if (this.#size * ROW_WORDS === this.#rows.length) this.#grow();
  }

  /** Undefined for what is not in the map, and for text that is no address in lower case. */
  get(address: Address): string | undefined {
    const row = this.#find(address);
    return row === undefined ? undefined : this.#textOf(row);
  }

  /** See `get`. */
  has(address: Address): boolean {
    return this.#find(address) !== undefined;
  }

  /** Forgets all entries. */
  clear(): void {
    this.#rows = new Uint32Array(FIRST_ROWS * ROW_WORDS);
    this.#slots = new Uint32Array(FIRST_ROWS * SLOTS_PER_ROW);
    this.#texts = Buffer.alloc(FIRST_TEXT_BYTES);
    this.#textBytes = 0;
    this.#size = 0;
  }

  #find(address: Address): number | undefined {
    if (!this.#readKey(address)) return undefined;
    const row = this.#slots[this.#findSlot()] ?? EMPTY;
    return row === EMPTY ? undefined : row - 1;
  }

  /** Reads the address into `#key`; false for text that is none. */
  #readKey(address: Address): boolean {
    if (address.length !== TEXT_LENGTH || !address.startsWith("0x")) return false;
    let at = 2;
    for (let word = 0; word < KEY_WORDS; word += 1) {
      let value = 0;
      for (const end = at + WORD_DIGITS; at < end; at += 1) {
        const digit = digitOf(address.charCodeAt(at));
        if (digit < 0) return false;
        value = (value << 4) | digit;
      }
      this.#key[word] = value;
    }
    return true;
  }

  /** The slot of `#key`, or the empty one where it belongs. */
  #findSlot(): number {
    const mask = this.#slots.length - 1;
    for (let slot = hashOf(this.#key, 0) & mask; ; slot = (slot + 1) & mask) {
      const row = this.#slots[slot] ?? EMPTY;
      if (row === EMPTY || this.#isKeyOf(row - 1)) return slot;
    }
  }

  #isKeyOf(row: number): boolean {
    const at = row * ROW_WORDS;
    for (let word = 0; word < KEY_WORDS; word += 1) {
      if (this.#rows[at + word] !== this.#key[word]) return false;
    }
    return true;
  }

  #textOf(row: number): string {
    const at = row * ROW_WORDS + KEY_WORDS;
    const start = this.#rows[at] ?? 0;
    return this.#texts.toString("latin1", start, start + (this.#rows[at + 1] ?? 0));
  }

  #writeText(row: number, text: string): void {
    const start = this.#textBytes;
    const end = start + text.length;
    if (end > this.#texts.length) {
      const larger = Buffer.alloc(Math.max(end, this.#texts.length * 2));
      this.#texts.copy(larger);
      this.#texts = larger;
    }
    this.#texts.write(text, start, "latin1");
    this.#textBytes = end;
    const at = row * ROW_WORDS + KEY_WORDS;
    this.#rows[at] = start;
    this.#rows[at + 1] = text.length;
  }

  #grow(): void {
    const rows = new Uint32Array(this.#rows.length * 2);
    rows.set(this.#rows);
    this.#rows = rows;
    this.#slots = new Uint32Array(this.#slots.length * 2);
    const mask = this.#slots.length - 1;
    for (let row = 0; row < this.#size; row += 1) {
      let slot = hashOf(rows, row * ROW_WORDS) & mask;
      while (this.#slots[slot] !== EMPTY) slot = (slot + 1) & mask;
      this.#slots[slot] = row + 1;
    }
  }
}

/** Of the address at a place: its first and its last word, stirred. */
function hashOf(words: Uint32Array, at: number): number {
  const first = words[at] ?? 0;
  const last = words[at + KEY_WORDS - 1] ?? 0;
  const stirred = Math.imul(first ^ Math.imul(last, 0x85ebca6b), 0xc2b2ae35);
  return stirred ^ (stirred >>> 15);
}

/** Value of a hex digit's character code; -1 for anything else, upper case included. */
function digitOf(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  return code >= 0x61 && code <= 0x66 ? code - 0x57 : -1;
}
