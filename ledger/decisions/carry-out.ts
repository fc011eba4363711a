/** What each decision does to the books; every effect has a natural key of its own. */
import type { Hash32, Height } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import {
  type AccountCode,
  COLD_STORAGE,
  customerAccount,
  type CustomerId,
  DEPOSIT_ADDRESSES,
  NATIVE_ASSET,
  NETWORK_FEE,
  SUSPENSE,
  standsForNobody,
  TREASURY,
  UNASSIGNED,
  walletAccount,
} from "../journal/accounts.js";
import { postJournal, type Posting } from "../journal/journal.js";
import {
  assertInSuspense,
  lockSuspense,
  TAKEN_BY_NAME,
  takenByName,
} from "../deposits/suspense.js";
import { broughtBack } from "../deposits/deposit-credit.js";
import { creditedEvent } from "../deposits/deposit-events.js";
import { isPausedSql } from "../assets/token-state.js";
import { readCursor } from "../watch/watch-cursor.js";
import { LedgerError } from "../errors.js";
import type { NewEvent } from "../events.js";
import { acceptRemined } from "../blocks/remined-payments.js";
import { beyondMoves, IS_GAS } from "../treasury/moves.js";
import { decideTransfer } from "../withdrawals/slot-outcomes.js";
import { bearerOf } from "../requests/bearer.js";
import { endFrozen } from "../requests/endings.js";
import { clearRecovered } from "../requests/recovered-payments.js";
import { STANDS } from "../requests/unexplained-outflows.js";
import { freezeBooked, lockExplanation } from "../withdrawals/foreign-transactions.js";
import type { ForeignPayment } from "../requests/possible-payments.js";
import { storedAddress, storedAtoken, storedHash, storedHeight } from "../stored-values.js";
import type { DecisionTerms } from "./decision.js";
import { claimPayment, linkPayment, payWithdrawal, writeOffPayment } from "./payment-decisions.js";

type Terms<A extends DecisionTerms["action"]> = Extract<DecisionTerms, { readonly action: A }>;

/**
 * Carries a decision out inside the caller's transaction.
 * @param paid what an outflow that is accepted may have paid, where the chain shows it
 * @returns events to append last
 * @throws INVALID_DECISION with what stands in the way; INSUFFICIENT_BALANCE, UNKNOWN_CUSTOMER
 */
export async function carryOut(
  tx: Sql,
  terms: DecisionTerms,
  paid: ForeignPayment | undefined,
): Promise<readonly NewEvent[]> {
  switch (terms.action) {
    case "link-payment":
      return linkPayment(tx, terms);
    case "claim-payment":
      return claimPayment(tx, terms);
    case "write-off-payment":
      return writeOffPayment(tx, terms.hash);
    case "pay-withdrawal":
      return payWithdrawal(tx, terms.withdrawalId);
    case "assign-address":
      return assignAddress(tx, terms);
    case "assign-deposit":
      return assignDeposits(tx, terms.customerId, { id: terms.depositId });
    case "decide-transfer":
      return decideTransfer(tx, terms);
    case "accept-remined":
      return acceptRemined(tx, terms);
    case "accept-outflow":
      return acceptOutflow(tx, terms, paid);
    case "adjust":
      return adjust(tx, terms);
  }
  return terms satisfies never;
}

async function assignAddress(tx: Sql, terms: Terms<"assign-address">): Promise<NewEvent[]> {
  const { address, customerId, withDeposits } = terms;
  const rows = await tx.query<{ customer_id: string }>(
    `SELECT customer_id FROM deposit_address WHERE address = $1`,
    [address],
  );
  if (rows[0]?.customer_id !== UNASSIGNED) {
    const why = rows[0] === undefined ? "is none of this ledger's" : "has its customer";
    throw new LedgerError("INVALID_DECISION", `the address ${address} ${why}`);
  }
  await addCustomer(tx, customerId);
  await tx.query(`INSERT INTO address_assignment (address, customer_id) VALUES ($1, $2)`, [
    address,
    customerId,
  ]);
  return withDeposits ? assignDeposits(tx, customerId, { address }) : [];
}

/**
 * Deposits in suspense become the customer's: one by its id, or all unassigned ones of an address. What
 * our own wallets paid there and a lost ledger had asked for may be gas for a sweep: a person names such
 * a deposit by its id.
 */
