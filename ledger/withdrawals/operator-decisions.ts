/** What an operator decides about frozen withdrawals, each decision with its proof in one commit. */
import type { Address } from "../../chain/address.js";
import type { TokenTransfer } from "../../chain/evm/erc20.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { LedgerError } from "../errors.js";
import { appendEvents, type NewEvent } from "../events.js";
import { type LiveSlot, SELECT_LIVE_SLOT, type SlotRow, toLiveSlot } from "./slot-rows.js";
import { storedAddress, storedAtoken, storedHash, storedInteger } from "../stored-values.js";
import { deadlineStep } from "./cancellation.js";
import { freezeEqual } from "./foreign-transactions.js";
import { endIfCancelled } from "../requests/endings.js";
import { isSamePayment, type PaidTerms, termsOf } from "../requests/payment-terms.js";
import type { ForeignPayment } from "../requests/possible-payments.js";
import { isFrozenFor, stepWithdrawals } from "../requests/withdrawal-steps.js";
import { toWithdrawalId, type WithdrawalId } from "../requests/withdrawal-id.js";

/** A withdrawal that only an operator lets go on; without a slot it is no wallet's yet. */
export interface FrozenWithdrawal {
  readonly id: WithdrawalId;
  readonly destination: Address;
  readonly asset: string;
  /** Contract of the token; undefined for coins. */
  readonly contract: Address | undefined;
  readonly amountUnits: bigint;
  readonly reason: string;
  /** A recovered payment that may have paid it, and that nobody has decided about. */
  readonly recovered: Hash32 | undefined;
  /** Its open slot; undefined when it froze before it had one. */
  readonly slot: LiveSlot | undefined;
}

/** A mined transaction of the hot wallet, as the chain shows it. */
export interface WalletTransaction extends ForeignPayment {
  readonly height: Height;
  readonly nonce: bigint;
  /** Undefined creates a contract; of a Cosmos transaction whom it pays, where that is one alone. */
  readonly to: Address | undefined;
  /** It has no receipt, by which a request could be settled. */
  readonly isCosmos: boolean;
  /** False was mined and failed: its nonce and fee are gone, and nothing else. */
  readonly isSuccess: boolean;
  /** Value of the transaction itself, of Cosmos messages all that they sent; 0 when it failed. */
  readonly valueAtoken: Atoken;
  /** The token's transfer that its calldata is, called without value; whether it succeeded or not. */
  readonly transfer: TokenTransfer | undefined;
  /** What it took from the wallet beside its fee, once for each asset; no contract stands for coins. */
  readonly taken: readonly {
    readonly contract: Address | undefined;
    readonly amountUnits: bigint;
  }[];
  readonly gasUsed: bigint;
  readonly gasPriceAtoken: Atoken;
}

/** What a transaction that used up a slot's nonce did for its withdrawal. */
export type SlotUse = "paid" | "failed" | "cancelled";

/**
 * Pure: what a transaction on a slot's own nonce did for the withdrawal, whoever has stored it; a
 * ledger that lost it signed it for this slot. Undefined for one that was meant for something else.
 */
export function useOfSlot(
  slot: PaidTerms & { readonly wallet: Address },
  transaction: WalletTransaction,
): SlotUse | undefined {
  const { to, isSuccess, valueAtoken } = transaction;
  // Without a receipt nothing could be booked of it: what it may have paid waits for a person.
  if (transaction.isCosmos) return undefined;
  if (slot.contract !== undefined) {
    if (isSamePayment(slot, termsOf(transaction))) return isSuccess ? "paid" : "failed";
  } else {
    if (to === slot.destination && !isSuccess) return "failed";
    if (to === slot.destination && valueAtoken === slot.amountUnits) return "paid";
  }
  // A wallet that has given itself code may pay others by a call of itself.
  const isNothing = to === slot.wallet && valueAtoken === 0n && transaction.paid.length === 0;
  return isNothing && isSuccess ? "cancelled" : undefined;
}

/**
 * Stores a mined transaction as an attempt of the open slot whose nonce it used up; the worker finds
 * its receipt and books it like any other. A cancellation moves the withdrawal to `cancelling`.
 * @returns events to append last
 */
export async function takeOver(
  tx: Sql,
  found: {
    readonly slotId: string;
    readonly withdrawalId: WithdrawalId;
    readonly use: SlotUse;
    readonly transaction: WalletTransaction;
  },
): Promise<readonly NewEvent[]> {
  const { slotId, withdrawalId: id, use, transaction } = found;
  const { hash, gasUsed, gasPriceAtoken } = transaction;
  await tx.query(
    `INSERT INTO withdrawal_attempt (slot_id, n, adopted, kind, hash, gas_limit, gas_price_atoken)
     SELECT $1::bigint, count(*), true, $2, $3, $4::numeric, $5::numeric
       FROM withdrawal_attempt WHERE slot_id = $1::bigint`,
    [
      slotId,
      use === "cancelled" ? "cancel" : "payment",
      hash,
      gasUsed.toString(),
      gasPriceAtoken.toString(),
    ],
  );
  if (use !== "cancelled") return [];
  // Why it was cancelled is lost, or stands there already: then the first cause stays.
  const reason = `it was cancelled by ${hash}, as the chain shows`;
  const step = { id, reason, cancelCause: "request" as const };
  return (await stepWithdrawals(tx, "cancelling", [step])).events;
}

