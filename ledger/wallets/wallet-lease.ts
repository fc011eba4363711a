/**
 * The hot wallet's row: its next nonce and the lease of the one worker that takes slots and signs.
 * The lease saves work; the epoch it carries makes a worker that lost it unable to write.
 */
import type { Address } from "../../chain/address.js";
import { AppError } from "../../chain/errors.js";
import type { Height } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { HOLD_SWITCH } from "../kill-switch/kill-switch.js";
import { acquireRow, type LeaseTerms, releaseRow, renewRow } from "../lease.js";
import { storedAtoken, storedInteger } from "../stored-values.js";
import { isKeyUnsaid } from "./key-mark.js";
import { storedWalletStatus, type WalletStatus } from "./wallet.js";

/** Another worker has taken the wallet over: whatever was prepared is dropped. */
export class LeaseLostError extends AppError<"LEASE_LOST"> {}

/** Who works for a wallet, at which turn. */
export interface WalletLease {
  readonly wallet: Address;
  /** Rises with every change of the holder. */
  readonly epoch: bigint;
}

/** How a wallet's own switch was lifted last. */
export interface SwitchRelease {
  /** Names the causes that a person has let go. */
  readonly reason: string;
  /** When, in microseconds: it rises, but where a standby's clock is behind. */
  readonly at: bigint;
}

/**
 * What the ledger says of a hot wallet before a round: its next nonce, how far it is settled, the day's
 * fees.
 */
export interface HotWalletState {
  /** Whether it may take new payments; inside `lockWallet` it may be older than the lock. */
  readonly status: WalletStatus;
  /** The nonce that the next slot gets. */
  readonly nextNonce: bigint;
  /** Highest block whose effect on the wallet is booked. */
  readonly settledHeight: number;
  /** Losses of blocks that the watcher went back for: behind one, lower heights are no old ones. */
  readonly rewinds: number;
  /** One more with each recovery of the ledger, which has looked at chain and pool anew. */
  readonly epoch: number;
  /** Fees of all wallets' transactions that were booked today (UTC): the budget is the exchange's. */
  readonly feesOfDayAtoken: Atoken;
  /** Whoever holds its key has not said so for some seconds. */
  readonly isKeyUnsaid: boolean;
  /** Undefined while its switch is thrown, and where it never was. */
  readonly released?: SwitchRelease | undefined;
}

interface HotWalletRow {
  readonly status: string;
  readonly next_nonce: string;
  readonly settled_height: string;
  readonly rewinds: number;
  readonly epoch: number;
  readonly fees_of_day: string;
  readonly key_unsaid: boolean;
  readonly released: { readonly reason: string; readonly at: string } | null;
}

/** Of the next day, too: whoever began before midnight may come behind one that began after it. */
const FEES_OF_DAY = `
  SELECT coalesce(sum(every.fee_day_atoken), 0) FROM hot_wallet every
   WHERE every.fee_day - (now() AT TIME ZONE 'UTC')::date IN (0, 1)`;

/** SQL: of a switch `f` that is not thrown, how it was lifted. */
export const SWITCH_RELEASE = `
  jsonb_build_object('reason', f.reason,
                     'at', (extract(epoch FROM f.changed_at) * 1000000)::bigint::text)`;

const HOT_WALLET_COLUMNS = `
  (SELECT w.status FROM wallet w WHERE w.address = hot_wallet.wallet) AS status,
  next_nonce::text, settled_height::text, (SELECT rewinds FROM watch_cursor) AS rewinds,
  (SELECT epoch FROM event_counter) AS epoch,
  (${FEES_OF_DAY})::text AS fees_of_day,
  ${isKeyUnsaid("hot_wallet")} AS key_unsaid,
  (SELECT ${SWITCH_RELEASE} FROM signing_freeze f
    WHERE f.wallet = hot_wallet.wallet AND NOT f.frozen) AS released`;

function toHotWallet(row: HotWalletRow): HotWalletState {
  return {
    status: storedWalletStatus(row.status),
    nextNonce: storedAtoken(row.next_nonce),
    settledHeight: storedInteger(row.settled_height),
    rewinds: row.rewinds,
    epoch: row.epoch,
    feesOfDayAtoken: storedAtoken(row.fees_of_day),
    isKeyUnsaid: row.key_unsaid,
    released: toSwitchRelease(row.released),
  };
}

