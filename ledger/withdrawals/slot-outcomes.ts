/** How nonce slots end: a receipt is recorded, then booked once; or a foreign nonce is proven. */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import {
  customerAccount,
  heldAccount,
  HOT_WALLET,
  NETWORK_FEE,
  parseCustomerId,
} from "../books/accounts.js";
import { appendEvents } from "../events.js";
import { type JournalEntry, type Posting, postJournals } from "../books/journal.js";
import type { Inclusion, LiveSlot } from "./slot-rows.js";
import { type MovedWithdrawal, stepWithdrawals } from "./withdrawal-steps.js";
import { endingKey, type WithdrawalId } from "./withdrawals.js";

/** A receipt for one of a slot's attempts. */
export interface SlotReceipt extends Inclusion {
  readonly slotId: string;
  readonly withdrawalId: WithdrawalId;
  /** False when the transaction was mined but failed: the nonce and the fee are gone. */
  readonly isSuccess: boolean;
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
  readonly effectiveGasPriceAtoken: bigint;
}

/** Proof that another transaction consumed a slot's nonce: none of its attempts can ever pay. */
export interface ForeignNonce {
  readonly slotId: string;
  readonly withdrawalId: WithdrawalId;
  readonly foreignHash: Hash32;
  readonly blockNumber: Height;
}

/** The receipt of whichever of the slot's attempts was mined, signed by the slot's wallet. */
export function receiptOfSlot(
  slot: LiveSlot,
  byHash: ReadonlyMap<Hash32, MinedReceipt>,
): SlotReceipt | undefined {
  for (const { hash } of slot.attempts) {
    const receipt = byHash.get(hash);
    if (receipt === undefined || receipt.from !== slot.wallet) continue;
    return {
      slotId: slot.slotId,
      withdrawalId: slot.withdrawalId,
      isSuccess: receipt.status === 1,
      hash,
      blockNumber: receipt.height,
      blockHash: receipt.blockHash,
      gasUsed: receipt.gasUsed,
      effectiveGasPriceAtoken: receipt.effectiveGasPriceAtoken,
    };
  }
  return undefined;
}

/** Records where attempts were mined: `included`. @returns the withdrawals that moved */
export function recordInclusions(
  database: SqlDatabase,
  receipts: readonly SlotReceipt[],
): Promise<ReadonlySet<WithdrawalId>> {
  return database.transaction(async (tx) => {
    const { moved, events } = await stepWithdrawals(
      tx,
      "included",
      receipts.map(({ withdrawalId, hash, blockNumber }) => ({
        id: withdrawalId,
        data: { txHash: hash, blockNumber },
      })),
    );
    const movedReceipts = receipts.filter(({ withdrawalId }) => moved.has(withdrawalId));
    await tx.query(
      `UPDATE nonce_slot s
          SET mined_hash = input.hash, block_number = input.block_number,
              block_hash = input.block_hash, gas_used = input.gas_used,
              effective_gas_price_atoken = input.price
         FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::numeric[],
                     $6::numeric[]) AS input (id, hash, block_number, block_hash, gas_used, price)
        WHERE s.id = input.id AND s.outcome IS NULL`,
      [
        movedReceipts.map(({ slotId }) => slotId),
        movedReceipts.map(({ hash }) => hash),
        movedReceipts.map(({ blockNumber }) => blockNumber),
        movedReceipts.map(({ blockHash }) => blockHash),
        movedReceipts.map(({ gasUsed }) => gasUsed.toString()),
        movedReceipts.map(({ effectiveGasPriceAtoken }) => effectiveGasPriceAtoken.toString()),
      ],
    );
    await appendEvents(tx, events);
    return new Set(moved.keys());
  });
}

/**
 * Ends included withdrawals: `settled`, or `failed` with the hold released; the network fee is
 * expensed in either case. State, slot, postings and events are one commit.
 * @returns the withdrawals that ended
 */
