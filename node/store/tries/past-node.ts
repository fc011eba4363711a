/**
 * What reverse diffs tell of one node: `[name, node]`, the whole as it was and empty where there was
 * none; or `[name, mask, items]`, only those items of it that became others (ADR 78). Read from the
 * oldest diff on, of each item the first word counts; so diffs that follow each other can be told as
 * one (ADR 95).
 */
import { RlpEncoded, type RlpInput } from "../../../chain/encoding/rlp-writer.js";
import type { RlpReader } from "../../../chain/encoding/rlp-reader.js";
import { bytesToBigint } from "../../../chain/hex.js";
import { StoreError } from "../database.js";
import { type ListChange, MASK_ITEMS, withItems } from "./list-change.js";

/** What a diff tells of a node. */
export interface ToldNode {
  readonly name: Uint8Array;
  readonly told: readonly RlpInput[];
  /** About the bytes that it takes. */
  readonly sizeBytes: number;
}

/** Tells the whole of a node. @param whole empty where there was none */
export function toldWhole(name: Uint8Array, whole: Uint8Array): ToldNode {
  return { name, told: [name, whole], sizeBytes: name.length + whole.length };
}

/** Tells items of a node. */
export function toldItems(name: Uint8Array, { mask, items }: ListChange): ToldNode {
  const maskBytes = mask < 0x100 ? Uint8Array.of(mask) : Uint8Array.of(mask >>> 8, mask);
  let sizeBytes = name.length;
  for (const item of items) sizeBytes += item.length;
  const told = [name, maskBytes, items.map((item) => new RlpEncoded(item))];
  return { name, told, sizeBytes };
}

/** The error for a diff that is not what was written. */
export function damagedDiff(cause?: unknown): StoreError {
  return new StoreError("STORE_CORRUPT", "a reverse diff is damaged", { cause });
}

/** What the diffs that were looked at, from the oldest on, tell of one node. */
export class PastNode {
  /** What it was before the first of them that tells the whole; empty where there was none. */
  private whole: Uint8Array | undefined;
  /** By place, items that were others before that; of each the oldest. */
  private readonly items: (Uint8Array | undefined)[] = [];

  /** Whether no later diff, nor what it is now, can tell more of it. */
  get isWhole(): boolean {
    return this.whole !== undefined;
  }

  /**
   * Takes over what the next diff tells.
   * @param reader stands behind the name
   * @throws INVALID_RLP, and RangeError where a mask does not fit its items
   */
  learn(reader: RlpReader): void {
    const first = reader.bytes();
    if (!reader.hasMore) {
      this.whole ??= new Uint8Array(first);
      return;
    }
    const mask = Number(bytesToBigint(first));
    const items = reader.items((list) => list.encoded());
    if (this.isWhole) return;
    let next = 0;
    for (let index = 0; index < MASK_ITEMS; index++) {
      if ((mask & (1 << index)) === 0) continue;
      const item = items[next++];
      // Copied: a view would keep its page in memory.
      if (item !== undefined) this.items[index] ??= new Uint8Array(item);
    }
    if (next !== items.length) throw new RangeError("a mask does not fit its items");
  }

  /**
   * The node before the first block that changed it; undefined where there was none.
   * @param present what it is now; asked for where the diffs do not tell the whole of it
   * @throws STORE_CORRUPT
   */
  get(present: () => Uint8Array | undefined): Uint8Array | undefined {
    const { items } = this;
    const node = this.whole ?? present();
    if (node === undefined || node.length === 0) {
      if (items.length > 0) throw damagedDiff();
      return undefined;
    }
    return items.length === 0 ? node : withItems(node, items);
  }

  /** What one diff in the place of all that were looked at tells. @throws STORE_CORRUPT */
  toldAs(name: Uint8Array): ToldNode {
    const { whole, items } = this;
    if (whole !== undefined) return toldWhole(name, this.get(() => whole) ?? whole);
    let mask = 0;
    for (const [index, item] of items.entries()) if (item !== undefined) mask |= 1 << index;
    return toldItems(name, { mask, items: items.filter((item) => item !== undefined) });
  }
}
