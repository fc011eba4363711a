/**
 * Sweeps that were mined and that the watcher, who ends all others, did not end with their blocks. Of some
 * no block shows anything: on a chain that asks nothing for gas a token that moves nothing costs nothing,
 * either. Of others the ledger had lost the bytes when it booked what they moved, and did not know whose that
 * was.
 */
import type { Hash32, Height } from "../../chain/hex.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { SWEEP_OUT_KEY } from "../assets/lost-sweeps.js";
import { openIncident } from "../incidents.js";
import { LOSS_SUFFIXES } from "../journal/entry-keys.js";
import { IS_NOT_REVERSED } from "../journal/reversals.js";
import { STANDS } from "../requests/unexplained-outflows.js";
import { storedInteger } from "../stored-values.js";
import { lockCursor } from "../watch/watch-cursor.js";
import type { MinedReceipt } from "../withdrawals/slot-outcomes.js";
import { insertAttempts, type NewSweepAttempt } from "./sweep-attempt-rows.js";
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
 * Ends those that are open behind the booking of their blocks: what the ledger knew, and what moved anything,
 * was ended with it. Of what it did not know, what is booked as a sweep of nobody's brought all that left; an
 * outflow waits for a person's word, and the sweep for nothing any more.
 * @param mined in blocks that are booked, on the chain that the watcher has gone along
 * @param rewinds losses of blocks that the watcher had gone back for before the chain was asked
 */
export async function endBooked(
  database: SqlDatabase,
  mined: readonly MinedSweep[],
  rewinds: number,
): Promise<void> {
  if (mined.length === 0) return;
  await database.transaction(async (tx) => {
    const cursor = await lockCursor(tx);
    if (cursor.rewinds !== rewinds) return;
    const brought = await broughtBy(tx, mined);
    const short = await outflowsOf(tx, mined);
    const endOf = ({ id, height }: MinedSweep) => {
      if (brought.has(id)) return { state: "settled", reason: undefined, height };
      return short.has(id) ? { state: "failed", reason: OUTFLOW, height } : unmovedAt(height);
    };
    await endMined(
      tx,
      mined.map((sweep) => ({ ...endOf(sweep), id: sweep.id, hash: sweep.hash })),
    );
  });
}

/** Why one ends whose coins or tokens left, and did not all come. */
const OUTFLOW =
  "its own transaction, whose bytes were lost, is booked as an outflow: see causeway ledger open";

/** Those whose transaction is booked as a sweep. */
async function broughtBy(tx: Sql, mined: readonly MinedSweep[]): Promise<ReadonlySet<number>> {
  const rows = await tx.query<{ id: string }>(
    `SELECT s.id::text FROM unnest($1::bigint[], $2::text[]) AS input (id, hash)
       JOIN sweep s ON s.id = input.id
      CROSS JOIN ${LOSS_SUFFIXES} AS loss
       JOIN journal_entry e
         ON e.idem_key = '${SWEEP_OUT_KEY}' || input.hash || ':' || s.address || loss.suffix
      WHERE ${IS_NOT_REVERSED}`,
    [mined.map(({ id }) => id), mined.map(({ hash }) => hash)],
  );
  return new Set(rows.map(({ id }) => storedInteger(id)));
}

/** Those whose transaction is booked as an outflow that nobody asked for. */
async function outflowsOf(tx: Sql, mined: readonly MinedSweep[]): Promise<ReadonlySet<number>> {
  const rows = await tx.query<{ id: string }>(
    `SELECT s.id::text FROM unnest($1::bigint[], $2::text[]) AS input (id, hash)
       JOIN sweep s ON s.id = input.id
       JOIN foreign_outflow f ON f.tx_hash = input.hash AND f.wallet = s.address
      WHERE ${STANDS}`,
    [mined.map(({ id }) => id), mined.map(({ hash }) => hash)],
  );
  return new Set(rows.map(({ id }) => storedInteger(id)));
}

/**
 * Stores bytes that the ledger has lost, of intents without any: signed again, they are those that the chain
 * has. From then on they are a sweep's like those of all others, whichever wallet they went to.
 * @param mined by their receipts
 * @returns the sweeps that have them now
 */
export function regainAttempts(
  database: SqlDatabase,
  mined: readonly NewSweepAttempt[],
): Promise<ReadonlySet<number>> {
  return database.transaction(async (tx) => {
    if ((await openIncident(tx)) !== undefined) return new Set();
    return insertAttempts(
      tx,
      mined,
      `SELECT s.id FROM sweep s
        WHERE s.id IN (SELECT id FROM input) AND s.state = 'ready'
          AND NOT EXISTS (SELECT 1 FROM sweep_attempt t WHERE t.sweep_id = s.id)
        ORDER BY s.id FOR UPDATE`,
    );
  });
}
