/** Open nonce slots as read from the tables: the slot, its withdrawal's terms and its attempts. */
import type { Address } from "../../chain/address.js";
import { type Hash32, type Height, type Hex, parseHex } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { pausedAfterSql } from "../assets/token-state.js";
import { ageSecondsSql } from "../database-clock.js";
import { NATIVE_ASSET, TREASURY } from "../journal/accounts.js";
import { storedAddress, storedAtoken, storedHash, storedInteger } from "../stored-values.js";
import type { CancelCause, WithdrawalStatus } from "../requests/withdrawal-status.js";
import { toWithdrawalId, type WithdrawalId } from "../requests/withdrawal-id.js";
import { storedStatus } from "./withdrawals.js";

/** What an attempt does when it is mined: pay, or use the nonce up by a transfer of nothing. */
export type AttemptKind = "payment" | "cancel";

/** A transaction signed for a slot. */
export interface Attempt {
  readonly n: number;
  readonly kind: AttemptKind;
  /** The signed bytes; undefined only for a transaction that was taken over from the chain. */
  readonly raw: Hex | undefined;
  readonly hash: Hash32;
  readonly gasLimit: bigint;
  readonly gasPriceAtoken: Atoken;
}

/** Where one of a slot's attempts was mined. */
export interface Inclusion {
  readonly hash: Hash32;
  readonly blockNumber: Height;
  readonly blockHash: Hash32;
  readonly gasUsed: bigint;
  readonly effectiveGasPriceAtoken: Atoken;
}

/** Pure: whether two looks at the chain found a slot mined in the same place, at the same cost. */
export function isSameInclusion(one: Inclusion, other: Inclusion): boolean {
  return (
    one.hash === other.hash &&
    one.blockNumber === other.blockNumber &&
    one.blockHash === other.blockHash &&
    one.gasUsed === other.gasUsed &&
    one.effectiveGasPriceAtoken === other.effectiveGasPriceAtoken
  );
}

/** A slot whose outcome is not booked yet. */
export interface LiveSlot {
  readonly slotId: string;
  readonly wallet: Address;
  readonly nonce: bigint;
  readonly withdrawalId: WithdrawalId;
  readonly status: WithdrawalStatus;
  readonly customerId: string;
  readonly asset: string;
  /** Contract of the token; undefined for coins. */
  readonly contract: Address | undefined;
  readonly destination: Address;
  readonly amountUnits: bigint;
  /** Its token is paused: other code was first seen after this block, 0 where nobody knows. */
  readonly pausedAfter?: Height | undefined;
  /** Index of the deposit address that the treasury gives gas to; undefined for all others. */
  readonly addressIndex?: number | undefined;
  /** Gas that the first attempt is signed with. */
  readonly gasLimit: bigint;
  readonly gasPriceAtoken: Atoken;
  /** Oldest first. */
  readonly attempts: readonly Attempt[];
  /** Set once a receipt was seen. */
  readonly inclusion: Inclusion | undefined;
  /** Set once its nonce is to be used up without paying. */
  readonly cancel: { readonly cause: CancelCause; readonly reason: string } | undefined;
}

/** Columns of `SELECT_LIVE_SLOT`. */
export interface SlotRow {
  readonly slot_id: string;
  readonly wallet: string;
  readonly nonce: string;
  readonly withdrawal_id: string;
  readonly status: string;
  readonly customer_id: string;
  readonly asset: string;
  readonly contract: string | null;
  readonly destination: string;
  readonly amount_units: string;
  readonly gas_limit: string;
  readonly gas_price_atoken: string;
  readonly mined_hash: string | null;
  readonly block_number: string | null;
  readonly block_hash: string | null;
  readonly gas_used: string | null;
  readonly effective_gas_price_atoken: string | null;
  readonly address_index: string | null;
  readonly paused_after: string | null;
  readonly cancel_cause: CancelCause | null;
  readonly cancel_reason: string | null;
  /** Of `ATTEMPTS`. */
  readonly attempts: string;
}

/** SQL: coins have no contract and are never paused: of most slots nothing is looked up. */
const IS_TOKEN = `w.asset <> '${NATIVE_ASSET}'`;

/** Index of the deposit address that the withdrawal `w` gives gas to; null for all others. */
export const ADDRESS_INDEX = `
  CASE WHEN w.customer_id = '${TREASURY}' THEN
    (SELECT d.index::text FROM treasury_move m
       JOIN deposit_address d ON d.address = m.destination
      WHERE m.withdrawal_id = w.id AND m.kind = 'top-up') END`;

/**
 * SQL: whether an open slot `s` reserves what it may still take of a balance. What is mined by the balance's
 * block is taken: its nonce is below the wallet's there, long before its receipt is booked, or another node
 * shows it. What is frozen may have to be paid still.
 * @param nonce SQL of the wallet's nonce at that block; NULL where nobody knows it, and all reserve
 */
