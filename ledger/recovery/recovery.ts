/** Carries out a recovery: one commit, after which the ledger is open again in a new epoch. */
import type { Address } from "../../chain/address.js";
import {
  NATIVE_ASSET,
  NETWORK_FEE,
  RECOVERED_PAYMENTS,
  UNASSIGNED,
  walletAccount,
} from "../journal/accounts.js";
import { type Posting, postJournals } from "../journal/journal.js";
import { readTokenAssets, storeTokens, unknownTokens } from "../assets/asset-registry.js";
import { lockCursor } from "../watch/watch-cursor.js";
import { LedgerError } from "../errors.js";
import { appendEvents, type NewEvent } from "../events.js";
import { holdForIncident, openIncident } from "../incidents.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { storedAtoken } from "../stored-values.js";
import { isSamePayment, termsOf } from "../requests/payment-terms.js";
import { storePossible } from "../requests/possible-payments.js";
import { takeOver } from "../withdrawals/operator-decisions.js";
import { releaseBehindChain } from "../requests/signing-freeze.js";
import { forgetKeysHeld } from "../wallets/key-mark.js";
import { createHotWallet } from "../wallets/wallet-lease.js";
import { WAITING_STATUSES } from "../requests/withdrawal-status.js";
import { type StepResult, stepWithdrawals } from "../requests/withdrawal-steps.js";
import { endToldAgain } from "../webhooks/deliveries.js";
import { toWithdrawalId, type WithdrawalId } from "../requests/withdrawal-id.js";
import { freezeRecovered } from "../requests/recovered-payments.js";
import { readLedgerState } from "../guard/ledger-state.js";
import { closeRecovery } from "../guard/recovery-incident.js";
import { refuseWaiting } from "../wallets/waiting-in-pool.js";
import { registerInside } from "../wallets/wallet-registry.js";
import type { LostAddress } from "./lost-addresses.js";
import { toldAsOthers } from "./told-again.js";
import { refuseUnseen } from "./unseen-payments.js";
import {
  highestRemembered,
  type MinedPayment,
  readBooked,
  type RecoveryPlan,
  type WalletPlan,
} from "./recovery-plan.js";

/** What a recovery did beyond its plan. */
export interface RecoveryResult {
  /**
   * All withdrawals that waited: one of the recovered payments may have paid them, or they ended
   * behind the backup. They froze.
   */
  readonly frozen: readonly WithdrawalId[];
}

/** Rows of one statement. */
const CHUNK = 5_000;

/**
 * Books what the plan found: addresses without a customer, tokens, own payments into the account of
 * recovered payments, nonces; raises the epoch and opens the ledger. Either all of it, or nothing.
 * @param acceptUnseen wallets of which the operator says that they were used elsewhere before
 * @throws RECOVERY when the ledger moved or was recovered since the plan was made, payments wait in the
 *   pool, or a wallet had sent something before the ledger knew of it
 */
export async function applyRecovery(
  database: SqlDatabase,
  plan: RecoveryPlan,
  operator: string,
  acceptUnseen: readonly Address[] = [],
): Promise<RecoveryResult> {
  refuseUnseen(plan.wallets, acceptUnseen);
  refuseWaiting(plan.wallets);
  return database.transaction(async (tx) => {
    await assertUnmoved(tx, plan);
    await forgetKeysHeld(tx);
    const nextAgain = await toldAsOthers(tx, CHUNK);
    await endToldAgain(tx);
    await tx.query(`UPDATE event_counter SET epoch = $1, seq = greatest(seq, $2::bigint)`, [
      plan.epoch,
      plan.eventSeq,
    ]);
    await tx.query(`SELECT skip_told_positions()`);
    await registerLost(tx, plan);
    // Before payments are booked; the watcher may have stored them since the plan was made.
    await storeTokens(tx, await unknownTokens(tx, plan.tokens));
    const cancelled: NewEvent[] = [];
    for (const wallet of plan.wallets) {
      cancelled.push(...(await recoverWallet(tx, wallet, { epoch: plan.epoch, operator })));
    }
    await closeRecovery(tx, operator);
    const rows = await tx.query<{ id: string }>(
      `SELECT id FROM withdrawal
        WHERE phase = 'waiting' AND status = ANY ($1::text[]) ORDER BY position`,
      [WAITING_STATUSES],
    );
    const ids = rows.map(({ id }) => toWithdrawalId(id));
    const paid = await freezeRecovered(tx, ids);
    const doubtful = await freezeDoubtful(tx, ids);
    for (let page = await nextAgain(); page.length > 0; page = await nextAgain()) {
      await appendEvents(tx, page);
    }
    await appendEvents(tx, [...cancelled, ...paid.events, ...doubtful.events]);
    return { frozen: [...paid.frozen, ...doubtful.moved.keys()] };
  });
}