async function assignDeposits(
  tx: Sql,
  customerId: CustomerId,
  which: { readonly id: string } | { readonly address: string },
): Promise<NewEvent[]> {
  await addCustomer(tx, customerId);
  await lockSuspense(tx);
  const byId = "id" in which;
  const chosen = [byId ? which.id : null, byId ? null : which.address, UNASSIGNED];
  await refusePaused(tx, chosen);
  const rows = await tx.query<{
    id: string;
    address: string;
    asset: string;
    amount_units: string;
    taken: string;
    height: string;
    tx_hash: string;
  }>(
    `WITH moved AS (
       UPDATE deposit d SET status = 'credited', customer_id = $4 WHERE ${IS_CHOSEN}
       RETURNING seq, id, address, asset, amount_units, height, tx_hash,
                 ${TAKEN_BY_NAME} AS taken)
     SELECT id, address, asset, amount_units::text, taken::text, height::text, tx_hash FROM moved
      ORDER BY seq`,
    [...chosen, customerId],
  );
  if (byId && rows.length === 0) {
    throw new LedgerError(
      "INVALID_DECISION",
      `${which.id} is no deposit in suspense of which anything is left (ledger decisions)`,
    );
  }
  const given = new Map<string, bigint>();
  const ofAssets = new Map<string, bigint>();
  for (const { id, asset, amount_units: amount, taken } of rows) {
    const leftUnits = storedAtoken(amount) - (await broughtBack(tx, id)) - storedAtoken(taken);
    const units = leftUnits > 0n ? leftUnits : 0n;
    given.set(id, units);
    if (units > 0n) ofAssets.set(asset, (ofAssets.get(asset) ?? 0n) + units);
  }
  for (const [asset, units] of ofAssets) await assertInSuspense(tx, asset, units);
  const events: NewEvent[] = [];
  for (const row of rows) {
    const { asset } = row;
    const givenUnits = given.get(row.id) ?? 0n;
    if (givenUnits > 0n) {
      const credit = customerAccount(customerId);
      await postJournal(tx, {
        kind: "ledger.suspense_release",
        idemKey: `suspense-release:${row.id}`,
        // Before this block there was nothing to owe.
        effectiveHeight: storedHeight(row.height),
        memo: row.tx_hash,
        postings: [{ asset, debit: SUSPENSE, credit, amountUnits: givenUnits }],
      });
    }
    const deposit = {
      id: row.id,
      customerId,
      address: storedAddress(row.address),
      asset,
      amountUnits: storedAtoken(row.amount_units),
      height: storedHeight(row.height),
      txHash: storedHash(row.tx_hash),
    };
    events.push(creditedEvent(deposit, givenUnits));
  }
  return events;
}

/** SQL: of a deposit `d`, whether a hot wallet paid it and nobody has said for which request. */
const IS_OUR_PAYMENT = `(
  EXISTS (SELECT 1 FROM recovered_payment r WHERE r.tx_hash = d.tx_hash AND r.withdrawal_id IS NULL)
  OR EXISTS (SELECT 1 FROM foreign_outflow f JOIN wallet w ON w.address = f.wallet
              WHERE f.tx_hash = d.tx_hash))`;

/**
 * SQL: whether a deposit `d` is one that a person gives to a customer.
 * @param $1 its id; $2 with none of that, its address; $3 `UNASSIGNED`
 */
const IS_CHOSEN = `status = 'suspense' AND NOT ${IS_GAS} AND amount_units > ${TAKEN_BY_NAME}
  AND CASE WHEN $1::text IS NULL
           THEN address = $2 AND customer_id = $3 AND NOT ${IS_OUR_PAYMENT}
           ELSE id = $1 END`;

/** The database credits nothing of a paused token, whoever says whose it is. */
async function refusePaused(tx: Sql, chosen: readonly (string | null)[]): Promise<void> {
  const [paused] = await tx.query<{ asset: string }>(
    `SELECT d.asset FROM deposit d WHERE ${IS_CHOSEN} AND ${isPausedSql("d.asset")} LIMIT 1`,
    chosen,
  );
  if (paused === undefined) return;
  throw new LedgerError(
    "INVALID_DECISION",
    `${paused.asset} is paused: nobody is given any of it before its code is accepted ` +
      "(causeway tokens state)",
  );
}

