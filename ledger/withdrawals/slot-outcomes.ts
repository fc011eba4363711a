/** How nonce slots end: a receipt is recorded, then booked once. */
import type { Address } from "../../chain/address.js";
import { present } from "../../chain/errors.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import {
  customerAccount,
  FAILED_PAYOUTS,
  heldAccount,
  NATIVE_ASSET,
  NETWORK_FEE,
  parseCustomerId,
  TREASURY,
  walletAccount,
} from "../journal/accounts.js";
import { fillShort, type ReturnedHold } from "../deposits/deposit-credit.js";
import { readCursor } from "../watch/watch-cursor.js";
import { LedgerError } from "../errors.js";
import { storedAddress } from "../stored-values.js";
import { voidLostGas } from "../requests/lost-gas.js";
import { appendEvents, type NewEvent } from "../events.js";
import { type JournalEntry, type Posting, postJournals } from "../journal/journal.js";
import { type AcceptedOutflow, acceptedOutflows } from "./foreign-transactions.js";
import { isTransferLogged, type LoggedTransfer } from "../requests/payment-terms.js";
import { type LiveSlot, SELECT_LIVE_SLOT, type SlotRow, toLiveSlot } from "./slot-rows.js";
import { type SlotReceipt, stillRecorded } from "./recorded-inclusions.js";
import { isOfAcceptedCode, withKnownCode } from "./known-code.js";
import { earnedFeePostings, releasedFeePostings, returnedHold } from "../requests/holds.js";
import {
  type MovedWithdrawal,
  type Step,
  type StepResult,
  stepWithdrawals,
} from "../requests/withdrawal-steps.js";
import { freezeSigning } from "../requests/signing-freeze.js";
import { endOfCancel } from "../requests/withdrawal-status.js";
import { lockWallet, type WalletLease } from "../wallets/wallet-lease.js";
import { endingKey, type WithdrawalId } from "../requests/withdrawal-id.js";

/** What failed payouts cost the customer who asked for them. */
export interface FailureRules {
  /** Charged when a payout was mined and failed, at most its amount; 0 charges nothing. */
  readonly failureFeeAtoken: Atoken;
}

/**
 * What decides how a mined payment is booked: fees of payouts that fail, and which blocks it was read from.
 */
export interface SettleTerms extends FailureRules {
  /**
   * Losses of blocks that the watcher had gone back for when the receipts were read: behind another one
   * they may be of blocks that are gone.
   */
  readonly rewinds: number;
}

/** A receipt as the chain shows it. */
export interface MinedReceipt {
  readonly transactionHash: Hash32;
  readonly blockHash: Hash32;
  readonly height: Height;
  readonly from: Address;
  /** 1 success, 0 failed (mined, fee paid). */
  readonly status: 0 | 1;
  readonly gasUsed: bigint;
  /** Price really paid, atoken per gas. */
  readonly effectiveGasPriceAtoken: Atoken;
  /** Well-formed ERC-20 transfers that it logged, in order. */
  readonly transfers: readonly LoggedTransfer[];
}

/** The receipt of whichever of the slot's attempts was mined, signed by the slot's wallet. */
export function receiptOfSlot(
  slot: LiveSlot,
  byHash: ReadonlyMap<Hash32, MinedReceipt>,
): SlotReceipt | undefined {
  for (const { hash, kind, raw } of slot.attempts) {
    const receipt = byHash.get(hash);
    if (receipt === undefined || receipt.from !== slot.wallet) continue;
    const isPayment = kind === "payment" && receipt.status === 1;
    return {
      slotId: slot.slotId,
      wallet: slot.wallet,
      withdrawalId: slot.withdrawalId,
      isSuccess: receipt.status === 1,
      isProven: !isPayment || slot.contract === undefined || isProvenByLog(slot, receipt),
      // Without its cause a mined cancellation would count as the payment.
      cancelled: kind === "cancel" ? present(slot.cancel, "cause of a cancellation") : undefined,
      isAdopted: raw === undefined,
      hash,
      blockNumber: receipt.height,
      blockHash: receipt.blockHash,
      gasUsed: receipt.gasUsed,
      effectiveGasPriceAtoken: receipt.effectiveGasPriceAtoken,
    };
  }
  return undefined;
}

function isProvenByLog(slot: LiveSlot, { height, transfers }: MinedReceipt): boolean {
  return isOfAcceptedCode(height, slot.pausedAfter) && isTransferLogged(slot, transfers);
}

/** Pure: why a token's payment without its transfer stays frozen, and what a person does about it. */
export function unprovenReason({
  withdrawalId,
  hash,
}: Pick<SlotReceipt, "withdrawalId" | "hash">): string {
  return (
    `${hash} was mined and succeeded, and the token did not log exactly this transfer, or ran other ` +
    `code than was accepted: look at it, then causeway ledger decide-transfer ${withdrawalId} ` +
    "--paid, or --not-paid, with --reason TEXT"
  );
}

