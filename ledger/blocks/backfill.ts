/** Use case of the watcher: book the past of an address, from before it was registered. */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { noteFound } from "../assets/sweep-due.js";
import { openingEntry, type TokenBalance, withoutOpened } from "../assets/token-opening.js";
import type { DepositAddress } from "../deposits/deposit-addresses.js";
import { depositEntries } from "../deposits/deposit-credit.js";
import { appendEvents } from "../events.js";
import { DEPOSIT_ADDRESSES, SUSPENSE } from "../journal/accounts.js";
import { postJournals } from "../journal/journal.js";
import { lockCursor, type WatchCursor } from "../watch/watch-cursor.js";
import { proveWatchLease, type WatchLease } from "../watch/watch-lease.js";
import {
  depositEvent,
  depositId,
  insertDeposits,
  type NewDeposit,
  placedAfter,
} from "./new-deposits.js";

/** An outgoing operation of an address before it was registered. */
export interface PastOutflow {
  readonly address: Address;
  readonly asset: string;
  /** Greater than zero, in the asset's smallest unit. */
  readonly amountUnits: bigint;
  readonly height: Height;
  readonly txHash: Hash32;
  readonly txIndex: number;
  readonly opIndex: number;
}

/** Who books a past, and what it was read of. */
interface PastReader {
  readonly lease: WatchLease;
  /** As of `BlockStep`. */
  readonly assertStands: (tx: Sql) => Promise<void>;
  /** Losses of blocks that the watcher had gone back for when it was read. */
  readonly rewinds: number;
}

/**
 * Books what an address received and spent before it was registered: one suspense deposit per
 * incoming operation, one suspense debit per outgoing one. One transaction; a repeat does nothing.
 * @returns false when the past was booked already, or the chain lost blocks since it was read
 * @throws DEPOSIT_CONFLICT; RECOVERY
 */
export async function commitBackfill(
  database: SqlDatabase,
  past: PastReader & {
    readonly address: DepositAddress;
    readonly inflows: readonly NewDeposit[];
    readonly outflows: readonly PastOutflow[];
    readonly tokens: readonly TokenBalance[];
  },
): Promise<boolean> {
  const done = await database.transaction(async (tx) => {
    const { cursor, taken } = await takeWaiting(tx, past, [past.address]);
    if (taken === 0) return false;
    const strayed = past.inflows
      .map(placedAfter(cursor))
      .map((inflow) => ({ ...inflow, creditable: false }));
    await insertDeposits(
      tx,
      strayed.map((deposit) => ({ deposit, status: "suspense" })),
    );
    const { address, fromHeight } = past.address;
    const held = past.tokens.map((balance) => ({ ...balance, address }));
    const opening = await withoutOpened(tx, held, past.rewinds);
    const booked = strayed.map((deposit) => ({ ...deposit, id: depositId(deposit) }));
    await postJournals(tx, [
      ...(await depositEntries(tx, { strayed: booked, credited: [] }, cursor.rewinds)).entries,
      ...opening.map((balance) => openingEntry(past.address, balance, past.rewinds)),
      ...past.outflows.map((outflow) => ({
        kind: "deposit.past_outflow",
        idemKey: `past-outflow:${depositId({ ...outflow, rewind: past.rewinds })}`,
        effectiveHeight: outflow.height,
        // Both, because no other table says which address it was.
        memo: `${outflow.txHash} ${outflow.address}`,
        postings: [
          {
            asset: outflow.asset,
            debit: SUSPENSE,
            credit: DEPOSIT_ADDRESSES,
            amountUnits: outflow.amountUnits,
          },
        ],
      })),
    ]);
    await noteFound(
      tx,
      past.tokens.map(({ asset }) => ({ address, asset, height: fromHeight - 1 })),
    );
    await appendEvents(
      tx,
      strayed.map((deposit) => depositEvent("deposit.suspense", deposit)),
    );
    failpoint("watcher.before-backfill-commit");
    return true;
  });
  failpoint("watcher.after-backfill-commit");
  return done;
}

/**
 * Notes that nothing came to addresses, or left them, before they were registered: all in one commit, because
 * each holds up the blocks that are being booked.
 * @returns how many waited for it; none where the chain lost blocks since it was read
 * @throws RECOVERY
 */
export async function commitEmptyPasts(
  database: SqlDatabase,
  reader: PastReader,
  addresses: readonly DepositAddress[],
): Promise<number> {
  if (addresses.length === 0) return 0;
  const done = await database.transaction(async (tx) => {
    const { taken } = await takeWaiting(tx, reader, addresses);
    failpoint("watcher.before-backfill-commit");
    return taken;
  });
  failpoint("watcher.after-backfill-commit");
  return done;
}

/** Takes those that still wait for their past. The cursor's lock orders all writers of deposits. */
async function takeWaiting(
  tx: Sql,
  { lease, assertStands, rewinds }: PastReader,
  addresses: readonly DepositAddress[],
): Promise<{ readonly cursor: WatchCursor; readonly taken: number }> {
  await proveWatchLease(tx, lease);
  // Held, so that list positions never move.
  const cursor = await lockCursor(tx);
  // One of before would lack who else had these addresses, and nobody would look at their pasts again.
  await assertStands(tx);
  if (cursor.rewinds !== rewinds) return { cursor, taken: 0 };
  const rows = await tx.query<{ taken: number }>(
    `WITH taken AS (
       UPDATE deposit_address SET backfilled = true
        WHERE index = ANY ($1::bigint[]) AND NOT backfilled RETURNING 1
     ) SELECT count(*)::integer AS taken FROM taken`,
    [addresses.map(({ index }) => index)],
  );
  return { cursor, taken: rows[0]?.taken ?? 0 };
}
