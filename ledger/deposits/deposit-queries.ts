/** What the deposit API reads: deposits page by page, and a customer's balances. */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { type CustomerId, NATIVE_ASSET, parseCustomerId } from "../journal/accounts.js";
import { LedgerError } from "../errors.js";
import { listedBehind, listedBy, type ListOrder } from "../list-order.js";
import {
  storedAddress,
  storedAtoken,
  storedHash,
  storedHeight,
  storedInteger,
} from "../stored-values.js";

/**
 * States of a deposit. `held` are those that wait because their token is paused; `reversed` those whose
 * block the chain lost.
 */
export const DEPOSIT_STATUSES = ["detected", "credited", "held", "suspense", "reversed"] as const;

/** One of `DEPOSIT_STATUSES`. */
export type DepositStatus = (typeof DEPOSIT_STATUSES)[number];

/** A deposit as stored. */
export interface StoredDeposit {
  /** Position in the list of all deposits; never changes. */
  readonly seq: number;
  readonly id: string;
  readonly address: Address;
  readonly customerId: CustomerId;
  readonly asset: string;
  readonly amountUnits: bigint;
  readonly status: DepositStatus;
  readonly height: Height;
  readonly blockHash: Hash32;
  readonly txHash: Hash32;
  readonly txIndex: number;
  readonly opIndex: number;
}

/** Which deposits to list, oldest first where nothing else is said. */
export interface DepositFilter {
  readonly address?: Address;
  readonly customerId?: CustomerId;
  readonly status?: DepositStatus;
  /** Only deposits after this position; 0 for all. */
  readonly afterSeq: number;
  readonly limit: number;
  readonly order?: ListOrder;
}

/** What a customer has of one asset; all >= 0. */
export interface CustomerBalance {
  readonly asset: string;
  readonly availableUnits: bigint;
  /** Reserved for withdrawals on their way. */
  readonly heldUnits: bigint;
  /** Deposits on the chain that are not posted yet: detected, or held because their token is paused. */
  readonly pendingUnits: bigint;
}

interface DepositRow {
  readonly seq: string;
  readonly id: string;
  readonly address: string;
  readonly customer_id: string;
  readonly asset: string;
  readonly amount_units: string;
  readonly status: string;
  readonly height: string;
  readonly block_hash: string;
  readonly tx_hash: string;
  readonly tx_index: number;
  readonly op_index: number;
}

const COLUMNS = `seq, id, address, customer_id, asset, amount_units, status, height, block_hash,
  tx_hash, tx_index, op_index`;

/** Deposits that match every given filter, at most `limit`. */
export async function listDeposits(sql: Sql, filter: DepositFilter): Promise<StoredDeposit[]> {
  const conditions = [listedBehind("seq", filter.order)];
  const parameters: unknown[] = [filter.afterSeq, filter.limit];
  const wanted = [
    ["address", filter.address],
    ["customer_id", filter.customerId],
    ["status", filter.status],
  ] as const;
  for (const [column, value] of wanted) {
    if (value === undefined) continue;
    parameters.push(value);
    conditions.push(`${column} = $${parameters.length}`);
  }
  const rows = await sql.query<DepositRow>(
    `SELECT ${COLUMNS} FROM deposit WHERE ${conditions.join(" AND ")}
      ORDER BY ${listedBy("seq", filter.order)} LIMIT $2`,
    parameters,
  );
  return rows.map(parseRow);
}

/** One deposit by its public identifier; undefined when there is none. */
export async function findDeposit(sql: Sql, id: string): Promise<StoredDeposit | undefined> {
  const rows = await sql.query<DepositRow>(`SELECT ${COLUMNS} FROM deposit WHERE id = $1`, [id]);
  const row = rows[0];
  return row === undefined ? undefined : parseRow(row);
}

/** Whether the ledger has a customer of this name; of one that was mistyped it mostly has not. */
export async function isKnownCustomer(sql: Sql, customerId: string): Promise<boolean> {
  const rows = await sql.query(`SELECT 1 FROM customer WHERE id = $1`, [customerId]);
  return rows.length > 0;
}

/** A customer's balances as of one moment; undefined for a customer the ledger does not know. */
export async function customerBalances(
  sql: Sql,
  customerId: CustomerId,
): Promise<CustomerBalance[] | undefined> {
  const rows = await sql.query<{
    asset: string;
    available: string | null;
    held: string | null;
    pending: string | null;
  }>(
    // Of an asset whose first deposit waits there is no balance yet. Each status has an index of few rows.
    `WITH pending AS (
       SELECT asset, sum(amount_units) AS units FROM (
         SELECT asset, amount_units FROM deposit WHERE customer_id = $1 AND status = 'detected'
          UNION ALL
         SELECT asset, amount_units FROM deposit WHERE customer_id = $1 AND status = 'held') AS waiting
        GROUP BY asset)
     SELECT wanted.asset, balance.available_units AS available, balance.held_units AS held,
            pending.units AS pending
       FROM customer
       CROSS JOIN LATERAL (
         SELECT $2::text AS asset
         UNION SELECT asset FROM customer_balance WHERE customer_id = $1
         UNION SELECT asset FROM pending
       ) AS wanted
       LEFT JOIN customer_balance balance
         ON balance.customer_id = $1 AND balance.asset = wanted.asset
       LEFT JOIN pending ON pending.asset = wanted.asset
      WHERE customer.id = $1
      ORDER BY wanted.asset`,
    [customerId, NATIVE_ASSET],
  );
  if (rows.length === 0) return undefined;
  return rows.map((row) => ({
    asset: row.asset,
    availableUnits: storedAtoken(row.available ?? "0"),
    heldUnits: storedAtoken(row.held ?? "0"),
    pendingUnits: storedAtoken(row.pending ?? "0"),
  }));
}

function parseRow(row: DepositRow): StoredDeposit {
  const status = DEPOSIT_STATUSES.find((known) => known === row.status);
  if (status === undefined) throw new LedgerError("CORRUPT_ROW", "unknown deposit status");
  return {
    seq: storedInteger(row.seq),
    id: row.id,
    address: storedAddress(row.address),
    customerId: parseCustomerId(row.customer_id),
    asset: row.asset,
    amountUnits: storedAtoken(row.amount_units),
    status,
    height: storedHeight(row.height),
    blockHash: storedHash(row.block_hash),
    txHash: storedHash(row.tx_hash),
    txIndex: row.tx_index,
    opIndex: row.op_index,
  };
}