/**
 * Ends included withdrawals: `settled`; `failed` when the payment failed on the chain; `cancelled`,
 * `rejected` or `failed` when the cancelling transfer was mined. The last three give the hold back.
 * The network fee is expensed in any case. State, slot, postings and events are one commit.
 * @returns the withdrawals that ended; none where the chain lost blocks since the receipts were read, nor
 *   those that are recorded as mined in another way by now, or that `withKnownCode` leaves out
 */
export function settleSlots(
  database: SqlDatabase,
  receipts: readonly SlotReceipt[],
  { rewinds, ...rules }: SettleTerms,
): Promise<ReadonlySet<WithdrawalId>> {
  return database.transaction(async (tx) => {
    await lockWalletsOf(
      tx,
      receipts.map(({ wallet }) => wallet),
    );
    // Behind the wallets' locks, which who goes back takes, too.
    const cursor = await readCursor(tx);
    if (cursor.rewinds !== rewinds) return new Set();
    const proven = receipts.filter(({ isProven }) => isProven);
    const known = await withKnownCode(tx, proven, cursor.height);
    const { ended, events } = await settleInside(tx, await stillRecorded(tx, known), rules);
    await appendEvents(tx, events);
    return ended;
  });
}

/**
 * A person's word about a token's payment that was mined without logging its transfer: it is settled,
 * or fails and gives the hold back. The caller appends the events last.
 * @throws INVALID_DECISION when the withdrawal is not frozen over such a payment
 */
export async function decideTransfer(
  tx: Sql,
  { withdrawalId: id, isPaid }: { readonly withdrawalId: WithdrawalId; readonly isPaid: boolean },
): Promise<readonly NewEvent[]> {
  await lockOpenSlot(tx, id);
  const [row] = await tx.query<SlotRow>(
    `${SELECT_LIVE_SLOT} WHERE s.withdrawal_id = $1 AND s.outcome IS NULL AND w.status = 'frozen'`,
    [id],
  );
  const slot = row === undefined ? undefined : toLiveSlot(row);
  const mined = slot?.attempts.find(({ hash }) => hash === slot.inclusion?.hash);
  if (slot?.inclusion === undefined || slot.contract === undefined || mined?.kind !== "payment") {
    throw new LedgerError(
      "INVALID_DECISION",
      `${id} is not frozen over a token's payment that was mined without its transfer`,
    );
  }
  const { slotId, inclusion } = slot;
  const data = { txHash: inclusion.hash, blockNumber: inclusion.blockNumber, decided: true };
  const again = await stepWithdrawals(tx, "included", [{ id, data }], ["frozen"]);
  const { wallet } = slot;
  const common = { ...inclusion, slotId, wallet, withdrawalId: id, cancelled: undefined };
  const isAdopted = mined.raw === undefined;
  const receipt = { ...common, isSuccess: isPaid, isProven: false, isAdopted };
  const { events } = await settleInside(tx, [receipt], { failureFeeAtoken: 0n });
  return [...again.events, ...events];
}

/**
 * Holds a withdrawal until the commit, and first the wallet of its open slot: what is decided about the two
 * is read behind it.
 */
export async function lockOpenSlot(tx: Sql, id: WithdrawalId): Promise<void> {
  const wallets = await tx.query<{ wallet: string }>(
    `SELECT wallet FROM nonce_slot WHERE withdrawal_id = $1 AND outcome IS NULL`,
    [id],
  );
  await lockWalletsOf(
    tx,
    wallets.map((slot) => storedAddress(slot.wallet)),
  );
  await tx.query(`SELECT 1 FROM withdrawal WHERE id = $1 FOR UPDATE`, [id]);
}

/** Their day's fees are booked: in the order of locks a wallet comes before its withdrawals. */
async function lockWalletsOf(tx: Sql, wallets: readonly Address[]): Promise<void> {
  await tx.query(
    `SELECT 1 FROM hot_wallet WHERE wallet = ANY ($1::text[]) ORDER BY wallet FOR UPDATE`,
    [[...new Set(wallets)]],
  );
}