/** Books what an unasked transaction took from our addresses against the account that explains it. */
async function acceptOutflow(
  tx: Sql,
  terms: Terms<"accept-outflow">,
  paid: ForeignPayment | undefined,
): Promise<readonly NewEvent[]> {
  const { hash, account } = terms;
  const rows = await tx.query<{
    wallet: string;
    asset: string;
    amount_units: string;
    fee_atoken: string;
    height: string;
    is_deposit: boolean;
  }>(
    `SELECT wallet, asset, amount_units::text, fee_atoken::text, height::text,
            EXISTS (SELECT 1 FROM deposit_address d WHERE d.address = f.wallet) AS is_deposit
       FROM foreign_outflow f WHERE tx_hash = $1 AND ${STANDS} ORDER BY wallet, asset`,
    [hash],
  );
  const explained = await Promise.all(
    rows.map(({ wallet }) => lockExplanation(tx, { wallet: storedAddress(wallet), hash })),
  );
  if (rows.length === 0 || explained.some((explanation) => explanation !== undefined)) {
    throw new LedgerError(
      "INVALID_DECISION",
      `${hash} is no outflow that nobody asked for and that is not booked`,
    );
  }
  await assertWallet(tx, account);
  if (account === SUSPENSE) {
    for (const [asset, units] of sumByAsset(rows)) await assertInSuspense(tx, asset, units);
  }
  // Before anything explains it: from then on it stops no wallet.
  const events = await freezeBooked(tx, hash, paid);
  // One entry for each wallet: its key is what explains the transaction, whichever assets left.
  for (const wallet of new Set(rows.map((row) => row.wallet))) {
    const own = rows.filter((row) => row.wallet === wallet);
    const from: AccountCode =
      own[0]?.is_deposit === true ? DEPOSIT_ADDRESSES : walletAccount(storedAddress(wallet));
    if (account === from) throw new LedgerError("INVALID_DECISION", `it left ${from} itself`);
    const sides = own.flatMap(({ asset, amount_units, fee_atoken }): Posting[] => [
      { asset, debit: account, credit: from, amountUnits: storedAtoken(amount_units) },
      {
        asset: NATIVE_ASSET,
        debit: NETWORK_FEE,
        credit: from,
        amountUnits: storedAtoken(fee_atoken),
      },
    ]);
    await postJournal(tx, {
      kind: "ledger.outflow",
      idemKey: `outflow:${hash}:${wallet}`,
      effectiveHeight: storedHeight(own[0]?.height),
      memo: evidence(hash, wallet),
      postings: sides.filter(({ amountUnits }) => amountUnits > 0n),
    }).catch((error: unknown) => {
      throw notBorne(error, account);
    });
  }
  return events;
}

/** What a request holds is its customer's again when it has ended, and is no one's to bear before. */
function notBorne(error: unknown, account: AccountCode): unknown {
  if (!(error instanceof LedgerError && error.code === "INSUFFICIENT_BALANCE")) return error;
  return new LedgerError(
    "INSUFFICIENT_BALANCE",
    `${account} has less than it took. Where a request of theirs that is frozen holds it: accept it with ` +
      "--account asset:break and take the request back (causeway withdrawals cancel); then, in place of " +
      "causeway withdrawals release --not-paid, which gives the hold back, causeway ledger adjust --key " +
      `KEY --debit ${account} --credit asset:break --amount-atoken N --withdrawal <id> --reason TEXT, ` +
      "which takes it with the request's end",
    { cause: error },
  );
}

function sumByAsset(
  rows: readonly { readonly asset: string; readonly amount_units: string }[],
): ReadonlyMap<string, bigint> {
  const sums = new Map<string, bigint>();
  for (const { asset, amount_units: units } of rows) {
    sums.set(asset, (sums.get(asset) ?? 0n) + storedAtoken(units));
  }
  return sums;
}

