/** What a person decides about payments that a recovery found, and about requests that equal one. */
import { toChecksumAddress } from "../../chain/address.js";
import type { Hash32 } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import {
  type CustomerId,
  heldAccount,
  NATIVE_ASSET,
  parseCustomerId,
  RECOVERED_PAYMENTS,
  WRITE_OFF,
} from "../journal/accounts.js";
import { postJournal } from "../journal/journal.js";
import { readTokenAssets } from "../assets/asset-registry.js";
import { LedgerError } from "../errors.js";
import type { NewEvent } from "../events.js";
import { hashPolicy, PERMISSIVE_POLICY } from "../policy/policy.js";
import {
  clearRecovered,
  lockPayment,
  type RecoveredPayment,
} from "../requests/recovered-payments.js";
import { storedAtoken } from "../stored-values.js";
import { bearerOf } from "../requests/bearer.js";
import { earnedFeePostings } from "../requests/holds.js";
import { endIfCancelled } from "../requests/endings.js";
import { WAITING_STATUSES } from "../requests/withdrawal-status.js";
import { stepWithdrawals } from "../requests/withdrawal-steps.js";
import { endingKey, type WithdrawalId } from "../requests/withdrawal-id.js";
import { isGasOf } from "../treasury/moves.js";
import { type AcceptRules, acceptWithdrawals } from "../withdrawals/withdrawals.js";

/** The request is settled by the payment; its coins and fee were booked when it was recovered. */
export async function linkPayment(
  tx: Sql,
  link: { readonly hash: Hash32; readonly withdrawalId: WithdrawalId },
): Promise<NewEvent[]> {
  const { hash, withdrawalId: id } = link;
  const payment = await lockUndecided(tx, hash);
  const rows = await tx.query<{
    customer_id: string;
    asset: string;
    fee_units: string;
    status: string;
    fits: boolean;
  }>(
    `SELECT w.customer_id, w.asset, w.fee_units::text, w.status,
            w.destination = $2 AND w.amount_units = $3::numeric
              AND a.contract IS NOT DISTINCT FROM $4 AS fits
       FROM withdrawal w JOIN asset a ON a.symbol = w.asset WHERE w.id = $1 FOR UPDATE OF w`,
    [id, payment.destination ?? "", payment.amountUnits.toString(), payment.contract ?? null],
  );
  const row = rows[0];
  if (row === undefined) throw refused(`no withdrawal has the id ${id}`);
  const booked = await bookedUnits(tx, hash);
  const isWhole = booked.size === 1 && booked.get(row.asset) === payment.amountUnits;
  if (!(row.fits && isWhole)) {
    if (await mayHaveBeenPaid(tx, id, hash)) throw await paidAmongOthers(tx, id, hash);
    throw refused(`${hash} paid another amount or another address than ${id} asks`);
  }
  const isWaiting = WAITING_STATUSES.some((status) => status === row.status);
  if (row.status !== "frozen" && !isWaiting) {
    throw refused(`${id} is ${row.status}: only what waits or is frozen can be linked`);
  }
  await refuseGiven(tx, id, hash);
  await tx.query(
    `UPDATE recovered_payment SET decision = 'linked', withdrawal_id = $2 WHERE tx_hash = $1`,
    [hash, id],
  );
  const frozen = await stepWithdrawals(tx, "frozen", [{ id, reason: "linked" }], WAITING_STATUSES);
  if (await hasNonce(tx, id)) throw await usedNonce(tx, id, hash);
  await closeSlot(tx, payment, id);
  const data = { txHash: hash, blockNumber: payment.height, recovered: true };
  const included = await stepWithdrawals(tx, "included", [{ id, data }], ["frozen"]);
  const settled = await stepWithdrawals(tx, "settled", [{ id, data }], ["included"]);
  if (!settled.moved.has(id)) throw await usedNonce(tx, id, hash);
  await postJournal(tx, {
    kind: "withdrawal.settle",
    idemKey: endingKey(id),
    // Up to this block it was owed.
    effectiveHeight: payment.height,
    memo: hash,
    postings: [
      {
        asset: row.asset,
        debit: heldAccount(parseCustomerId(row.customer_id)),
        credit: RECOVERED_PAYMENTS,
        amountUnits: payment.amountUnits,
      },
      ...earnedFeePostings({
        customerId: row.customer_id,
        asset: row.asset,
        amountUnits: payment.amountUnits,
        feeUnits: storedAtoken(row.fee_units),
      }),
    ],
  });
  return [...frozen.events, ...included.events, ...settled.events];
}

/**
 * Gas that a person has given to a customer is in suspense no more, and what its request has in transit would
 * never arrive: the request ends as one that nothing has paid.
 */