/** The same as a commit of its own, for a frozen withdrawal. @returns false when it moved meanwhile */
export function takeOverFrozen(
  database: SqlDatabase,
  found: Parameters<typeof takeOver>[1],
): Promise<boolean> {
  return database.transaction(async (tx) => {
    const rows = await tx.query(
      `SELECT 1 FROM withdrawal w JOIN nonce_slot s ON s.withdrawal_id = w.id
        WHERE w.id = $1 AND s.id = $2::bigint AND s.outcome IS NULL AND w.status = 'frozen'
          AND NOT EXISTS (SELECT 1 FROM withdrawal_attempt a WHERE a.hash = $3)
        FOR UPDATE OF w`,
      [found.withdrawalId, found.slotId, found.transaction.hash],
    );
    if (rows.length === 0) return false;
    await appendEvents(tx, await takeOver(tx, found));
    return true;
  });
}

/** Frozen withdrawals with an open slot of this wallet, and those without any, oldest first. */
export async function readFrozenWithdrawals(
  sql: Sql,
  wallet: Address,
): Promise<FrozenWithdrawal[]> {
  const rows = await sql.query<{
    id: string;
    destination: string;
    asset: string;
    contract: string | null;
    amount_units: string;
    reason: string | null;
    recovered: string | null;
  }>(
    `SELECT id, destination, asset, (SELECT contract FROM asset WHERE symbol = w.asset) AS contract,
            amount_units::text, reason, (SELECT tx_hash FROM undecided_payment_of(id)) AS recovered
       FROM withdrawal w
      WHERE phase = 'open' AND status = 'frozen' AND NOT EXISTS (
        SELECT 1 FROM nonce_slot s
         WHERE s.withdrawal_id = w.id AND s.outcome IS NULL AND s.wallet <> $1)
      ORDER BY position`,
    [wallet],
  );
  const slots = await sql.query<SlotRow>(
    `${SELECT_LIVE_SLOT} WHERE s.wallet = $1 AND s.outcome IS NULL AND w.status = 'frozen'`,
    [wallet],
  );
  const slotOf = new Map(slots.map(toLiveSlot).map((slot) => [slot.withdrawalId, slot]));
  return rows.map((row) => ({
    id: toWithdrawalId(row.id),
    destination: storedAddress(row.destination),
    asset: row.asset,
    contract: row.contract === null ? undefined : storedAddress(row.contract),
    amountUnits: storedAtoken(row.amount_units),
    reason: row.reason ?? "",
    recovered: row.recovered === null ? undefined : storedHash(row.recovered),
    slot: slotOf.get(toWithdrawalId(row.id)),
  }));
}

/** A wallet on the chain, as a scan of its transactions asks it. */
export interface ScannedChain<Transaction> {
  /** The wallet's next nonce after a block. */
  nonceAt(at: Height): Promise<bigint>;
  /** What the wallet signed in these blocks, both included, in order. */
  transactions(range: {
    readonly from: Height;
    readonly to: Height;
  }): Promise<readonly Transaction[]>;
}

/**
 * Transactions of a wallet from the one with a nonce on, and perhaps some before it. The scan starts at
 * the block of the payment before it. One that was mined again goes on naming its block of a chain that is
 * lost, which may be too high, or above the head: where something is missing, the chain's nonces say how
 * much.
 * @param asked.from first block that counts
 * @param isComplete whether these are all that there have to be
 */
export async function transactionsSince<Transaction>(
  sql: Sql,
  asked: {
    readonly wallet: Address;
    readonly nonce: bigint;
    readonly from: Height;
    readonly to: Height;
  },
  chain: ScannedChain<Transaction>,
  isComplete: (found: readonly Transaction[]) => boolean,
): Promise<readonly Transaction[]> {
  const { nonce, to } = asked;
  const start = Math.max(asked.from, Math.min(to, await heightBelowNonce(sql, asked)));
  const found = await chain.transactions({ from: start, to });
  if (isComplete(found)) return found;
  let from = start;
  while (from > asked.from && (await chain.nonceAt(from - 1)) > nonce) {
    from = Math.max(asked.from, Math.floor(from / 2));
  }
  return from === start ? found : chain.transactions({ from, to });
}

/**
 * Refuses what a node shows of a wallet's transactions where its nonces count others: what is not shown may
 * have paid what waits.
 * @param shown transactions from one nonce on
 * @param counted how many its nonces say
 * @throws NO_WALLET_TRANSACTION
 */