async function adjust(tx: Sql, terms: Terms<"adjust">): Promise<readonly NewEvent[]> {
  await assertBooked(tx, terms);
  const { key, debit, credit, amountAtoken: amountUnits, hash, height, address } = terms;
  const { asset = NATIVE_ASSET } = terms;
  if (address !== undefined) {
    const known = await tx.query(`SELECT 1 FROM deposit_address WHERE address = $1`, [address]);
    if (known.length === 0) {
      throw new LedgerError("INVALID_DECISION", `${address} is no deposit address of this ledger`);
    }
  }
  for (const code of [debit, credit]) await assertWallet(tx, code);
  const named = await takeNamed(tx, terms);
  const events = await endNamed(tx, terms);
  if (debit === SUSPENSE) await assertInSuspense(tx, asset, amountUnits);
  await postJournal(tx, {
    kind: "ledger.adjustment",
    idemKey: `adjustment:${key}`,
    effectiveHeight: height ?? named?.height ?? (await lastBooked(tx)),
    memo: hash === undefined ? named?.hash : evidence(hash, address),
    postings: [{ asset, debit, credit, amountUnits }],
  });
  return events;
}

/**
 * The frozen request that a correction names ends unpaid: what it gives back is taken in the same commit, and
 * asked for by nobody before. One of the treasury's gives back what was in transit; its coins are where they
 * were paid to.
 * @returns events to append last
 * @throws INVALID_DECISION
 */
async function endNamed(
  tx: Sql,
  { withdrawalId: id, key, debit, asset = NATIVE_ASSET }: Terms<"adjust">,
): Promise<readonly NewEvent[]> {
  if (id === undefined) return [];
  const rows = await tx.query(
    `SELECT 1 FROM withdrawal w
      WHERE id = $1 AND status = 'frozen' AND asset = $2
        AND NOT EXISTS (SELECT 1 FROM nonce_slot s
                         WHERE s.withdrawal_id = w.id AND s.outcome IS DISTINCT FROM 'foreign')`,
    [id, asset],
  );
  if (rows.length === 0) {
    const what = `${id} is no request in ${asset} that is frozen without a nonce`;
    throw new LedgerError("INVALID_DECISION", what);
  }
  const bearer = await bearerOf(tx, id);
  if (bearer !== debit) {
    const what = `what ${id} was to pay is borne by ${bearer}, not by ${debit}`;
    throw new LedgerError("INVALID_DECISION", what);
  }
  const reason = `something else has paid it, as ${bearer} bears (causeway ledger adjust, with --key ${key})`;
  // Of the recovered payments that may have paid it, too, one that did is not asked about again.
  await clearRecovered(tx, id);
  const ended = await endFrozen(tx, { id, reason });
  if (ended !== undefined) return ended;
  const message = `something else may have paid ${id}, too: causeway ledger open`;
  throw new LedgerError("INVALID_DECISION", message);
}

/**
 * The deposit in suspense that a correction names, held until the commit: no more is taken than is left of
 * it.
 * @returns its transaction and block; undefined where none is named
 * @throws INVALID_DECISION
 */
async function takeNamed(tx: Sql, { depositId: id, amountAtoken, asset }: Terms<"adjust">) {
  if (id === undefined) return undefined;
  await lockSuspense(tx);
  const [row] = await tx.query<Record<"tx_hash" | "height" | "amount", string>>(
    `SELECT d.tx_hash, d.height::text, d.amount_units::text AS amount FROM deposit d
      WHERE d.id = $1 AND d.status = 'suspense' AND d.asset = $2 FOR UPDATE`,
    [id, asset ?? NATIVE_ASSET],
  );
  // Behind the lock: what another one took before it is seen. This one is decided already, and in it.
  const othersUnits = (await takenByName(tx, id)) - amountAtoken;
  const takenUnits = othersUnits + (await broughtBack(tx, id));
  const leftUnits = row === undefined ? 0n : storedAtoken(row.amount) - takenUnits;
  if (row === undefined || amountAtoken > leftUnits) {
    const of = `of ${asset ?? NATIVE_ASSET} of which ${amountAtoken} units are left`;
    throw new LedgerError(
      "INVALID_DECISION",
      `${id} is no deposit in suspense ${of}: ${leftUnits} are`,
    );
  }
  return { hash: storedHash(row.tx_hash), height: storedHeight(row.height) };
}

/**
 * A correction is in an asset of the ledger, and counts from a block that is booked: a number with a digit
 * too many would take it out of the books of every block that is reconciled, for ever.
 * @throws INVALID_DECISION
 */