async function settleInside(
  tx: Sql,
  receipts: readonly SlotReceipt[],
  rules: FailureRules,
): Promise<{ readonly ended: ReadonlySet<WithdrawalId>; readonly events: readonly NewEvent[] }> {
  const moved = new Map<WithdrawalId, MovedWithdrawal>();
  const events: NewEvent[] = [];
  for (const end of ["settled", "failed", "rejected", "cancelled"] as const) {
    const steps = receipts.filter((receipt) => endOf(receipt) === end).map(toEndStep);
    const result = await stepWithdrawals(tx, end, steps, ["included"]);
    for (const [id, withdrawal] of result.moved) moved.set(id, withdrawal);
    events.push(...(end === "failed" ? withCharges(result, receipts, rules) : result.events));
  }
  const ended = receipts.filter(({ withdrawalId }) => moved.has(withdrawalId));
  await closeSlots(tx, ended, moved);
  await recordFailures(tx, ended, moved);
  const booked = await acceptedOutflows(
    tx,
    ended.filter(({ isAdopted }) => isAdopted === true),
  );
  await postJournals(
    tx,
    ended.flatMap((receipt) => {
      const withdrawal = moved.get(receipt.withdrawalId);
      const outflow = booked.get(receipt.hash);
      return withdrawal === undefined ? [] : [endingEntry(receipt, withdrawal, rules, outflow)];
    }),
  );
  events.push(...(await fillShort(tx, holdsBack(ended, moved, rules))));
  // Only what went unpaid may have arrived nowhere.
  const unpaid = ended.filter((receipt) => endOf(receipt) !== "settled");
  await voidLostGas(
    tx,
    unpaid.map(({ withdrawalId }) => withdrawalId),
  );
  return { ended: new Set(moved.keys()), events };
}

function holdsBack(
  ended: readonly SlotReceipt[],
  moved: ReadonlyMap<WithdrawalId, MovedWithdrawal>,
  rules: FailureRules,
): readonly ReturnedHold[] {
  return ended.flatMap((receipt) => {
    const withdrawal = moved.get(receipt.withdrawalId);
    if (withdrawal === undefined || endOf(receipt) === "settled") return [];
    return returnedHold(receipt.withdrawalId, withdrawal, chargeOf(receipt, withdrawal, rules));
  });
}

/** What failed payouts tell beside the rest: what of the hold does not go back. */
function withCharges(
  { moved, events }: StepResult,
  receipts: readonly SlotReceipt[],
  rules: FailureRules,
): readonly NewEvent[] {
  const charged = new Map<unknown, bigint>();
  for (const receipt of receipts) {
    const withdrawal = moved.get(receipt.withdrawalId);
    if (withdrawal !== undefined) {
      charged.set(receipt.withdrawalId, chargeOf(receipt, withdrawal, rules));
    }
  }
  return events.map(({ type, data }) => {
    const chargedUnits = (charged.get(data["withdrawalId"]) ?? 0n).toString();
    return { type, data: { ...data, chargedUnits } };
  });
}

/**
 * Freezes withdrawals whose fate is unknown; only an operator frees them.
 * @param by.lease of the worker that says so: what it misses another may have found since it took over
 * @param by.signing freezes the wallet's signing for this cause, too
 * @throws LEASE_LOST
 */
export function freezeWithdrawals(
  database: SqlDatabase,
  steps: readonly { readonly id: WithdrawalId; readonly reason: string }[],
  by?: { readonly lease: WalletLease; readonly signing?: string | undefined },
): Promise<ReadonlySet<WithdrawalId>> {
  return database.transaction(async (tx) => {
    if (by !== undefined) await lockWallet(tx, by.lease);
    if (by?.signing !== undefined) await freezeSigning(tx, by.lease.wallet, by.signing);
    const { moved, events } = await stepWithdrawals(tx, "frozen", steps);
    await appendEvents(tx, events);
    return new Set(moved.keys());
  });
}

/** How a receipt ends its withdrawal. */
function endOf(receipt: SlotReceipt): "settled" | "failed" | "rejected" | "cancelled" {
  if (receipt.cancelled !== undefined) return endOfCancel(receipt.cancelled.cause);
  return receipt.isSuccess ? "settled" : "failed";
}

function toEndStep(receipt: SlotReceipt): Step {
  const { withdrawalId, hash, blockNumber, cancelled } = receipt;
  const step = { id: withdrawalId, data: { txHash: hash, blockNumber } };
  if (cancelled !== undefined) return { ...step, reason: cancelled.reason };
  if (receipt.isSuccess) return step;
  return { ...step, reason: "the transaction was mined and failed" };
}

/** Only what the destination did counts against a customer, not what the network or we did. */
async function recordFailures(
  tx: Sql,
  ended: readonly SlotReceipt[],
  moved: ReadonlyMap<WithdrawalId, MovedWithdrawal>,
): Promise<void> {
  const failed = ended.filter(({ withdrawalId, cancelled, isSuccess }) => {
    // What a token's contract did is no doing of the destination's.
    const withdrawal = moved.get(withdrawalId);
    if (withdrawal?.asset !== NATIVE_ASSET || withdrawal.customerId === TREASURY) return false;
    return cancelled === undefined ? !isSuccess : cancelled.cause === "refused";
  });
  if (failed.length === 0) return;
  await tx.query(
    `INSERT INTO payout_failure (withdrawal_id, customer_id)
     SELECT * FROM unnest($1::text[], $2::text[])`,
    [
      failed.map(({ withdrawalId }) => withdrawalId),
      failed.map(({ withdrawalId }) => moved.get(withdrawalId)?.customerId),
    ],
  );
}

