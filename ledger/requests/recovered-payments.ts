/**
 * Payments that only the chain remembered. Until a person says whose one was, a request for the same
 * amount to the same address freezes instead of being paid a second time.
 */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import type { Sql } from "../../runtime/sql/sql.js";
import type { NewEvent } from "../events.js";
import { storedAddress, storedAtoken, storedHash, storedHeight } from "../stored-values.js";
import { stepWithdrawals } from "./withdrawal-steps.js";
import { WAITING_STATUSES } from "./withdrawal-status.js";
import { toWithdrawalId, type WithdrawalId } from "./withdrawal-id.js";

/** A payment of the hot wallet that a recovery booked. */
export interface RecoveredPayment {
  readonly hash: Hash32;
  readonly wallet: Address;
  readonly nonce: bigint;
  readonly height: Height;
  readonly blockHash: Hash32;
  /** Undefined created a contract. */
  readonly destination: Address | undefined;
  /** Contract of the token that was paid; undefined for coins. */
  readonly contract: Address | undefined;
  readonly amountUnits: bigint;
  /** Addresses to which it moved something: with more than one it may have paid several requests. */
  readonly recipientCount: number;
  readonly gasUsed: bigint;
  readonly gasPriceAtoken: Atoken;
  /** Undefined while nobody has decided about it. */
  readonly decision: string | undefined;
  readonly withdrawalId: WithdrawalId | undefined;
}

interface PaymentRow {
  readonly tx_hash: string;
  readonly wallet: string;
  readonly nonce: string;
  readonly height: string;
  readonly block_hash: string;
  readonly destination: string | null;
  readonly contract: string | null;
  readonly amount_units: string;
  readonly recipient_count: number;
  readonly gas_used: string;
  readonly gas_price_atoken: string;
  readonly decision: string | null;
  readonly withdrawal_id: string | null;
}

const SELECT_PAYMENT = `
  SELECT tx_hash, wallet, nonce::text, height::text, block_hash, destination, contract,
         amount_units::text,
         (SELECT count(DISTINCT t.destination)::integer FROM recovered_terms t
           WHERE t.tx_hash = recovered_payment.tx_hash) AS recipient_count,
         gas_used::text, gas_price_atoken::text, decision, withdrawal_id FROM recovered_payment`;

/** Payments that nobody has decided about, in the order of their nonces. */
export async function listOpenPayments(sql: Sql, limit: number): Promise<RecoveredPayment[]> {
  const rows = await sql.query<PaymentRow>(
    `${SELECT_PAYMENT} WHERE decision IS NULL
      ORDER BY wallet, recovered_payment.nonce LIMIT $1`,
    [limit],
  );
  return rows.map(toPayment);
}

/** One recovered payment; undefined when none is. */
export async function findRecovered(sql: Sql, hash: Hash32): Promise<RecoveredPayment | undefined> {
  const rows = await sql.query<PaymentRow>(`${SELECT_PAYMENT} WHERE tx_hash = $1`, [hash]);
  return rows.map(toPayment)[0];
}

/** One recovered payment, locked until the caller's transaction ends; undefined when none is. */
export async function lockPayment(tx: Sql, hash: Hash32): Promise<RecoveredPayment | undefined> {
  const rows = await tx.query<PaymentRow>(`${SELECT_PAYMENT} WHERE tx_hash = $1 FOR UPDATE`, [
    hash,
  ]);
  return rows.map(toPayment)[0];
}

/** Those of the requests that a recovered payment may have paid that nobody has decided about. */
export async function matchRecovered<
  Request extends {
    readonly asset: string;
    readonly destination: Address;
    readonly amountUnits: bigint;
  },
>(sql: Sql, requests: readonly Request[]): Promise<readonly Request[]> {
  if (requests.length === 0) return [];
  const rows = await sql.query<{ place: string }>(
    `SELECT place::text FROM unnest($1::text[], $2::numeric[], $3::text[]) WITH ORDINALITY
         AS asked (destination, amount, asset, place)
      WHERE EXISTS (SELECT 1 FROM recovered_terms paid JOIN asset a ON a.symbol = asked.asset
        WHERE paid.decision IS NULL AND paid.destination = asked.destination
          AND paid.amount_units = asked.amount AND paid.contract IS NOT DISTINCT FROM a.contract)`,
    [
      requests.map(({ destination }) => destination),
      requests.map(({ amountUnits }) => amountUnits.toString()),
      requests.map(({ asset }) => asset),
    ],
  );
  const places = new Set(rows.map(({ place }) => Number(place)));
  return requests.filter((_, index) => places.has(index + 1));
}

/**
 * Freezes those of the waiting withdrawals that a recovered payment may have paid and that no person
 * who knew it has cleared. The caller appends the events last.
 */
export async function freezeRecovered(
  tx: Sql,
  ids: readonly WithdrawalId[],
): Promise<{ readonly frozen: readonly WithdrawalId[]; readonly events: readonly NewEvent[] }> {
  if (ids.length === 0) return { frozen: [], events: [] };
  const matches = await tx.query<{ id: string; hash: string; height: string }>(
    `SELECT w.id, paid.tx_hash AS hash, paid.height::text
       FROM withdrawal w CROSS JOIN LATERAL undecided_payment_of(w.id) AS paid
      WHERE w.id = ANY ($1::text[]) AND w.status = ANY ($2::text[])
        -- Asked once: without any, no withdrawal is looked at.
        AND EXISTS (SELECT 1 FROM recovered_payment WHERE decision IS NULL)`,
    [ids, WAITING_STATUSES],
  );
  const { moved, events } = await stepWithdrawals(
    tx,
    "frozen",
    matches.map(({ id, hash, height }) => ({
      id: toWithdrawalId(id),
      reason:
        `the recovered payment ${hash} of block ${height} went to the same address with the same ` +
        `amount: causeway ledger link-payment ${hash} --withdrawal ${id} --reason TEXT, or, if it was ` +
        `another, causeway ledger pay-withdrawal ${id} --reason TEXT`,
    })),
    WAITING_STATUSES,
  );
  return { frozen: [...moved.keys()], events };
}

/**
 * Keeps a person's word about a request and the recovered payments of now that may have paid it: it freezes
 * for none of these again. None is decided by it.
 */
export async function clearRecovered(tx: Sql, id: WithdrawalId): Promise<void> {
  await tx.query(
    `INSERT INTO withdrawal_clearance (withdrawal_id, epoch)
     SELECT $1, epoch FROM event_counter WHERE EXISTS (SELECT 1 FROM undecided_payment_of($1))`,
    [id],
  );
}

function toPayment(row: PaymentRow): RecoveredPayment {
  return {
    hash: storedHash(row.tx_hash),
    wallet: storedAddress(row.wallet),
    nonce: storedAtoken(row.nonce),
    height: storedHeight(row.height),
    blockHash: storedHash(row.block_hash),
    destination: row.destination === null ? undefined : storedAddress(row.destination),
    contract: row.contract === null ? undefined : storedAddress(row.contract),
    amountUnits: storedAtoken(row.amount_units),
    recipientCount: row.recipient_count,
    gasUsed: storedAtoken(row.gas_used),
    gasPriceAtoken: storedAtoken(row.gas_price_atoken),
    decision: row.decision ?? undefined,
    withdrawalId: row.withdrawal_id === null ? undefined : toWithdrawalId(row.withdrawal_id),
  };
}