/**
 * What waits in a backup went on behind it: it may have been cancelled or rejected, and its customer
 * told so. Nothing on the chain shows that, so a person says what is still to be paid.
 */
function freezeDoubtful(tx: Sql, ids: readonly WithdrawalId[]): Promise<StepResult> {
  const steps = ids.map((id) => ({
    id,
    reason:
      "the ledger comes from a backup and has lost whether this was cancelled or rejected: " +
      `if it was, causeway withdrawals cancel ${id} --reason TEXT; then causeway withdrawals release ` +
      `${id} --not-paid pays or ends it`,
  }));
  return stepWithdrawals(tx, "frozen", steps, WAITING_STATUSES);
}

async function assertUnmoved(tx: Sql, plan: RecoveryPlan): Promise<void> {
  const cursor = await lockCursor(tx);
  const rows = await tx.query<{ wallet: string; next_nonce: string }>(
    `SELECT wallet, next_nonce::text FROM hot_wallet ORDER BY wallet FOR UPDATE`,
  );
  const nonces = new Map(rows.map((row) => [row.wallet, storedAtoken(row.next_nonce)]));
  // Carried out by somebody else, it would freeze what was asked for since; and a home may have
  // reported more: until the commit none adds to what it has told, or that would be told again by nobody.
  await holdForIncident(tx, "RECOVERY");
  const isOpen = (await openIncident(tx))?.kind === "RECOVERY";
  const remembered = await highestRemembered(tx, await readLedgerState(tx));
  const isSame =
    isOpen &&
    remembered.epoch + 1 === plan.epoch &&
    remembered.eventSeq === plan.eventSeq &&
    cursor.height === plan.cursorHeight &&
    cursor.nextAddressIndex + plan.addresses.length === plan.nextAddressIndex &&
    plan.wallets.every(({ wallet, ledgerNonce }) => nonces.get(wallet.address) === ledgerNonce);
  if (isSame) return;
  throw new LedgerError("RECOVERY", "the ledger moved since the plan was made: run it again");
}

/** Without a customer: what they receive goes to suspense until a person names one. */
async function registerLost(tx: Sql, plan: RecoveryPlan): Promise<void> {
  const fromHeight = plan.cursorHeight + 1;
  for (let start = 0; start < plan.addresses.length; start += CHUNK) {
    const part: readonly LostAddress[] = plan.addresses.slice(start, start + CHUNK);
    await tx.query(
      `INSERT INTO deposit_address (index, address, customer_id, from_height, backfilled)
       SELECT index, address, $3, $4, $5 FROM unnest($1::bigint[], $2::text[]) AS t (index, address)
        ORDER BY index`,
      [
        part.map(({ index }) => index),
        part.map(({ address }) => address),
        UNASSIGNED,
        fromHeight,
        fromHeight === 0,
      ],
    );
  }
  await tx.query(`UPDATE watch_cursor SET next_address_index = $1`, [plan.nextAddressIndex]);
}

/** @returns events to append last */
async function recoverWallet(
  tx: Sql,
  plan: WalletPlan,
  { epoch, operator }: { readonly epoch: number; readonly operator: string },
): Promise<readonly NewEvent[]> {
  const { address: wallet, label } = plan.wallet;
  if (!plan.isRegistered) {
    const reason = `${plan.wallet.reason}, and the ledger had lost it`;
    await registerInside(tx, [{ address: wallet, label, operator, reason }]);
  }
  await raiseNonce(tx, wallet, plan.nextNonce);
  await bookPayments(tx, { wallet, payments: plan.payments, epoch });
  const cancelled: NewEvent[] = [];
  for (const { payment, ...found } of plan.found) {
    cancelled.push(...(await takeOver(tx, { ...found, transaction: payment })));
  }
  await releaseBehindChain(tx, wallet);
  return cancelled;
}