export async function assertBooked(tx: Sql, terms: DecisionTerms): Promise<void> {
  if (terms.action !== "adjust") return;
  const { asset = NATIVE_ASSET } = terms;
  const known = await tx.query(`SELECT 1 FROM asset WHERE symbol = $1`, [asset]);
  if (known.length === 0) {
    throw new LedgerError("INVALID_DECISION", `no asset of this ledger is called ${asset}`);
  }
  await assertOfItsAsset(tx, terms);
  await assertOfNoMove(tx, terms);
  if (terms.height === undefined) return;
  const { height } = await readCursor(tx);
  if (terms.height <= height) return;
  throw new LedgerError(
    "INVALID_DECISION",
    `block ${terms.height} is not booked yet: the ledger is at block ${height}`,
  );
}

/** Keys by which the runbooks make a withdrawal good, with its id (docs/rotation.md, docs/restore.md). */
const MAKES_GOOD = /^(?:lost-key|found-key|by-hand):(.+)$/;

/**
 * A token is named by an option that is easily left out, and as many units of coins are worth something else.
 * @throws INVALID_DECISION where the key names a withdrawal that is of another asset
 */
async function assertOfItsAsset(
  tx: Sql,
  { key, asset = NATIVE_ASSET }: Terms<"adjust">,
): Promise<void> {
  const [, id] = MAKES_GOOD.exec(key) ?? [];
  if (id === undefined) return;
  const [row] = await tx.query<{ readonly asset: string }>(
    `SELECT asset FROM withdrawal WHERE id = $1`,
    [id],
  );
  if (row === undefined || row.asset === asset) return;
  throw new LedgerError(
    "INVALID_DECISION",
    `${id} is a withdrawal of ${row.asset}, not of ${asset}: say --asset ${row.asset}`,
  );
}

/**
 * What the treasury's account has is what its moves that ended unpaid take back: a correction takes what a
 * former release has given beside that, and gives what one has taken of it.
 * @throws INVALID_DECISION
 */
async function assertOfNoMove(
  tx: Sql,
  { debit, credit, amountAtoken, asset = NATIVE_ASSET }: Terms<"adjust">,
): Promise<void> {
  const account = customerAccount(TREASURY);
  if (debit !== account && credit !== account) return;
  const beyondUnits = await beyondMoves(tx, asset);
  const mostUnits = debit === account ? beyondUnits : -beyondUnits;
  if (amountAtoken <= mostUnits) return;
  if (mostUnits > 0n) {
    const most = `${mostUnits} units of ${asset} at most are ${account}'s to`;
    const what = `${most} ${debit === account ? "give" : "get"} back`;
    throw new LedgerError("INVALID_DECISION", what);
  }
  const where =
    debit === account
      ? `: what its moves paid to cold storage is on ${COLD_STORAGE}, and gas in ${SUSPENSE}`
      : "";
  throw new LedgerError("INVALID_DECISION", `${TREASURY} stands for nobody${where}`);
}

/**
 * Block from which on a correction counts that names none: the last one that is booked as it is made. What
 * was owed at earlier blocks, and may have been proven, stays what it was. The caller holds the cursor.
 * @returns null where no block is booked: it counts from the first one on
 */
async function lastBooked(tx: Sql): Promise<Height | null> {
  const { height } = await readCursor(tx);
  return height < 0 ? null : height;
}

/** An account of a wallet that nobody knows would hold coins that nobody looks for. */
async function assertWallet(tx: Sql, code: AccountCode): Promise<void> {
  const rows = await tx.query(
    `SELECT 1 WHERE $1 LIKE 'asset:wallet:%'
        AND NOT EXISTS (SELECT 1 FROM wallet WHERE 'asset:wallet:' || address = $1)`,
    [code],
  );
  if (rows.length > 0) {
    throw new LedgerError("INVALID_DECISION", `${code} is no account of a wallet of this ledger`);
  }
}

/** Memo of an entry: the transaction that proves it, and the address that it is about. */
function evidence(hash: Hash32, address: string | undefined): string {
  return address === undefined ? hash : `${storedHash(hash)} ${address}`;
}

async function addCustomer(tx: Sql, customerId: CustomerId): Promise<void> {
  if (standsForNobody(customerId)) {
    throw new LedgerError("INVALID_DECISION", `${customerId} stands for nobody`);
  }
  await tx.query(`INSERT INTO customer (id) VALUES ($1) ON CONFLICT DO NOTHING`, [customerId]);
}
