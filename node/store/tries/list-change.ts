/**
 * How two versions of a list in RLP differ, item by item: of a branch of 532 bytes a block mostly
 * changes one child of 33.
 */
import { encodedRlpItems } from "../../../chain/encoding/rlp.js";
import { encodeRlpListOfEncoded } from "../../../chain/encoding/rlp-writer.js";
import { RlpReader } from "../../../chain/encoding/rlp-reader.js";

/** What a list was before it was changed. */
export interface ListChange {
  /** Bit n: item n was another one. */
  readonly mask: number;
  /** Those items in their order, each as it was encoded. */
  readonly items: readonly Uint8Array[];
}

/** Items that a mask can name: children of a branch, whose value behind them is always empty. */
export const MASK_ITEMS = 16;

/**
 * Which items of a list are others in its next version.
 * @param before RLP of one list, as is `after`
 * @returns undefined where the two have not as many items, where more than can be named differ, and
 * where the whole list is hardly longer: then who reads it needs to look no further
 * @throws INVALID_RLP
 */
export function listChange(before: Uint8Array, after: Uint8Array): ListChange | undefined {
  const [was, is] = [new RlpReader(before), new RlpReader(after)];
  const items: Uint8Array[] = [];
  let [mask, sizeBytes] = [0, 0];
  const isAlike = was.list(() =>
    is.list(() => {
      let isNamed = true;
      for (let index = 0; was.hasMore && is.hasMore; index++) {
        const [wasFrom, isFrom] = [was.offset, is.offset];
        was.skip();
        is.skip();
        const length = was.offset - wasFrom;
        let same = length === is.offset - isFrom ? 0 : -1;
        while (same >= 0 && same < length && before[wasFrom + same] === after[isFrom + same])
          same += 1;
        if (same === length) continue;
        isNamed &&= index < MASK_ITEMS;
        mask |= 1 << index;
        sizeBytes += length;
        items.push(before.subarray(wasFrom, was.offset));
      }
      const isAsLong = !was.hasMore && !is.hasMore;
      while (was.hasMore) was.skip();
      while (is.hasMore) is.skip();
      return isNamed && isAsLong;
    }),
  );
  return isAlike && sizeBytes * 4 <= before.length * 3 ? { mask, items } : undefined;
}

/**
 * A list with some of its items put back.
 * @param items by place; undefined leaves the one that is there
 * @throws INVALID_RLP
 */
export function withItems(
  list: Uint8Array,
  items: readonly (Uint8Array | undefined)[],
): Uint8Array {
  return encodeRlpListOfEncoded(encodedRlpItems(list).map((item, index) => items[index] ?? item));
}