async function refuseGiven(tx: Sql, id: WithdrawalId, hash: Hash32): Promise<void> {
  const [given] = await tx.query<{ id: string; customer_id: string }>(
    `SELECT d.id, d.customer_id FROM treasury_move m
       JOIN deposit d ON ${isGasOf("m", "$2")} AND d.status = 'credited'
      WHERE m.withdrawal_id = $1 LIMIT 1`,
    [id, hash],
  );
  if (given === undefined) return;
  throw refused(
    `${hash} is gas for a sweep, and ${given.customer_id} was given it as the deposit ${given.id}: ` +
      `causeway withdrawals cancel ${id} --reason TEXT, then causeway ledger pay-withdrawal ${id} ` +
      "--reason TEXT, which ends it; causeway ledger adjust --key KEY --debit " +
      `liability:customer:${given.customer_id} --credit expense:write_off --amount-atoken N --reason ` +
      `TEXT takes it back; and causeway ledger write-off-payment ${hash} --reason TEXT`,
  );
}

/** What the recovery booked of a payment beside its fee, by asset. */
async function bookedUnits(tx: Sql, hash: Hash32): Promise<ReadonlyMap<string, bigint>> {
  const rows = await tx.query<{ asset: string; units: string }>(
    `SELECT p.asset, p.amount_units::text AS units
       FROM journal_entry e JOIN posting p ON p.journal_id = e.id
      WHERE e.idem_key = 'recovered-payment:' || $1 AND p.debit = $2`,
    [hash, RECOVERED_PAYMENTS],
  );
  return new Map(rows.map(({ asset, units }) => [asset, storedAtoken(units)]));
}

async function mayHaveBeenPaid(tx: Sql, id: WithdrawalId, hash: Hash32): Promise<boolean> {
  const rows = await tx.query(
    `SELECT 1 FROM withdrawal w JOIN asset a ON a.symbol = w.asset
       JOIN recovered_terms r ON r.destination = w.destination AND r.amount_units = w.amount_units
        AND r.contract IS NOT DISTINCT FROM a.contract
      WHERE w.id = $1 AND r.tx_hash = $2`,
    [id, hash],
  );
  return rows.length > 0;
}

/** One nonce settles one request: of a payment of several each is ended, and given by the books. */
async function paidAmongOthers(tx: Sql, id: WithdrawalId, hash: Hash32): Promise<LedgerError> {
  return refused(
    `${hash} may have paid ${id} among others. If it did: causeway ledger adjust --key by-hand:${id} ` +
      `--debit ${await bearerOf(tx, id)} --credit expense:write_off --amount-atoken N --withdrawal ${id} ` +
      "--reason TEXT, which ends it and takes what it held; when that is done for each that it paid: " +
      `causeway ledger write-off-payment ${hash} --reason TEXT`,
  );
}

async function hasNonce(tx: Sql, id: WithdrawalId): Promise<boolean> {
  const rows = await tx.query(
    `SELECT 1 FROM nonce_slot WHERE withdrawal_id = $1 AND outcome IS DISTINCT FROM 'foreign'`,
    [id],
  );
  return rows.length > 0;
}

/** It ends by its own nonce; what another one has paid for it is taken from its customer by the books. */
async function usedNonce(tx: Sql, id: WithdrawalId, hash: Hash32): Promise<LedgerError> {
  return refused(
    `${id} has a nonce of its own: causeway withdrawals release ${id}. Where that names ${hash}: causeway ` +
      `ledger write-off-payment ${hash} --reason TEXT, then causeway withdrawals release, which ends it; ` +
      "and if it was its payment: causeway killswitch set stop-new --reason TEXT before that, so that " +
      "nobody asks for what it gives back, and causeway ledger adjust --key KEY --debit " +
      `${await bearerOf(tx, id)} --credit expense:write_off --amount-atoken N --reason TEXT`,
  );
}

/** The slot that the lost ledger took: its nonce and bytes are what the chain shows. */
async function closeSlot(tx: Sql, payment: RecoveredPayment, id: WithdrawalId): Promise<void> {
  const { hash, wallet, nonce, gasUsed, gasPriceAtoken } = payment;
  const slots = await tx.query<{ id: string }>(
    `INSERT INTO nonce_slot (wallet, nonce, withdrawal_id, gas_limit, gas_price_atoken,
       reserved_atoken, outcome, mined_hash, block_number, block_hash, gas_used,
       effective_gas_price_atoken, paid_proof)
     VALUES ($1, $2::numeric, $3, $4::numeric, $5::numeric, 0, 'paid', $6, $7, $8, $4::numeric,
             $5::numeric, 'decision') RETURNING id::text`,
    [
      wallet,
      nonce.toString(),
      id,
      gasUsed.toString(),
      gasPriceAtoken.toString(),
      hash,
      payment.height,
      payment.blockHash,
    ],
  );
  await tx.query(
    `INSERT INTO withdrawal_attempt (slot_id, n, adopted, hash, gas_limit, gas_price_atoken)
     VALUES ($1::bigint, 0, true, $2, $3::numeric, $4::numeric)`,
    [slots[0]?.id, hash, gasUsed.toString(), gasPriceAtoken.toString()],
  );
}

