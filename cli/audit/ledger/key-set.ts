/** Which keys of rows were seen, as bits: a ledger has millions of rows, their keys lie side by side. */

/** Keys whose bits lie together. */
const PAGE_KEYS = 8_192;

/** A set of whole numbers from 0 on. */
export class KeySet {
  readonly #pages = new Map<number, Uint8Array>();

  /** Adds a key; false where it was there. */
  add(key: number): boolean {
    const number = Math.floor(key / PAGE_KEYS);
    const page = this.#pages.get(number) ?? new Uint8Array(PAGE_KEYS / 8);
    this.#pages.set(number, page);
    const place = key % PAGE_KEYS;
    const [at, bit] = [Math.floor(place / 8), 1 << (place % 8)];
    const byte = page[at] ?? 0;
    page[at] = byte | bit;
    return (byte & bit) === 0;
  }
}
