/**
 * Takes a mined transaction over as the payment of a frozen withdrawal, which gets the transaction's nonce
 * for its own: what the database refuses about that, and what is written, in one commit.
 */
import type { Address } from "../../chain/address.js";
import { present } from "../../chain/errors.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { LedgerError } from "../errors.js";
import { appendEvents } from "../events.js";
import { lockKillSwitch } from "../kill-switch/kill-switch.js";
import { type KillSwitchLevel, stops } from "../kill-switch/kill-switch-level.js";
import { termsOf } from "../requests/payment-terms.js";
import type { WithdrawalId } from "../requests/withdrawal-id.js";
import { stepWithdrawals } from "../requests/withdrawal-steps.js";
import { closeForeignSlot, type ForeignNonce, lockExplanation } from "./foreign-transactions.js";
import type { WalletTransaction } from "./operator-decisions.js";

/** A mined transaction that is a frozen withdrawal's payment. */
interface Adoption {
  readonly wallet: Address;
  readonly id: WithdrawalId;
  readonly payment: WalletTransaction;
  /** Closed with it: the withdrawal's own nonce, which something else has used. */
  readonly former?: ForeignNonce | undefined;
}

/**
 * Takes a mined transaction over as the payment of a frozen withdrawal (after a restored backup).
 * The worker books it from its receipt like any other.
 * @returns false when the withdrawal is not frozen, is not what the transaction paid, or the nonce
 *   belongs to another withdrawal
 * @throws INVALID_DECISION when the transaction is booked already; SIGNING_STOPPED and APPROVALS_MISSING
 *   where it would need a nonce that the database gives nobody
 */
export function adoptPayment(database: SqlDatabase, options: Adoption): Promise<boolean> {
  const { id, payment, former } = options;
  return database.transaction(async (tx) => {
    // Before any row, as whoever sets it does.
    const { level } = await lockKillSwitch(tx);
    if (!(await lockPaid(tx, options))) return false;
    await refuseBooked(tx, options);
    const place = await placeOf(tx, options);
    if (place === "taken") return false;
    if (place === "free") await refuseNonce(tx, options, level);
    if (former !== undefined && !(await closeForeignSlot(tx, former))) return false;
    await ensureSlot(tx, options);
    const slotId = await insertAdopted(tx, options);
    // Thrown, so that its own slot is not closed without it.
    if (former !== undefined) present(slotId, "a slot of its own for the payment that is named");
    if (slotId === undefined) return false;
    const step = { id, data: { txHash: payment.hash, adopted: true } };
    const { moved, events } = await stepWithdrawals(tx, "broadcast", [step], ["frozen"]);
    await appendEvents(tx, events);
    return moved.size > 0;
  });
}

/** Locks the withdrawal. @returns whether it is frozen, and what the transaction paid */
async function lockPaid(tx: Sql, { id, payment }: Adoption): Promise<boolean> {
  const terms = termsOf(payment);
  if (terms === undefined) return false;
  const rows = await tx.query(
    `SELECT w.id FROM withdrawal w JOIN asset a ON a.symbol = w.asset
      WHERE w.id = $1 AND w.status = 'frozen' AND w.destination = $2
        AND w.amount_units = $3::numeric AND a.contract IS NOT DISTINCT FROM $4
      FOR UPDATE OF w`,
    [id, terms.destination, terms.amountUnits.toString(), terms.contract ?? null],
  );
  return rows.length > 0;
}

/** Gives the withdrawal the nonce where it is nobody's; its gas is paid, so nothing is reserved. */
async function ensureSlot(tx: Sql, { wallet, id, payment }: Adoption): Promise<void> {
  await tx.query(
    `INSERT INTO nonce_slot (wallet, nonce, withdrawal_id, gas_limit, gas_price_atoken,
       reserved_atoken)
     VALUES ($1, $2::numeric, $3, $4::numeric, $5::numeric, 0)
     ON CONFLICT (wallet, nonce) DO NOTHING`,
    [
      wallet,
      payment.nonce.toString(),
      id,
      payment.gasUsed.toString(),
      payment.gasPriceAtoken.toString(),
    ],
  );
}