/** It was judged when it was made; what counts now is that it was paid. */
const LOST_REQUEST: AcceptRules = {
  minimumAtoken: 0n,
  nowMs: 0,
  policy: hashPolicy(PERMISSIVE_POLICY),
  isStopped: false,
};

/**
 * Books a request that the ledger lost as it was: accepted with its key, so that a client's repeat
 * gets its answer, and settled by the payment.
 */
export async function claimPayment(
  tx: Sql,
  claim: {
    readonly hash: Hash32;
    readonly customerId: CustomerId;
    readonly idempotencyKey: string;
  },
): Promise<NewEvent[]> {
  const payment = await lockUndecided(tx, claim.hash);
  const { destination, amountUnits } = payment;
  if (destination === undefined) {
    throw refused(
      `${claim.hash} created a contract, or paid several: it is no one's request alone`,
    );
  }
  const inside = { transaction: <T>(work: (inner: Sql) => Promise<T>) => work(tx) };
  const [outcome] = await acceptWithdrawals(
    inside,
    [
      {
        idempotencyKey: claim.idempotencyKey,
        customerId: claim.customerId,
        asset: await assetOf(tx, payment),
        destination,
        destinationText: toChecksumAddress(destination),
        amountUnits,
      },
    ],
    LOST_REQUEST,
  );
  if (outcome === undefined || outcome.outcome === "refused") {
    throw refused(`the customer's request cannot be booked: ${outcome?.refusal ?? "no answer"}`);
  }
  return linkPayment(tx, { hash: claim.hash, withdrawalId: outcome.withdrawal.id });
}

/** Nobody's payment: the exchange bears it. */
export async function writeOffPayment(tx: Sql, hash: Hash32): Promise<NewEvent[]> {
  await lockUndecided(tx, hash);
  await tx.query(`UPDATE recovered_payment SET decision = 'written-off' WHERE tx_hash = $1`, [
    hash,
  ]);
  const booked = await bookedUnits(tx, hash);
  // Of a token that nobody listed, or that was another one's, nothing is on the books.
  if (booked.size === 0) return [];
  await postJournal(tx, {
    kind: "recovery.write_off",
    idemKey: `recovered-payment:${hash}:write-off`,
    effectiveHeight: null,
    memo: hash,
    postings: [...booked].map(([asset, amountUnits]) => {
      return { asset, debit: WRITE_OFF, credit: RECOVERED_PAYMENTS, amountUnits };
    }),
  });
  return [];
}

/** A request that froze because it equals a recovered payment was another one: it is paid. */
export async function payWithdrawal(tx: Sql, id: WithdrawalId): Promise<NewEvent[]> {
  const rows = await tx.query(
    `SELECT 1 FROM withdrawal w CROSS JOIN LATERAL undecided_payment_of(w.id)
      WHERE w.id = $1 AND w.status = 'frozen'
        AND NOT EXISTS (SELECT 1 FROM nonce_slot s
                         WHERE s.withdrawal_id = w.id AND s.outcome IS DISTINCT FROM 'foreign')`,
    [id],
  );
  if (rows.length === 0) {
    throw refused(`${id} is not frozen for a recovered payment: see causeway withdrawals release`);
  }
  await clearRecovered(tx, id);
  const { events } = await stepWithdrawals(tx, "accepted", [{ id }], ["frozen"]);
  // Its customer may have taken the wish back while it was frozen.
  return [...events, ...(await endIfCancelled(tx, id))];
}

/** The asset that was paid; tokens that the ledger does not keep books of are in none of them. */
async function assetOf(tx: Sql, { hash, contract }: RecoveredPayment): Promise<string> {
  if (contract === undefined) return NATIVE_ASSET;
  const asset = (await readTokenAssets(tx)).find((one) => one.contract === contract);
  if (asset === undefined) throw refused(`${hash} paid a token that is not listed: ${contract}`);
  return asset.symbol;
}

async function lockUndecided(tx: Sql, hash: Hash32): Promise<RecoveredPayment> {
  const payment = await lockPayment(tx, hash);
  if (payment === undefined) throw refused(`${hash} is no recovered payment`);
  if (payment.decision !== undefined) throw refused(`${hash} is decided: ${payment.decision}`);
  return payment;
}

function refused(message: string): LedgerError {
  return new LedgerError("INVALID_DECISION", message);
}
