/** From a client's block reference to a height of the read model (D11). */
import type { Height } from "../../../chain/hex.js";
import type { ChainView } from "../../chain-view.js";
import { headerNotFound } from "./errors.js";
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

/** Height whose state is read; latest where the client named none. Throws HEADER_NOT_FOUND. */
export function stateHeight(view: ChainView, ref: BlockRef | undefined): Height {
  const height = findHeight(view, ref ?? { kind: "latest" });
  if (height === undefined) throw headerNotFound();
  return height;
}