async function raiseNonce(tx: Sql, wallet: Address, nextNonce: bigint): Promise<void> {
  await createHotWallet(tx, { wallet, firstNonce: nextNonce });
  await tx.query(
    `UPDATE hot_wallet SET next_nonce = greatest(next_nonce, $2::numeric)
                   WHERE wallet = $1`,
    [wallet, nextNonce.toString()],
  );
}

async function bookPayments(
  tx: Sql,
  {
    wallet,
    payments,
    epoch,
  }: {
    readonly wallet: Address;
    readonly payments: readonly MinedPayment[];
    readonly epoch: number;
  },
): Promise<void> {
  for (let start = 0; start < payments.length; start += CHUNK) {
    const part = payments.slice(start, start + CHUNK);
    const booked: ReadonlySet<string> = new Set(await readBooked(tx, wallet, part));
    const assets = await readTokenAssets(tx);
    const symbols = new Map(assets.map(({ contract, symbol }) => [contract, symbol]));
    const column = (read: (payment: MinedPayment) => unknown) => part.map(read);
    await tx.query(
      `INSERT INTO recovered_payment (tx_hash, wallet, nonce, height, block_hash, destination,
         amount_units, gas_used, gas_price_atoken, epoch, contract, decision)
       SELECT hash, $1, nonce, height, block_hash, destination, amount, gas, price, $2, contract,
              CASE WHEN hash = ANY ($11::text[]) THEN 'booked-before'
                   WHEN hash = ANY ($13::text[]) THEN 'nothing-paid' END
         FROM unnest($3::text[], $4::numeric[], $5::bigint[], $6::text[], $7::text[], $8::numeric[],
                     $9::numeric[], $10::numeric[], $12::text[])
              AS t (hash, nonce, height, block_hash, destination, amount, gas, price, contract)`,
      [
        wallet,
        epoch,
        column(({ hash }) => hash),
        column(({ nonce }) => nonce.toString()),
        column(({ height }) => height),
        column(({ blockHash }) => blockHash),
        column((payment) => termsOf(payment)?.destination ?? null),
        column((payment) => paidUnits(payment).toString()),
        column(({ gasUsed }) => gasUsed.toString()),
        column(({ gasPriceAtoken }) => gasPriceAtoken.toString()),
        [...booked],
        column((payment) => termsOf(payment)?.contract ?? null),
        part.flatMap(({ hash, paid, taken }) =>
          paid.length === 0 && taken.length === 0 ? [hash] : [],
        ),
      ],
    );
    await storePossible(tx, part.map(withoutOwnTerms));
    const unbooked = part.filter(({ hash }) => !booked.has(hash));
    await postJournals(
      tx,
      unbooked.map((payment) => ({
        kind: "recovery.payment",
        idemKey: `recovered-payment:${payment.hash}`,
        effectiveHeight: payment.height,
        memo: payment.hash,
        postings: postingsOf(wallet, payment, symbols),
      })),
    );
  }
}

/** What it may have paid beside what its row says: mostly nothing. */
function withoutOwnTerms(payment: MinedPayment): Pick<MinedPayment, "hash" | "paid"> {
  const own = termsOf(payment);
  const { hash, paid } = payment;
  return { hash, paid: paid.filter((one) => !isSamePayment(one, own)) };
}

/** What it paid by its own bytes; a failed one and the creation of a contract paid nothing. */
function paidUnits(payment: MinedPayment): bigint {
  return payment.isSuccess ? (termsOf(payment)?.amountUnits ?? payment.valueAtoken) : 0n;
}

/** @param symbols of the tokens that the ledger keeps books of; what others paid is not in them */
function postingsOf(
  wallet: Address,
  payment: MinedPayment,
  symbols: ReadonlyMap<Address, string>,
): Posting[] {
  const credit = walletAccount(wallet);
  const sides = [
    ...payment.taken.flatMap(({ contract, amountUnits }) => {
      const asset = contract === undefined ? NATIVE_ASSET : symbols.get(contract);
      return asset === undefined ? [] : [{ debit: RECOVERED_PAYMENTS, amountUnits, asset }];
    }),
    { debit: NETWORK_FEE, amountUnits: payment.feeAtoken, asset: NATIVE_ASSET },
  ];
  return sides.filter(({ amountUnits }) => amountUnits > 0n).map((side) => ({ ...side, credit }));
}
