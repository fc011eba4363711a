/**
 * Outflows that nobody asked for: which of them stand and wait for a person, and which requests one of them
 * may have paid.
 */
import type { Hash32 } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import type { NewEvent } from "../events.js";
import { WAITING_STATUSES } from "../withdrawals/withdrawal-status.js";
import { stepWithdrawals } from "../withdrawals/withdrawal-steps.js";
import { toWithdrawalId, type WithdrawalId } from "../withdrawals/withdrawal-id.js";
import { stands } from "./lost-heights.js";

/** SQL: of an outflow `f`, whether no loss of blocks that the watcher went back for has taken it. */
export const STANDS = stands("f.height", "f.rewinds");

/** SQL: of an outflow `f`, whether it stands, nothing explains it, and nobody acknowledged it. */
export const UNACKNOWLEDGED = `${STANDS} AND explanation_of(f.wallet, f.tx_hash) IS NULL
  AND NOT EXISTS (SELECT 1 FROM foreign_transaction_acknowledged a
                   WHERE a.wallet = f.wallet AND a.tx_hash = f.tx_hash)`;

/**
 * Freezes those of the waiting withdrawals that are to end unpaid while an outflow of a hot wallet which
 * took as much waits for a person: somebody may have paid them by hand, and the hold would go back, too. To
 * whom it went is the chain's to say. The caller appends the events last.
 */
export async function freezeUnexplained(
  tx: Sql,
  ids: readonly WithdrawalId[],
): Promise<readonly NewEvent[]> {
  return ids.length === 0 ? [] : freezeTaken(tx, { ids });
}

/**
 * Freezes all waiting withdrawals that ask for as much as this outflow took of a hot wallet, while nothing
 * explains it and nobody acknowledged it. The caller appends the events last.
 */
export function freezeAsMuch(tx: Sql, hash: Hash32): Promise<readonly NewEvent[]> {
  return freezeTaken(tx, { hash });
}

async function freezeTaken(
  tx: Sql,
  which: { readonly ids: readonly WithdrawalId[] } | { readonly hash: Hash32 },
): Promise<readonly NewEvent[]> {
  const matches = await tx.query<{ id: string; hash: string }>(
    `SELECT DISTINCT ON (w.id) w.id, f.tx_hash AS hash
       FROM withdrawal w
       JOIN foreign_outflow f ON f.asset = w.asset AND f.amount_units = w.amount_units
       JOIN wallet h ON h.address = f.wallet
      WHERE ($1::text[] IS NULL OR w.id = ANY ($1)) AND ($3::text IS NULL OR f.tx_hash = $3)
        AND w.phase = 'waiting' AND w.status = ANY ($2::text[]) AND ${UNACKNOWLEDGED}
      ORDER BY w.id, f.id`,
    ["ids" in which ? which.ids : null, WAITING_STATUSES, "hash" in which ? which.hash : null],
  );
  const steps = matches.map(({ id, hash }) => ({
    id: toWithdrawalId(id),
    reason:
      `transaction ${hash}, unknown to the ledger, took the same amount: look where it went, then ` +
      "causeway withdrawals release",
  }));
  return (await stepWithdrawals(tx, "frozen", steps, WAITING_STATUSES)).events;
}
