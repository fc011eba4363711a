/**
 * Which code logged a token's payment: what other code than was accepted logs proves nothing, and the watcher
 * is who looks at it.
 */
import type { Height } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { pausedAfterSql } from "../assets/token-state.js";
import { storedInteger } from "../stored-values.js";
import type { SlotReceipt } from "./recorded-inclusions.js";

/** Pure: whether what a token logged in a block is of accepted code: what came before other code is. */
export function isOfAcceptedCode(height: Height, pausedAfter: Height | undefined): boolean {
  return pausedAfter === undefined || height < pausedAfter;
}

/**
 * Without the payments of tokens that no accepted code is known to have logged: those in blocks that the
 * watcher has not booked, which are asked about again, and those of other code that it has found since they
 * were read.
 * @param watchedHeight of the cursor, read before in the same transaction: the commit that books a block
 *   pauses the tokens that ran other code after it
 */
export async function withKnownCode(
  tx: Sql,
  receipts: readonly SlotReceipt[],
  watchedHeight: Height,
): Promise<readonly SlotReceipt[]> {
  const isPayment = ({ isSuccess, cancelled }: SlotReceipt) => isSuccess && cancelled === undefined;
  const payments = receipts.filter(isPayment);
  if (payments.length === 0) return receipts;
  const rows = await tx.query<{ id: string; paused_after: string | null }>(
    `SELECT s.id::text, ${pausedAfterSql("w.asset")} AS paused_after
       FROM nonce_slot s JOIN withdrawal w ON w.id = s.withdrawal_id
       JOIN asset a ON a.symbol = w.asset AND a.contract IS NOT NULL
      WHERE s.id = ANY ($1::bigint[])`,
    [payments.map(({ slotId }) => slotId)],
  );
  const ofTokens = new Map(rows.map((row) => [row.id, row.paused_after]));
  return receipts.filter(({ slotId, blockNumber }) => {
    const after = ofTokens.get(slotId);
    if (after === undefined) return true;
    const pausedAfter = after === null ? undefined : storedInteger(after);
    return blockNumber <= watchedHeight && isOfAcceptedCode(blockNumber, pausedAfter);
  });
}