/** Writes the transaction as an attempt of the withdrawal's open slot. @returns the slot, if it has one */
async function insertAdopted(
  tx: Sql,
  { wallet, id, payment }: Adoption,
): Promise<string | undefined> {
  const rows = await tx.query<{ slot_id: string }>(
    `INSERT INTO withdrawal_attempt (slot_id, n, adopted, hash, gas_limit, gas_price_atoken)
     SELECT s.id, (SELECT count(*) FROM withdrawal_attempt a WHERE a.slot_id = s.id), true,
            $4, $5::numeric, $6::numeric
       FROM nonce_slot s
      WHERE s.wallet = $1 AND s.nonce = $2::numeric AND s.withdrawal_id = $3
        AND s.outcome IS NULL
     ON CONFLICT (hash) DO NOTHING
     RETURNING slot_id::text`,
    [
      wallet,
      payment.nonce.toString(),
      id,
      payment.hash,
      payment.gasUsed.toString(),
      payment.gasPriceAtoken.toString(),
    ],
  );
  return rows[0]?.slot_id;
}

/**
 * Whose the nonce of a payment is: this withdrawal's, nobody's yet, or taken, where it is another one's, or
 * this one has a nonce beside it that is not closed with the decision.
 */
async function placeOf(
  tx: Sql,
  { wallet, id, payment, former }: Adoption,
): Promise<"own" | "free" | "taken"> {
  const rows = await tx.query<{ is_own: boolean }>(
    `SELECT wallet = $1 AND nonce = $2::numeric AND withdrawal_id = $3 AS is_own FROM nonce_slot
      WHERE wallet = $1 AND nonce = $2::numeric
         OR withdrawal_id = $3 AND outcome IS DISTINCT FROM 'foreign'
            AND id IS DISTINCT FROM $4::bigint`,
    [wallet, payment.nonce.toString(), id, former?.slotId ?? null],
  );
  if (rows.length === 0) return "free";
  return rows.every(({ is_own }) => is_own) ? "own" : "taken";
}

/** What the database refuses about a new nonce, whoever asks, in words that say what to do. */
async function refuseNonce(
  tx: Sql,
  { id, payment: { hash } }: Adoption,
  level: KillSwitchLevel,
): Promise<void> {
  if (stops(level, "stop-sign")) {
    throw new LedgerError(
      "SIGNING_STOPPED",
      `The kill switch is at ${level}, and ${id} would get a nonce: causeway withdrawals freeze instead, ` +
        "then causeway killswitch lift --reason TEXT, and type this again.",
      { details: { id, level } },
    );
  }
  const [row] = await tx.query<{ customer_id: string; met: boolean }>(
    `SELECT customer_id, has_approvals(id) AS met FROM withdrawal WHERE id = $1`,
    [id],
  );
  if (row === undefined || row.met) return;
  throw new LedgerError(
    "APPROVALS_MISSING",
    `${id} lacks approvals of its policy, and cannot be paid by ${hash}. Take it back (causeway ` +
      `withdrawals cancel ${id} --reason TEXT, then causeway withdrawals release ${id} --not-paid), and ` +
      `book what was paid: causeway ledger accept-outflow ${hash} --account liability:customer:` +
      `${row.customer_id} --reason TEXT`,
    { details: { id, hash } },
  );
}

/**
 * Booked as something else, it is no withdrawal's any more. What a person took for an outflow is still
 * the payment of the withdrawal that its nonce was given to: nothing else could ever end that one.
 */
async function refuseBooked(
  tx: Sql,
  { wallet, id, payment: { hash, nonce } }: Adoption,
): Promise<void> {
  const explanation = await lockExplanation(tx, { wallet, hash });
  if (explanation !== "recovered" && explanation !== "outflow") return;
  const own = await tx.query(
    `SELECT 1 FROM nonce_slot
      WHERE wallet = $1 AND nonce = $2::numeric AND withdrawal_id = $3 AND outcome IS NULL`,
    [wallet, nonce.toString(), id],
  );
  if (explanation === "outflow" && own.length > 0) return;
  const by = explanation === "recovered" ? "a recovery" : "an operator as an outflow";
  throw new LedgerError(
    "INVALID_DECISION",
    `${hash} was booked by ${by} already; what waits for a person: causeway ledger open`,
  );
}
