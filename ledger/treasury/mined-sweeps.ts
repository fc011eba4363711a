/**
 * Sweeps that were mined and of which no block shows anything: on a chain that asks nothing for gas a token
 * that moves nothing costs nothing, either, and the watcher, who ends all others, has nothing to book.
 */
import type { Hash32, Height } from "../../chain/hex.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { lockCursor } from "../watch/watch-cursor.js";
import type { MinedReceipt } from "../withdrawals/slot-outcomes.js";
import type { Sweep } from "./sweeps.js";
import { endMined, unmovedAt } from "./treasury-flows.js";

/** A sweep with the one of its transactions that is in a block. */
export interface MinedSweep {
  readonly id: number;
  readonly hash: Hash32;
  readonly height: Height;
}

/** Where a sweep is mined by these receipts; nothing where it is not. */
export function minedOf(
  { id, address, attempts }: Pick<Sweep, "id" | "address" | "attempts">,
  receipts: ReadonlyMap<Hash32, Pick<MinedReceipt, "from" | "height">>,
): readonly MinedSweep[] {
  return attempts.flatMap(({ hash }) => {
    const receipt = receipts.get(hash);
    return receipt?.from === address ? [{ id, hash, height: receipt.height }] : [];
  });
}

/**
 * Ends those that are open behind the booking of their blocks: what moved anything was ended with it.
 * @param mined in blocks that are booked, on the chain that the watcher has gone along
 * @param rewinds losses of blocks that the watcher had gone back for before the chain was asked
 */
export async function endUnmoved(
  database: SqlDatabase,
  mined: readonly MinedSweep[],
  rewinds: number,
): Promise<void> {
  if (mined.length === 0) return;
  await database.transaction(async (tx) => {
    const cursor = await lockCursor(tx);
    if (cursor.rewinds !== rewinds) return;
    await endMined(
      tx,
      mined.map(({ id, hash, height }) => ({ id, hash, ...unmovedAt(height) })),
    );
  });
}
