/** The Cosmos transactions of a block as servers read them: one after the other. */
import type { MinedCosmosTransaction } from "../../chain/cosmos/cosmos-result.js";
import type { Height } from "../../chain/hex.js";
import { breathe } from "../../runtime/process/main-thread.js";
import type { ChainView } from "./chain-view.js";

/**
 * All of a block in order, others running in between: those of a full block, which is not among the
 * newest, take some hundred milliseconds to decode. Throws the signal's reason.
 */
export async function* cosmosOf(
  view: Pick<ChainView, "outline" | "cosmosTransaction">,
  height: Height,
  signal?: AbortSignal,
): AsyncGenerator<MinedCosmosTransaction> {
  const { length } = view.outline(height)?.cosmosPlaces ?? [];
  for (let item = 0; item < length; item++) {
    const mined = view.cosmosTransaction(height, item);
    if (mined === undefined) throw new RangeError(`block ${height} has no item ${item}`);
    yield mined;
    await breathe(signal);
  }
}
