/**
 * Gas that had arrived at a deposit address in a block that a chain has lost, and whose payment has ended
 * otherwise since: it is in transit no more. Its move says that it arrived, as it did once.
 */
import type { Sql } from "../../runtime/sql/sql.js";
import { REMINED_KEY } from "../deposits/undone-decisions.js";
import { customerAccount, IN_TRANSIT, TREASURY } from "../journal/accounts.js";
import { LOSS_SUFFIXES } from "../journal/entry-keys.js";
import { postJournals } from "../journal/journal.js";
import { IS_NOT_REVERSED } from "../journal/reversals.js";
import { storedAtoken } from "../stored-values.js";

/** Before a move's number in the keys of entries about its arrival; a loss of blocks stands behind it. */
export const TOP_UP_KEY = "top-up:";

/**
 * SQL: entries `e` about the arrival of a move's gas that no loss of blocks has reversed.
 * @param move SQL of its number
 */
export const arrivalsOf = (move: string) => `
  ${LOSS_SUFFIXES} AS loss
  JOIN journal_entry e ON e.idem_key = '${TOP_UP_KEY}' || ${move} || loss.suffix
 WHERE ${IS_NOT_REVERSED}`;

/** SQL: of a move `m`, whether its gas had arrived once, and is at its address no more by the books. */
const HAS_LOST_ARRIVAL = `(m.kind = 'top-up' AND m.state = 'arrived'
  AND EXISTS (SELECT 1 FROM watch_cursor WHERE rewinds > 0)
  AND NOT EXISTS (SELECT 1 FROM ${arrivalsOf("m.id")}))`;

/**
 * SQL: of a move `m`, whether its gas is on its way once more: a chain lost the block in which it had
 * arrived, and its payment has not ended otherwise by the books. Mined again, it arrives again.
 */
export const IS_ON_ITS_WAY_AGAIN = `(${HAS_LOST_ARRIVAL}
  AND NOT EXISTS (SELECT 1 FROM journal_entry e
                   WHERE e.idem_key = 'treasury-move:' || m.id || ':end' AND ${IS_NOT_REVERSED})
  -- What such a payment did otherwise the second time is taken off there, too.
  AND NOT EXISTS (SELECT 1 FROM generate_series(0, (SELECT rewinds FROM watch_cursor)) AS loss (n)
                    JOIN journal_entry e
                      ON e.idem_key = '${REMINED_KEY}' || m.withdrawal_id || '-r' || loss.n
                   WHERE ${IS_NOT_REVERSED}))`;

/**
 * Gives the treasury back what arrived nowhere by the books; where the payment may still be mined, or is
 * there, nothing is done.
 * @param withdrawalIds payments of any customers
 */
export async function voidLostGas(tx: Sql, withdrawalIds: readonly string[]): Promise<void> {
  if (withdrawalIds.length === 0) return;
  const rows = await tx.query<Record<"id" | "asset" | "amount", string>>(
    `SELECT m.id::text, m.asset, m.amount_units::text AS amount
       FROM treasury_move m JOIN withdrawal w ON w.id = m.withdrawal_id AND w.phase = 'unpaid'
      WHERE m.withdrawal_id = ANY ($1::text[]) AND ${HAS_LOST_ARRIVAL}`,
    [withdrawalIds],
  );
  await postJournals(
    tx,
    rows.map(({ id, asset, amount }) => ({
      kind: "treasury.void",
      idemKey: `treasury-move:${id}:end`,
      effectiveHeight: null,
      postings: [
        {
          asset,
          debit: customerAccount(TREASURY),
          credit: IN_TRANSIT,
          amountUnits: storedAtoken(amount),
        },
      ],
    })),
  );
}

/** The same for payments that had ended before the entries about their arrival were reversed. */
export async function voidGasOf(tx: Sql, idemKeys: readonly string[]): Promise<void> {
  const moveIds = idemKeys
    .filter((key) => key.startsWith(TOP_UP_KEY))
    .map((key) => key.slice(TOP_UP_KEY.length).split("-")[0]);
  if (moveIds.length === 0) return;
  const rows = await tx.query<{ id: string }>(
    `SELECT withdrawal_id AS id FROM treasury_move WHERE id = ANY ($1::bigint[])`,
    [moveIds],
  );
  await voidLostGas(
    tx,
    rows.map(({ id }) => id),
  );
}
