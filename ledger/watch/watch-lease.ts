/** The lease of the one watcher that books blocks; others stand by. See `../lease.ts`. */
import { AppError } from "../../chain/errors.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { acquireRow, isRowOfOther, type LeaseTerms, releaseRow, renewRow } from "../lease.js";

const BLOCKS = { table: "watch_lease", key: "blocks" } as const;

/** The right to book blocks, which one process has at a time. */
export interface WatchLease {
  /** Rises with every change of the holder. */
  readonly epoch: bigint;
}

/** Another watcher has taken the cursor over: whatever was prepared is dropped. */
export class WatchLeaseLostError extends AppError<"WATCH_LEASE_LOST"> {
  /** Of the lease that was lost: the process may have taken another one since. */
  readonly epoch: bigint;

  constructor({ epoch }: WatchLease) {
    super("WATCH_LEASE_LOST", "another watcher books blocks now", {
      details: { epoch: epoch.toString() },
      retriable: true,
    });
    this.epoch = epoch;
  }
}

/** Takes the lease when it is free or has run out. @returns undefined while another holds it */
export async function acquireWatchLease(
  sql: Sql,
  terms: LeaseTerms,
): Promise<WatchLease | undefined> {
  const epoch = await acquireRow(sql, BLOCKS, terms);
  return epoch === undefined ? undefined : { epoch };
}

/** Holds the lease on. @returns false when it went to another */
export function renewWatchLease(
  sql: Sql,
  { epoch }: WatchLease,
  { leaseMs }: { readonly leaseMs: number },
): Promise<boolean> {
  return renewRow(sql, BLOCKS, { epoch, leaseMs });
}

/** Whether another process than this one holds the lease now. */
export function isWatchLeaseOfOther(
  sql: Sql,
  { owner }: Pick<LeaseTerms, "owner">,
): Promise<boolean> {
  return isRowOfOther(sql, BLOCKS, owner);
}

/** Gives the lease back at an orderly stop. */
export function releaseWatchLease(sql: Sql, { epoch }: WatchLease): Promise<void> {
  return releaseRow(sql, BLOCKS, epoch);
}

/**
 * Proves the lease for the rest of the transaction: who takes it over waits for the commit. A
 * process that is stopped meanwhile loses its connection after 5 s, and what it had not committed
 * never happened.
 * @throws WATCH_LEASE_LOST
 */
export async function proveWatchLease(tx: Sql, { epoch }: WatchLease): Promise<void> {
  const rows = await tx.query(
    `SELECT 1, set_config('idle_in_transaction_session_timeout', '5000', true)
       FROM watch_lease WHERE name = $1 AND lease_epoch = $2::bigint FOR SHARE`,
    [BLOCKS.key, epoch.toString()],
  );
  if (rows.length > 0) return;
  throw new WatchLeaseLostError({ epoch });
}
