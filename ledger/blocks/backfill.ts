/** Use case of the watcher: book the past of an address, from before it was registered. */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { noteFound } from "../assets/sweep-due.js";
import { openingEntry, type TokenBalance } from "../assets/token-opening.js";
import type { DepositAddress } from "../deposits/deposit-addresses.js";
import { depositEntries } from "../deposits/deposit-credit.js";
import { appendEvents } from "../events.js";
import { DEPOSIT_ADDRESSES, SUSPENSE } from "../journal/accounts.js";
import { postJournals } from "../journal/journal.js";
import { lockCursor } from "../watch/watch-cursor.js";
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

/**
 * Books what an address received and spent before it was registered: one suspense deposit per
 * incoming operation, one suspense debit per outgoing one. One transaction; a repeat does nothing.
 * @returns false when the past was booked already, or the chain lost blocks since it was read
 * @throws DEPOSIT_CONFLICT
 */
export async function commitBackfill(
  database: SqlDatabase,
  past: {
    readonly lease: WatchLease;
    /** Losses of blocks that the watcher had gone back for when it was read. */
    readonly rewinds: number;
    readonly address: DepositAddress;
    readonly inflows: readonly NewDeposit[];
    readonly outflows: readonly PastOutflow[];
    readonly tokens: readonly TokenBalance[];
  },
): Promise<boolean> {
  const done = await database.transaction(async (tx) => {
    await proveWatchLease(tx, past.lease);
    // The cursor's lock orders all writers of deposits, so that list positions never move.
    const cursor = await lockCursor(tx);
    if (cursor.rewinds !== past.rewinds) return false;
    const rows = await tx.query<{ taken: number }>(
      `WITH taken AS (
         UPDATE deposit_address SET backfilled = true WHERE index = $1 AND NOT backfilled RETURNING 1
       ) SELECT count(*)::integer AS taken FROM taken`,
      [past.address.index],
    );
    if (rows[0]?.taken !== 1) return false;
    const strayed = past.inflows
      .map(placedAfter(cursor))
      .map((inflow) => ({ ...inflow, creditable: false }));
    await insertDeposits(
      tx,
      strayed.map((deposit) => ({ deposit, status: "suspense" })),
    );
    const booked = strayed.map((deposit) => ({ ...deposit, id: depositId(deposit) }));
    await postJournals(tx, [
      ...(await depositEntries(tx, { strayed: booked, credited: [] }, cursor.rewinds)).entries,
      ...past.tokens.map((balance) => openingEntry(past.address, balance, past.rewinds)),
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
    const { address, fromHeight } = past.address;
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
