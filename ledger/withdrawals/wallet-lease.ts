/**
 * The hot wallet's row: its next nonce and the lease of the one worker that takes slots and signs.
 * The lease saves work; the epoch it carries makes a worker that lost it unable to write.
 */
import type { Address } from "../../chain/address.js";
import { AppError } from "../../chain/errors.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { storedAtoken, storedInteger } from "../stored-values.js";

/** Another worker has taken the wallet over: whatever was prepared is dropped. */
export class LeaseLostError extends AppError<"LEASE_LOST"> {}

/** Who works for a wallet, at which turn. */
export interface WalletLease {
  readonly wallet: Address;
  /** Rises with every change of the holder. */
  readonly epoch: bigint;
}

/** The row of a wallet. */
export interface HotWalletState {
  /** The nonce that the next slot gets. */
  readonly nextNonce: bigint;
  /** Highest block whose effect on the wallet is booked. */
  readonly settledHeight: number;
  /** Fees of the wallet's transactions that were booked today (UTC). */
  readonly feesOfDayAtoken: bigint;
}

interface HotWalletRow {
  readonly next_nonce: string;
  readonly settled_height: string;
  readonly fees_of_day: string;
}

const HOT_WALLET_COLUMNS = `next_nonce::text, settled_height::text,
  (CASE WHEN fee_day = (now() AT TIME ZONE 'UTC')::date THEN fee_day_atoken ELSE 0 END)::text
    AS fees_of_day`;

function toHotWallet(row: HotWalletRow): HotWalletState {
  return {
    nextNonce: storedAtoken(row.next_nonce),
    settledHeight: storedInteger(row.settled_height),
    feesOfDayAtoken: storedAtoken(row.fees_of_day),
  };
}

/** Reads the row; undefined before the first start. */
export async function readHotWallet(
  sql: Sql,
  wallet: Address,
): Promise<HotWalletState | undefined> {
  const rows = await sql.query<HotWalletRow>(
    `SELECT ${HOT_WALLET_COLUMNS} FROM hot_wallet WHERE wallet = $1`,
    [wallet],
  );
  const row = rows[0];
  return row === undefined ? undefined : toHotWallet(row);
}

/**
 * Makes the wallet's rows at the very first start, with the nonce that the chain shows; a wallet
 * that has rows keeps them.
 */
export async function createHotWallet(
  sql: Sql,
  options: { readonly wallet: Address; readonly firstNonce: bigint },
): Promise<void> {
  await sql.query(
    `INSERT INTO hot_wallet (wallet, next_nonce) VALUES ($1, $2::numeric)
     ON CONFLICT (wallet) DO NOTHING`,
    [options.wallet, options.firstNonce.toString()],
  );
  // The switch exists from the start, so that signing can lock it (see lockFreeze).
  await sql.query(
    `INSERT INTO signing_freeze (wallet, frozen, reason) VALUES ($1, false, '')
     ON CONFLICT (wallet) DO NOTHING`,
    [options.wallet],
  );
}

/** Takes the lease when it is free or has run out. @returns undefined while another holds it */
export async function acquireLease(
  sql: Sql,
  options: { readonly wallet: Address; readonly owner: string; readonly leaseMs: number },
): Promise<WalletLease | undefined> {
  const rows = await sql.query<{ lease_epoch: string }>(
    `WITH taken AS (
       UPDATE hot_wallet
          SET lease_owner = $2, lease_epoch = lease_epoch + 1,
              lease_expires_at = clock_timestamp() + $3::integer * interval '1 millisecond'
        WHERE wallet = $1
          AND (lease_owner IS NULL OR lease_expires_at < clock_timestamp())
       RETURNING lease_epoch)
     SELECT lease_epoch::text FROM taken`,
    [options.wallet, options.owner, options.leaseMs],
  );
  const row = rows[0];
  return row === undefined
    ? undefined
    : { wallet: options.wallet, epoch: storedAtoken(row.lease_epoch) };
}

/** Holds the lease on. @returns false when it went to another */
export async function renewLease(
  sql: Sql,
  lease: WalletLease,
  options: { readonly leaseMs: number },
): Promise<boolean> {
  const rows = await sql.query(
    `WITH held AS (
       UPDATE hot_wallet
          SET lease_expires_at = clock_timestamp() + $3::integer * interval '1 millisecond'
        WHERE wallet = $1 AND lease_epoch = $2::bigint AND lease_owner IS NOT NULL
       RETURNING wallet)
     SELECT wallet FROM held`,
    [lease.wallet, lease.epoch.toString(), options.leaseMs],
  );
  return rows.length > 0;
}

/** Gives the lease back at an orderly stop, so that the next worker need not wait for its end. */
export async function releaseLease(sql: Sql, lease: WalletLease): Promise<void> {
  await sql.query(
    `UPDATE hot_wallet SET lease_owner = NULL, lease_expires_at = NULL
      WHERE wallet = $1 AND lease_epoch = $2::bigint`,
    [lease.wallet, lease.epoch.toString()],
  );
}

/**
 * Locks the wallet's row for the rest of the transaction and proves that the lease still holds.
 * A process that is stopped while it holds this lock loses its connection after 5 s, so that
 * another worker can go on; what it had not committed never happened.
 * @throws LEASE_LOST
 */
export async function lockWallet(tx: Sql, lease: WalletLease): Promise<HotWalletState> {
  const rows = await tx.query<HotWalletRow>(
    `SELECT ${HOT_WALLET_COLUMNS},
            set_config('idle_in_transaction_session_timeout', '5000', true)
       FROM hot_wallet WHERE wallet = $1 AND lease_epoch = $2::bigint FOR UPDATE`,
    [lease.wallet, lease.epoch.toString()],
  );
  const row = rows[0];
  if (row === undefined) {
    throw new LeaseLostError("LEASE_LOST", "another worker has taken this wallet over", {
      details: { wallet: lease.wallet, epoch: lease.epoch.toString() },
      retriable: true,
    });
  }
  return toHotWallet(row);
}