async function closeSlots(
  tx: Sql,
  ended: readonly SlotReceipt[],
  moved: ReadonlyMap<WithdrawalId, MovedWithdrawal>,
): Promise<void> {
  if (ended.length === 0) return;
  await tx.query(
    `UPDATE nonce_slot s
        SET outcome = input.outcome,
            paid_proof = CASE WHEN input.outcome = 'paid' THEN input.proof END
       FROM unnest($1::bigint[], $2::text[], $3::text[]) AS input (id, outcome, proof)
      WHERE s.id = input.id`,
    [
      ended.map(({ slotId }) => slotId),
      ended.map(({ cancelled, isSuccess }) => {
        if (cancelled !== undefined) return "cancelled";
        return isSuccess ? "paid" : "reverted";
      }),
      ended.map(({ withdrawalId, isProven }) => {
        if (moved.get(withdrawalId)?.asset === NATIVE_ASSET) return "receipt";
        return isProven ? "transfer" : "decision";
      }),
    ],
  );
  await tx.query(
    // A commit that began before midnight may come behind one that began after it.
    `UPDATE hot_wallet h
        SET settled_height = greatest(h.settled_height, input.height),
            fee_day = CASE WHEN h.fee_day = input.today + 1 THEN h.fee_day ELSE input.today END,
            fee_day_atoken = input.fees + CASE WHEN h.fee_day IN (input.today, input.today + 1)
                                               THEN h.fee_day_atoken ELSE 0 END
       FROM (SELECT wallet, max(block_number) AS height, (now() AT TIME ZONE 'UTC')::date AS today,
                    sum(gas_used * effective_gas_price_atoken) AS fees
               FROM nonce_slot WHERE id = ANY ($1::bigint[]) GROUP BY wallet) AS input
      WHERE h.wallet = input.wallet`,
    [ended.map(({ slotId }) => slotId)],
  );
}

/**
 * Postings of an ending; the network's fee is the exchange's expense, never the customer's. A fee
 * for a failed payout is the exchange's own, and only where its settings ask for one. What a person
 * booked as an outflow left the wallet then: whoever was to bear it gets it back, and its fee is paid.
 */
function endingEntry(
  receipt: SlotReceipt,
  withdrawal: MovedWithdrawal,
  rules: FailureRules,
  outflow: AcceptedOutflow | undefined,
): JournalEntry {
  const customerId = parseCustomerId(withdrawal.customerId);
  const { asset, amountUnits } = withdrawal;
  const debit = heldAccount(customerId);
  const wallet = walletAccount(receipt.wallet);
  const paying = outflow?.bornBy.get(asset) ?? wallet;
  const end = endOf(receipt);
  const chargedUnits = chargeOf(receipt, withdrawal, rules);
  const principal: Posting = {
    asset,
    debit,
    credit: end === "settled" ? paying : customerAccount(customerId),
    amountUnits: amountUnits - chargedUnits,
  };
  const postings: Posting[] = [
    principal,
    ...(end === "settled" ? earnedFeePostings(withdrawal) : releasedFeePostings(withdrawal)),
    { asset, debit, credit: FAILED_PAYOUTS, amountUnits: chargedUnits },
    {
      asset: NATIVE_ASSET,
      debit: NETWORK_FEE,
      credit: wallet,
      amountUnits: outflow === undefined ? receipt.gasUsed * receipt.effectiveGasPriceAtoken : 0n,
    },
  ];
  return {
    kind: KIND_OF_END[end],
    idemKey: endingKey(receipt.withdrawalId),
    effectiveHeight: receipt.blockNumber,
    postings: postings.filter((posting) => posting.amountUnits > 0n),
  };
}

/** What a customer is charged for a payout that failed on the chain, at most its amount. */
function chargeOf(
  { cancelled, isSuccess }: SlotReceipt,
  { asset, customerId, amountUnits }: MovedWithdrawal,
  { failureFeeAtoken }: FailureRules,
): bigint {
  const hasFailed = cancelled === undefined && !isSuccess;
  // The fee is told in atoken: who asked for a token has none of these held.
  const isCharged = hasFailed && asset === NATIVE_ASSET && customerId !== TREASURY;
  if (!isCharged) return 0n;
  return failureFeeAtoken < amountUnits ? failureFeeAtoken : amountUnits;
}

const KIND_OF_END = {
  settled: "withdrawal.settle",
  failed: "withdrawal.fail",
  rejected: "withdrawal.reject",
  cancelled: "withdrawal.cancel",
} as const;