export const isReserving = (nonce: string) => `(s.nonce >= coalesce(${nonce}, 0) OR
  (SELECT held.status FROM withdrawal held WHERE held.id = s.withdrawal_id) = 'frozen')`;

/**
 * SQL: the attempts of a slot `s`, oldest first, each as `n kind hash gas price bytes`; "" without any. No
 * value holds a blank or a comma. As JSON they would take the database twice the time.
 */
const ATTEMPTS = `
  array_to_string(ARRAY(
    SELECT a.n || ' ' || a.kind || ' ' || a.hash || ' ' || a.gas_limit || ' ' ||
           a.gas_price_atoken || ' ' || coalesce(a.raw, '')
      FROM withdrawal_attempt a WHERE a.slot_id = s.id ORDER BY a.n), ',')`;

/** Query of slots; the caller adds its WHERE over `s` (slot) and `w` (withdrawal). */
export const SELECT_LIVE_SLOT = `
  SELECT s.id::text AS slot_id, s.wallet, s.nonce::text, s.withdrawal_id, w.status, w.customer_id,
         w.asset, CASE WHEN ${IS_TOKEN} THEN
           (SELECT contract FROM asset WHERE symbol = w.asset) END AS contract, w.destination,
         w.amount_units::text, s.gas_limit::text, s.gas_price_atoken::text, s.mined_hash,
         s.block_number::text, s.block_hash, s.gas_used::text, s.effective_gas_price_atoken::text,
         w.cancel_cause, w.cancel_reason,
         CASE WHEN ${IS_TOKEN} THEN ${pausedAfterSql("w.asset")} END AS paused_after,
         ${ADDRESS_INDEX} AS address_index, ${ATTEMPTS} AS attempts
    FROM nonce_slot s JOIN withdrawal w ON w.id = s.withdrawal_id`;

/** Row to slot. Throws CORRUPT_ROW. */
export function toLiveSlot(row: SlotRow): LiveSlot {
  return {
    slotId: row.slot_id,
    wallet: storedAddress(row.wallet),
    nonce: storedAtoken(row.nonce),
    withdrawalId: toWithdrawalId(row.withdrawal_id),
    status: storedStatus(row.status),
    customerId: row.customer_id,
    asset: row.asset,
    contract: row.contract === null ? undefined : storedAddress(row.contract),
    destination: storedAddress(row.destination),
    amountUnits: storedAtoken(row.amount_units),
    pausedAfter: row.paused_after === null ? undefined : storedInteger(row.paused_after),
    addressIndex: row.address_index === null ? undefined : storedInteger(row.address_index),
    gasLimit: storedAtoken(row.gas_limit),
    gasPriceAtoken: storedAtoken(row.gas_price_atoken),
    attempts: row.attempts === "" ? [] : row.attempts.split(",").map(toAttempt),
    inclusion: toInclusion(row),
    cancel:
      row.cancel_cause === null
        ? undefined
        : { cause: row.cancel_cause, reason: row.cancel_reason ?? "" },
  };
}

function toAttempt(text: string): Attempt {
  const [n, kind, hash, gasLimit, gasPriceAtoken, raw] = text.split(" ");
  return {
    n: storedInteger(n),
    kind: storedKind(kind),
    raw: raw === "" ? undefined : parseHex(raw),
    hash: storedHash(hash),
    gasLimit: storedAtoken(gasLimit),
    gasPriceAtoken: storedAtoken(gasPriceAtoken),
  };
}

function storedKind(kind: string | undefined): AttemptKind {
  if (kind === "payment" || kind === "cancel") return kind;
  throw new Error(`the ledger holds an unknown kind of attempt: ${kind}`);
}

function toInclusion(row: SlotRow): Inclusion | undefined {
  if (row.mined_hash === null) return undefined;
  return {
    hash: storedHash(row.mined_hash),
    blockNumber: storedInteger(row.block_number),
    blockHash: storedHash(row.block_hash),
    gasUsed: storedAtoken(row.gas_used),
    effectiveGasPriceAtoken: storedAtoken(row.effective_gas_price_atoken),
  };
}

/**
 * Seconds since the first transaction of each of these slots was signed, rounded up; none of those for which
 * nothing was, Infinity where one was taken over from the chain: nobody knows how old it is.
 */
export async function readSigningAges(
  sql: Sql,
  slotIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await sql.query<{ slot_id: string; seconds: string | null }>(
    `SELECT slot_id::text, CASE WHEN NOT bool_or(adopted) THEN
              ceil(max(${ageSecondsSql("created_at")}))::bigint::text END AS seconds
       FROM withdrawal_attempt WHERE slot_id = ANY ($1::bigint[]) GROUP BY slot_id`,
    [slotIds],
  );
  return new Map(
    rows.map(({ slot_id, seconds }) => [
      slot_id,
      seconds === null ? Infinity : storedInteger(seconds),
    ]),
  );
}