export function settleSlots(
  database: SqlDatabase,
  receipts: readonly SlotReceipt[],
): Promise<ReadonlySet<WithdrawalId>> {
  return database.transaction(async (tx) => {
    const paid = receipts.filter(({ isSuccess }) => isSuccess);
    const reverted = receipts.filter(({ isSuccess }) => !isSuccess);
    const settled = await stepWithdrawals(tx, "settled", paid.map(toStep), ["included"]);
    const failed = await stepWithdrawals(
      tx,
      "failed",
      reverted.map((receipt) => ({
        ...toStep(receipt),
        reason: "the transaction was mined and failed",
      })),
      ["included"],
    );
    const moved = new Map([...settled.moved, ...failed.moved]);
    const ended = receipts.filter(({ withdrawalId }) => moved.has(withdrawalId));
    await closeSlots(tx, ended);
    await postJournals(
      tx,
      ended.flatMap((receipt) => {
        const withdrawal = moved.get(receipt.withdrawalId);
        return withdrawal === undefined ? [] : [endingEntry(receipt, withdrawal)];
      }),
    );
    await appendEvents(tx, [...settled.events, ...failed.events]);
    return new Set(moved.keys());
  });
}

/** Freezes withdrawals whose fate is unknown; only an operator frees them. */
export function freezeWithdrawals(
  database: SqlDatabase,
  steps: readonly { readonly id: WithdrawalId; readonly reason: string }[],
): Promise<ReadonlySet<WithdrawalId>> {
  return database.transaction(async (tx) => {
    const { moved, events } = await stepWithdrawals(tx, "frozen", steps);
    await appendEvents(tx, events);
    return new Set(moved.keys());
  });
}

/**
 * Books the proof that a foreign transaction consumed a frozen withdrawal's nonce. The withdrawal
 * becomes `accepted` again and may get a second slot: its first can never pay.
 * @returns false when the withdrawal was not frozen with that slot open
 */
export function releaseWithForeignNonce(
  database: SqlDatabase,
  proof: ForeignNonce,
): Promise<boolean> {
  return database.transaction(async (tx) => {
    const closed = await tx.query(
      `WITH closed AS (
         UPDATE nonce_slot s SET outcome = 'foreign', mined_hash = $2, block_number = $3::bigint
           FROM withdrawal w
          WHERE s.id = $1::bigint AND s.outcome IS NULL AND w.id = s.withdrawal_id
            AND w.status = 'frozen'
            AND NOT EXISTS (
              SELECT 1 FROM withdrawal_attempt a WHERE a.slot_id = s.id AND a.hash = $2)
         RETURNING s.id)
       SELECT id FROM closed`,
      [proof.slotId, proof.foreignHash, proof.blockNumber],
    );
    if (closed.length === 0) return false;
    const step = { id: proof.withdrawalId, data: { foreignTxHash: proof.foreignHash } };
    const { events } = await stepWithdrawals(tx, "accepted", [step], ["frozen"]);
    await appendEvents(tx, events);
    return true;
  });
}

function toStep(receipt: SlotReceipt) {
  return {
    id: receipt.withdrawalId,
    data: { txHash: receipt.hash, blockNumber: receipt.blockNumber },
  };
}

async function closeSlots(tx: Sql, ended: readonly SlotReceipt[]): Promise<void> {
  if (ended.length === 0) return;
  await tx.query(
    `UPDATE nonce_slot s SET outcome = input.outcome
       FROM unnest($1::bigint[], $2::text[]) AS input (id, outcome)
      WHERE s.id = input.id`,
    [
      ended.map(({ slotId }) => slotId),
      ended.map(({ isSuccess }) => (isSuccess ? "paid" : "reverted")),
    ],
  );
  await tx.query(
    `UPDATE hot_wallet h SET settled_height = greatest(h.settled_height, input.height)
       FROM (SELECT wallet, max(block_number) AS height FROM nonce_slot
              WHERE id = ANY ($1::bigint[]) GROUP BY wallet) AS input
      WHERE h.wallet = input.wallet`,
    [ended.map(({ slotId }) => slotId)],
  );
}

/** Postings of an ending; the fee is the exchange's expense, never the customer's. */
function endingEntry(receipt: SlotReceipt, withdrawal: MovedWithdrawal): JournalEntry {
  const customerId = parseCustomerId(withdrawal.customerId);
  const feeAtoken = receipt.gasUsed * receipt.effectiveGasPriceAtoken;
  const principal: Posting = {
    debit: heldAccount(customerId),
    credit: receipt.isSuccess ? HOT_WALLET : customerAccount(customerId),
    amountAtoken: withdrawal.amountAtoken,
  };
  const fee: Posting = { debit: NETWORK_FEE, credit: HOT_WALLET, amountAtoken: feeAtoken };
  return {
    kind: receipt.isSuccess ? "withdrawal.settle" : "withdrawal.fail",
    idemKey: endingKey(receipt.withdrawalId),
    effectiveHeight: receipt.blockNumber,
    postings: feeAtoken > 0n ? [principal, fee] : [principal],
  };
}
