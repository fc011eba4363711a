/** What the trie tests share: a node store in memory, seeded randomness, and keys that collide. */
import type { TrieNodeReader, TrieWrite } from "../../../node/store/tries/trie-port.js";
import type { TrieUpdate } from "../../../node/state/trie.js";

/** Values short enough to be embedded, at the 55-byte edge of RLP, and longer than any account. */
const VALUE_SIZES_BYTES = [1, 1, 2, 5, 28, 33, 55, 56, 80, 300];

/** A node store in memory that counts its reads. */
export class MemoryStore implements TrieNodeReader {
  readonly nodes = new Map<string, string>();
  reads = 0;

  get(owner: string, path: Uint8Array): Uint8Array | undefined {
    this.reads += 1;
    const node = this.nodes.get(placeOf(owner, path));
    return node === undefined ? undefined : Uint8Array.from(Buffer.from(node, "hex"));
  }

  apply(writes: readonly TrieWrite[]): void {
    for (const { owner, path, node } of writes) {
      if (node === undefined) this.nodes.delete(placeOf(owner, path));
      else this.nodes.set(placeOf(owner, path), toHex(node));
    }
  }

  /** The stored nodes of one owner, in a fixed order. */
  dump(owner: string): [string, string][] {
    const own = [...this.nodes].filter(([place]) => place.startsWith(`${owner}:`));
    return own.toSorted(([left], [right]) => (left < right ? -1 : 1));
  }
}

/** Owner and path as text. */
export function placeOf(owner: string, path: Uint8Array): string {
  return `${owner}:${[...path].map((nibble) => nibble.toString(16)).join("")}`;
}

/** Bytes as hex digits without a prefix. */
export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

/** Seeded generator (xorshift32); the seed must not be 0. */
export class Random {
  constructor(private state: number) {}

  /** 0 <= result < limit. */
  below(limit: number): number {
    this.state ^= this.state << 13;
    this.state ^= this.state >>> 17;
    this.state ^= this.state << 5;
    return (this.state >>> 0) % limit;
  }

  bytes(size: number): Uint8Array {
    return Uint8Array.from({ length: size }, () => this.below(256));
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error("nothing to pick from");
    return item;
  }

  value(): Uint8Array {
    return this.bytes(this.pick(VALUE_SIZES_BYTES));
  }

  /** Different keys that agree except in some nibbles: long extensions and embedded nodes. */
  crowdedKeys(count: number): Uint8Array[] {
    const base = this.bytes(32);
    const keys = new Map<string, Uint8Array>();
    while (keys.size < count) {
      const digits = toHex(base).split("");
      for (const at of [0, 1, 7, 8, 40, 61, 62, 63]) {
        if (this.below(2) === 0) digits[at] = this.below(4).toString(16);
      }
      const hex = digits.join("");
      keys.set(hex, Uint8Array.from(Buffer.from(hex, "hex")));
    }
    return [...keys.values()];
  }

  /** A batch over different keys of the pool; about `deletePercent` of them are deletes. */
  batch(pool: readonly Uint8Array[], size: number, deletePercent: number): TrieUpdate[] {
    const updates = new Map<string, TrieUpdate>();
    for (let index = 0; index < size; index++) {
      const key = this.pick(pool);
      const value = this.below(100) < deletePercent ? undefined : this.value();
      updates.set(toHex(key), { key, value });
    }
    return [...updates.values()];
  }
}

/** The seed of this run: from the environment to repeat a failure, else a fixed one. Printed. */
export function seedOf(test: string): number {
  const seed = Number(process.env["CAUSEWAY_TEST_SEED"] ?? "20240607");
  process.stdout.write(`${test}: seed ${seed} (CAUSEWAY_TEST_SEED)\n`);
  return seed;
}
