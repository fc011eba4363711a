/** What is said of the block after which books and chain are compared, where it is not one and the same. */
import type { Hash32, Height } from "../../chain/hex.js";
import type { WatchCursor } from "../watch/watch-cursor.js";

/** Why there is no block after which both could be compared, and what to do; without a full stop. */
export function missingBlockText({
  height,
  blockHash,
}: Pick<WatchCursor, "height" | "blockHash">): string {
  return blockHash === undefined
    ? "no block is booked yet: start the deposit watcher, which starts with the kit, and let it read " +
        "the chain"
    : `the node has no block ${height}, the last one in the books: let it catch up; where the chain ` +
        "has lost blocks, see causeway recover";
}

/** In words: the books and the chain are not of the same block; undefined where they are. */
export function otherBlockText({
  height,
  blockHash,
  otherBlockHash,
}: {
  readonly height: Height;
  readonly blockHash: Hash32 | undefined;
  /** Hash that the chain has at this height; undefined where it is the same. */
  readonly otherBlockHash: Hash32 | undefined;
}): string | undefined {
  if (otherBlockHash === undefined) return undefined;
  return (
    `block ${height} is ${otherBlockHash} on the chain and ${blockHash} in the books: the chain lost ` +
    "blocks (see causeway recover), or this is another chain's node"
  );
}
