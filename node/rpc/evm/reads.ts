/** From a client's block reference to a height of the read model (D11). */
import type { Height } from "../../../chain/hex.js";
import type { ChainView } from "../../view/chain-view.js";
import { headerNotFound, historyPruned } from "./errors.js";
import type { BlockRef } from "./params.js";

/** Height of the block, or undefined where the chain has no such block (yet). */
export function findHeight(view: ChainView, ref: BlockRef): Height | undefined {
  switch (ref.kind) {
    case "height":
      return ref.height <= view.head().height ? ref.height : undefined;
    case "hash":
      return view.heightOfHash(ref.hash);
    default:
      return view.head().height;
  }
}

/**
 * Height of a block whose content is read, or undefined where the chain has no such block (yet).
 * @throws HISTORY_PRUNED where the block is named by a height below the oldest one here; the
 *   hash of such a block is not known any more
 */
export function findBlock(view: ChainView, ref: BlockRef): Height | undefined {
  const height = findHeight(view, ref);
  if (height !== undefined) assertBlocks(view, { from: height, to: height });
  return height;
}

/** Throws HISTORY_PRUNED where a block of the range, both ends included, is not here any more. */
export function assertBlocks(view: ChainView, range: { from: Height; to: Height }): void {
  const isGenesisOnly = range.to === 0;
  if (!isGenesisOnly && Math.max(range.from, 1) < view.oldest().block) throw historyPruned();
}

/** Height whose state is read; latest where the client named none. Throws HEADER_NOT_FOUND. */
export function stateHeight(view: ChainView, ref: BlockRef | undefined): Height {
  const height = findHeight(view, ref ?? { kind: "latest" });
  if (height === undefined) throw headerNotFound();
  return height;
}