/** As `SWITCH_RELEASE` gives it. */
export function toSwitchRelease(
  row: { readonly reason: string; readonly at: string } | null | undefined,
): SwitchRelease | undefined {
  return row == null ? undefined : { reason: row.reason, at: BigInt(row.at) };
}

/** Advisory lock of the day's budget of fees, which all wallets share. */
const FEE_BUDGET_LOCK = 8_083_000_028n;

/**
 * Lets wallets take of the one budget of fees one after the other, each until its commit: two that
 * counted at the same moment would both spend what is left.
 */
export async function lockFeeBudget(tx: Sql): Promise<void> {
  await tx.query(`SELECT pg_advisory_xact_lock($1::bigint)`, [FEE_BUDGET_LOCK]);
}

/** Fees of all wallets' transactions that were booked today (UTC). */
export async function feesOfDay(sql: Sql): Promise<bigint> {
  const rows = await sql.query<{ fees: string }>(`SELECT (${FEES_OF_DAY})::text AS fees`);
  return storedAtoken(rows[0]?.fees);
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
 * Makes the rows of a registered wallet's lane at its very first start, with the nonce that the chain
 * shows; a wallet that has rows keeps them. All in one statement: a lane that finds its row makes nothing.
 * Whoever sets the kill switch at this moment locks the rows that there are: new ones come behind it, or are
 * among them.
 */
export async function createHotWallet(
  sql: Sql,
  options: { readonly wallet: Address; readonly firstNonce: bigint },
): Promise<void> {
  // The switch exists from the start, so that signing can lock it (see lockFreeze).
  await sql.query(
    `WITH held AS MATERIALIZED (
       SELECT ${HOLD_SWITCH}
        WHERE NOT EXISTS (SELECT 1 FROM hot_wallet JOIN signing_freeze USING (wallet)
                           WHERE wallet = $1)
     ), lane AS (
       INSERT INTO hot_wallet (wallet, next_nonce) SELECT $1, $2::numeric FROM held
       ON CONFLICT (wallet) DO NOTHING)
     INSERT INTO signing_freeze (wallet, frozen, reason) SELECT $1, false, '' FROM held
     ON CONFLICT (wallet) DO NOTHING`,
    [options.wallet, options.firstNonce.toString()],
  );
}

/** Takes the lease when it is free or has run out. @returns undefined while another holds it */
export async function acquireLease(
  sql: Sql,
  { wallet, ...terms }: LeaseTerms & { readonly wallet: Address },
): Promise<WalletLease | undefined> {
  const epoch = await acquireRow(sql, rowOf(wallet), terms);
  return epoch === undefined ? undefined : { wallet, epoch };
}

/** Holds the lease on. @returns false when it went to another */
export function renewLease(
  sql: Sql,
  { wallet, epoch }: WalletLease,
  { leaseMs }: { readonly leaseMs: number },
): Promise<boolean> {
  return renewRow(sql, rowOf(wallet), { epoch, leaseMs });
}

/** Gives the lease back at an orderly stop, so that the next worker need not wait for its end. */
export function releaseLease(sql: Sql, { wallet, epoch }: WalletLease): Promise<void> {
  return releaseRow(sql, rowOf(wallet), epoch);
}

/**
 * Tells whoever chooses between wallets what this one holds, and which of its slots that balance is without;
 * all of one look at the chain, and under the lease alone.
 */
export async function showBalance(
  sql: Sql,
  { wallet, epoch }: WalletLease,
  seen: { readonly balanceAtoken: Atoken; readonly height: Height; readonly nonce: bigint },
): Promise<void> {
  await sql.query(
    `UPDATE hot_wallet
        SET seen_balance_atoken = $3::numeric, seen_height = $4, seen_nonce = $5::numeric
      WHERE wallet = $1 AND lease_epoch = $2::bigint
        AND (seen_balance_atoken, seen_height, seen_nonce)
            IS DISTINCT FROM ($3::numeric, $4::bigint, $5::numeric)`,
    [wallet, epoch.toString(), seen.balanceAtoken.toString(), seen.height, seen.nonce.toString()],
  );
}

function rowOf(wallet: Address) {
  return { table: "hot_wallet", key: wallet } as const;
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
