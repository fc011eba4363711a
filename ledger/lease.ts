/**
 * Leases: one process does a kind of work, others stand by. A lease saves work; its epoch, which
 * rises with every change of the holder and is proven in each commit, makes a process that lost it
 * unable to write.
 */
import type { Sql } from "../runtime/sql/sql.js";
import { storedAtoken } from "./stored-values.js";

/** A row that is leased: the lane of a wallet, or the one cursor. */
export type LeasedRow =
  | { readonly table: "hot_wallet"; readonly key: string }
  | { readonly table: "watch_lease"; readonly key: "blocks" };

const KEY_COLUMN = { hot_wallet: "wallet", watch_lease: "name" } as const;

/** The longest lease of a row that the settings give. */
export const MAX_LEASE_MS = 60_000;

/**
 * SQL: whether a lease until a time keeps others out. None lasts longer than it can have been given for: the
 * database's clock has gone back since, and whoever is still at work would have renewed it.
 * @param longestMs SQL: the longest that one like it is given for
 */
export function keepsOthersOut(until: string, longestMs = String(MAX_LEASE_MS)): string {
  return `(${until} BETWEEN clock_timestamp()
           AND clock_timestamp() + ${longestMs} * interval '1 millisecond')`;
}

/** Who wants it, and for how long without a renewal. */
export interface LeaseTerms {
  /** Name of the process, different for each. */
  readonly owner: string;
  /** `MAX_LEASE_MS` at most. */
  readonly leaseMs: number;
}

/**
 * Takes the lease when it is free, has run out, or is the same process' own: a standby of the database that
 * took over may lack the commit in which it was given back.
 * @returns its epoch; undefined while another holds it
 */
export async function acquireRow(
  sql: Sql,
  { table, key }: LeasedRow,
  { owner, leaseMs }: LeaseTerms,
): Promise<bigint | undefined> {
  const rows = await sql.query<{ lease_epoch: string }>(
    `WITH taken AS (
       UPDATE ${table}
          SET lease_owner = $2, lease_epoch = lease_epoch + 1,
              lease_expires_at = clock_timestamp() + $3::integer * interval '1 millisecond'
        WHERE ${KEY_COLUMN[table]} = $1
          AND (lease_owner IS NULL OR lease_owner = $2 OR NOT ${keepsOthersOut("lease_expires_at")})
       RETURNING lease_epoch)
     SELECT lease_epoch::text FROM taken`,
    [key, owner, leaseMs],
  );
  return rows[0] === undefined ? undefined : storedAtoken(rows[0].lease_epoch);
}

/** Holds the lease on. @returns false when it went to another */
export async function renewRow(
  sql: Sql,
  { table, key }: LeasedRow,
  { epoch, leaseMs }: { readonly epoch: bigint; readonly leaseMs: number },
): Promise<boolean> {
  const rows = await sql.query(
    `WITH held AS (
       UPDATE ${table}
          SET lease_expires_at = clock_timestamp() + $3::integer * interval '1 millisecond'
        WHERE ${KEY_COLUMN[table]} = $1 AND lease_epoch = $2::bigint AND lease_owner IS NOT NULL
       RETURNING 1)
     SELECT 1 FROM held`,
    [key, epoch.toString(), leaseMs],
  );
  return rows.length > 0;
}

/** Whether another process than the owner holds it now. */
export async function isRowOfOther(
  sql: Sql,
  { table, key }: LeasedRow,
  owner: string,
): Promise<boolean> {
  const rows = await sql.query(
    `SELECT 1 FROM ${table}
      WHERE ${KEY_COLUMN[table]} = $1 AND lease_owner <> $2 AND ${keepsOthersOut("lease_expires_at")}`,
    [key, owner],
  );
  return rows.length > 0;
}

/** Gives the lease back at an orderly stop, so that the next process need not wait for its end. */
export async function releaseRow(
  sql: Sql,
  { table, key }: LeasedRow,
  epoch: bigint,
): Promise<void> {
  await sql.query(
    `UPDATE ${table} SET lease_owner = NULL, lease_expires_at = NULL
      WHERE ${KEY_COLUMN[table]} = $1 AND lease_epoch = $2::bigint`,
    [key, epoch.toString()],
  );
}