export function assertAllShown(wallet: Address, shown: number, counted: bigint): void {
  if (BigInt(shown) === counted) return;
  throw new LedgerError(
    "NO_WALLET_TRANSACTION",
    `the node shows ${shown} transactions of ${wallet} where its nonces say ${counted}: ask a node ` +
      "with the whole chain",
    { retriable: true },
  );
}

/** Highest block in which a lower nonce of the wallet is booked. */
async function heightBelowNonce(
  sql: Sql,
  options: { readonly wallet: Address; readonly nonce: bigint },
): Promise<Height> {
  const rows = await sql.query<{ height: string }>(
    `SELECT coalesce(max(block_number), 0)::text AS height FROM nonce_slot
      WHERE wallet = $1 AND nonce < $2::numeric AND outcome IS NOT NULL`,
    [options.wallet, options.nonce.toString()],
  );
  return storedInteger(rows[0]?.height);
}

/** The wallet whose nonce a withdrawal has that is not booked; undefined without one. */
export async function walletOfOpenSlot(sql: Sql, id: WithdrawalId): Promise<Address | undefined> {
  const rows = await sql.query<{ wallet: string }>(
    `SELECT wallet FROM nonce_slot WHERE withdrawal_id = $1 AND outcome IS NULL`,
    [id],
  );
  return rows[0] === undefined ? undefined : storedAddress(rows[0].wallet);
}

/**
 * Lets a frozen withdrawal go on with its open slot, whose nonce the chain has not used yet. Its customer
 * may have taken the wish back while the chain was looked at, and its deadline may have passed while it was
 * frozen: what is to become of it is read here.
 * @returns false where it is not frozen any more as it was looked at
 */
export function resumeSlot(
  database: SqlDatabase,
  { id, reason }: FrozenWithdrawal,
): Promise<boolean> {
  return database.transaction(async (tx) => {
    if (!(await isFrozenFor(tx, { id, reason }))) return false;
    const [row] = await tx.query<{
      is_cancelled: boolean;
      is_late: boolean;
      has_attempts: boolean;
    }>(
      `SELECT cancel_cause IS NOT NULL AS is_cancelled,
              cancel_cause IS NULL AND coalesce(expires_at <= now(), false) AS is_late,
              EXISTS (SELECT 1 FROM nonce_slot s JOIN withdrawal_attempt a ON a.slot_id = s.id
                       WHERE s.withdrawal_id = w.id AND s.live) AS has_attempts
         FROM withdrawal w WHERE id = $1`,
      [id],
    );
    const next = row?.has_attempts === true ? "signed" : "slotted";
    const isLate = row?.is_late === true;
    const to = row?.is_cancelled === true || isLate ? "cancelling" : next;
    const step = isLate ? deadlineStep(id) : { id };
    const { moved, events } = await stepWithdrawals(tx, to, [step], ["frozen"]);
    await appendEvents(tx, events);
    return moved.size > 0;
  });
}

/**
 * Lets a withdrawal that froze before it had a slot be paid: the operator says it was not.
 * @returns false where it is not frozen any more as it was looked at
 */
export function resumeUnpaid(
  database: SqlDatabase,
  { id, reason }: Pick<FrozenWithdrawal, "id" | "reason">,
): Promise<boolean> {
  return database.transaction(async (tx) => {
    if (!(await isFrozenFor(tx, { id, reason }))) return false;
    const open = await tx.query(
      `SELECT id FROM nonce_slot WHERE withdrawal_id = $1 AND outcome IS DISTINCT FROM 'foreign'`,
      [id],
    );
    if (open.length > 0) return false;
    const { moved, events } = await stepWithdrawals(tx, "accepted", [{ id }], ["frozen"]);
    const ended = await endIfCancelled(tx, id);
    await appendEvents(tx, [...events, ...ended]);
    return moved.size > 0;
  });
}

/**
 * Raises the next nonce over transactions that the ledger does not know. Waiting withdrawals that
 * one of them may have paid freeze in the same commit: only an operator can tell.
 * @returns the withdrawals that froze
 */
export function skipForeignNonces(
  database: SqlDatabase,
  options: {
    readonly wallet: Address;
    readonly nextNonce: bigint;
    readonly foreign: readonly WalletTransaction[];
  },
): Promise<ReadonlySet<WithdrawalId>> {
  return database.transaction(async (tx) => {
    await tx.query(`SELECT wallet FROM hot_wallet WHERE wallet = $1 FOR UPDATE`, [options.wallet]);
    await tx.query(
      `UPDATE hot_wallet SET next_nonce = greatest(next_nonce, $2::numeric) WHERE wallet = $1`,
      [options.wallet, options.nextNonce.toString()],
    );
    const { frozen, events } = await freezeEqual(tx, options.foreign);
    await appendEvents(tx, events);
    return frozen;
  });
}
