/**
 * Payments that were booked from blocks that a chain lost, and that it mined again with another outcome:
 * one that had failed pays, one that was settled fails, or the payment is mined in the place of the
 * transfer that cancelled it. So may what a recovery has booked, for a request or for nobody yet. What the
 * books have too much or too little stands as a break, so that they agree with the chain, until a person says
 * who bears it.
 */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import type { Sql } from "../../runtime/sql/sql.js";
import {
  type AccountCode,
  BREAK,
  customerOf,
  DEPOSIT_ADDRESSES,
  IN_TRANSIT,
  NATIVE_ASSET,
  NETWORK_FEE,
  RECOVERED_PAYMENTS,
  SUSPENSE,
  walletAccount,
  WRITE_OFF,
} from "../journal/accounts.js";
import { type JournalEntry, type Posting, postJournal, postJournals } from "../journal/journal.js";
import { IS_NOT_REVERSED } from "../journal/reversals.js";
import { assertInSuspense } from "../deposits/suspense.js";
import { fillShort } from "../deposits/deposit-credit.js";
import { DECIDED, decisionKey, REMINED_KEY } from "../deposits/undone-decisions.js";
import { type Outflow, payerPlace } from "../watch/flows.js";
import { LedgerError } from "../errors.js";
import type { NewEvent } from "../events.js";
import { storedAtoken, storedHash, storedHeight } from "../stored-values.js";
import { bearerAccount } from "../requests/bearer.js";
import { freezeSigning } from "../requests/signing-freeze.js";

/** Entries of `bookRemined`. */
export const REMINED = "withdrawal.remined";

/** A payment whose second outcome waits for a person. */
export interface ReminedPayment {
  /** What it is called: the withdrawal, or its hash, and the loss of blocks that it belongs to. */
  readonly name: string;
  /** Undefined for one that a recovery booked and that is linked to no request; so is the customer. */
  readonly withdrawalId: string | undefined;
  readonly customerId: string | undefined;
  /** The account that bears it, unless a person knows better. */
  readonly bearer: AccountCode;
  /** How the withdrawal ended by the books, or what was decided about the recovered payment. */
  readonly status: string;
  readonly hash: Hash32;
  readonly height: Height;
  readonly asset: string;
  /** Signed: what the chain took more than is booked; below zero what it did not take. */
  readonly takenUnits: bigint;
}

/** What a transaction took of a wallet, in each asset beside the fee. */
interface Taken {
  readonly units: Map<string, bigint>;
  feeAtoken: Atoken;
}

interface Mined extends Taken {
  readonly wallet: Address;
  readonly hash: Hash32;
  readonly height: Height;
}

interface Booked extends Taken {
  /** Undefined for what a recovery booked and nobody has linked. */
  readonly withdrawalId: string | undefined;
  readonly status: string;
  /** Where what the ending did not take stands, until a person says who bears it. */
  readonly missing: AccountCode;
  /**
   * A person's word is all that says that it paid: its contract does not log what it moves. What it took
   * this time shows in the wallet's balance, which `reconcile` asks for.
   */
  readonly isUnsaid: boolean;
}

/**
 * Books what the chain took otherwise than the endings of these transactions' withdrawals say; a person's
 * matter freezes signing in the same commit. A fee alone is the exchange's expense, and nobody's matter;
 * nor is gas for a deposit address: the watcher books there what came, or did not.
 * Asked of every block: a watcher that was behind when the chain lost blocks goes on without a rewind.
 * @param flows.rewinds losses of blocks that the watcher went back for
 * @returns the outflows of which nothing is booked yet
 */
export async function bookRemined(
  tx: Sql,
  flows: { readonly outflows: readonly Outflow[]; readonly rewinds: number },
): Promise<readonly Outflow[]> {
  const mined = minedOf(flows.outflows);
  const bookedOf = await readBooked(tx, mined);
  const entries: JournalEntry[] = [];
  for (const one of mined) {
    const booked = bookedOf.get(payerPlace(one));
    if (booked === undefined) continue;
    const postings = differences(one, booked);
    if (postings.length === 0) continue;
    entries.push({
      kind: REMINED,
      idemKey: `${REMINED_KEY}${booked.withdrawalId ?? one.hash}-r${flows.rewinds}`,
      effectiveHeight: one.height,
      memo: `${one.hash} ${one.wallet}`,
      postings,
    });
    const isMatter = postings.some(({ debit, credit }) => debit === BREAK || credit === BREAK);
    if (isMatter) await freezeSigning(tx, one.wallet, freezeReason(one, booked));
  }
  await postJournals(tx, entries);
  return flows.outflows.filter(
    ({ wallet, txHash: hash }) => !bookedOf.has(payerPlace({ wallet, hash })),
  );
}

/** Payments that nobody has decided about, oldest first; those of blocks that are gone again are none. */
export async function listRemined(sql: Sql, limit: number): Promise<readonly ReminedPayment[]> {
  return readRemined(
    sql,
    `NOT EXISTS (SELECT 1 FROM journal_entry d
                  WHERE d.idem_key = 'remined-accepted:' || substr(e.idem_key, 9))`,
    [limit],
  );
}

/**
 * A person's word about one: the account that bears it. Its coins are booked already. What a customer is
 * given back fills what is missing of deposits that were lost with it first: it was paid out of those.
 * @returns events to append last, of others who have such a deposit now: the withdrawal has told its end, and
 *   neither is told of what is given back
 * @throws INVALID_DECISION; INSUFFICIENT_BALANCE where a customer has not so much any more
 */
export async function acceptRemined(
  tx: Sql,
  { name, account }: { readonly name: string; readonly account: AccountCode },
): Promise<readonly NewEvent[]> {
  const found = await readRemined(tx, `e.idem_key = 'remined:' || $2`, [100, name]);
  const [first] = found;
  if (first === undefined) {
    throw new LedgerError(
      "INVALID_DECISION",
      `${name} is no payment that a chain mined again with another outcome: causeway ledger open`,
    );
  }
  const hasNoSay = [BREAK, DEPOSIT_ADDRESSES, RECOVERED_PAYMENTS].includes(account);
  if (hasNoSay || account.startsWith("asset:wallet:")) {
    throw new LedgerError("INVALID_DECISION", `${account} has no say in who bears it`);
  }
  for (const { asset, takenUnits } of account === SUSPENSE ? found : []) {
    if (takenUnits > 0n) await assertInSuspense(tx, asset, takenUnits);
  }
  await postJournal(tx, {
    kind: DECIDED,
    idemKey: decisionKey(name),
    // Before this block nobody owed it.
    effectiveHeight: first.height,
    memo: first.hash,
    postings: found.map(({ asset, takenUnits }) => moved(asset, takenUnits, account, BREAK)),
  });
  const { withdrawalId } = first;
  if (withdrawalId === undefined || customerOf(account) !== first.customerId) return [];
  const [asked] = await tx.query<{ asset: string }>(`SELECT asset FROM withdrawal WHERE id = $1`, [
    withdrawalId,
  ]);
  const given = found.filter(({ asset, takenUnits }) => asset === asked?.asset && takenUnits < 0n);
  const by = { key: decisionKey(name), height: first.height };
  const filled = await fillShort(
    tx,
    given.map(({ takenUnits }) => ({ withdrawalId, units: -takenUnits })),
    { by },
  );
  return filled.filter(({ type }) => type === "deposit.credited");
}

function minedOf(outflows: readonly Outflow[]): readonly Mined[] {
  const byPlace = new Map<string, Mined>();
  for (const { role, wallet, txHash: hash, height, asset, amountUnits, feeAtoken } of outflows) {
    if (role !== "hot-wallet") continue;
    const place = payerPlace({ wallet, hash });
    const mined = byPlace.get(place) ?? { wallet, hash, height, units: new Map(), feeAtoken: 0n };
    add(mined.units, asset, amountUnits);
    mined.feeAtoken += feeAtoken;
    byPlace.set(place, mined);
  }
  return [...byPlace.values()];
}

/**
 * What ended withdrawals have booked, by wallet and any transaction that was signed for them, and what a
 * recovery has.
 */
async function readBooked(tx: Sql, mined: readonly Mined[]): Promise<ReadonlyMap<string, Booked>> {
  if (mined.length === 0) return new Map();
  const rows = await tx.query<{
    wallet: string;
    hash: string;
    id: string | null;
    status: string;
    asset: string | null;
    units: string | null;
    is_fee: boolean | null;
    is_gas: boolean;
    is_unsaid: boolean;
  }>(
    `SELECT b.wallet, b.hash, b.withdrawal_id AS id, b.status, b.asset, b.units::text AS units,
            b.is_fee,
            EXISTS (SELECT 1 FROM treasury_move m
                     WHERE m.withdrawal_id = b.withdrawal_id AND m.kind = 'top-up') AS is_gas,
            EXISTS (SELECT 1 FROM nonce_slot s
                     WHERE s.withdrawal_id = b.withdrawal_id AND s.paid_proof = 'decision'
                       -- Linked to what a recovery has read from the chain.
                       AND NOT EXISTS (SELECT 1 FROM recovered_payment r
                                        WHERE r.tx_hash = s.mined_hash)) AS is_unsaid
       FROM booked_of_payments($1::text[], $2::text[]) AS b`,
    [mined.map(({ wallet }) => wallet), mined.map(({ hash }) => hash)],
  );
  const bookedOf = new Map<string, Booked>();
  for (const { wallet, hash, status, asset, units, ...row } of rows) {
    const { is_fee: isFee } = row;
    const withdrawalId = row.id ?? undefined;
    const place = payerPlace({ wallet, hash });
    const missing = row.is_gas ? IN_TRANSIT : BREAK;
    const nothing = { withdrawalId, status, missing, isUnsaid: row.is_unsaid, feeAtoken: 0n };
    const booked = bookedOf.get(place) ?? { ...nothing, units: new Map<string, bigint>() };
    if (isFee === true) booked.feeAtoken += storedAtoken(units);
    else if (asset !== null) add(booked.units, asset, storedAtoken(units));
    bookedOf.set(place, booked);
  }
  return bookedOf;
}

/** What has to be posted beside the ending, so that both together are what the chain took. */
function differences(mined: Mined, booked: Booked): Posting[] {
  const { wallet } = mined;
  const credit = walletAccount(wallet);
  const assets = booked.isUnsaid ? [] : new Set([...mined.units.keys(), ...booked.units.keys()]);
  const unitsOf = (taken: Taken, asset: string) => taken.units.get(asset) ?? 0n;
  return [
    ...[...assets].map((asset) =>
      moved(asset, unitsOf(mined, asset) - unitsOf(booked, asset), booked.missing, credit),
    ),
    moved(NATIVE_ASSET, mined.feeAtoken - booked.feeAtoken, NETWORK_FEE, credit),
  ].filter(({ amountUnits }) => amountUnits > 0n);
}

/** A posting of a signed amount. */
function moved(asset: string, units: bigint, debit: AccountCode, credit: AccountCode): Posting {
  return units < 0n
    ? { asset, debit: credit, credit: debit, amountUnits: -units }
    : { asset, debit, credit, amountUnits: units };
}

function freezeReason({ hash, height }: Mined, { withdrawalId, status }: Booked): string {
  const what =
    withdrawalId === undefined
      ? `a recovery booked ${hash} (${status}), and it`
      : `withdrawal ${withdrawalId} ended as ${status}, and its transaction ${hash}`;
  return `${what} did otherwise in block ${height} of the chain that came back: causeway ledger open`;
}

async function readRemined(
  sql: Sql,
  condition: string,
  parameters: readonly unknown[],
): Promise<readonly ReminedPayment[]> {
  const rows = await sql.query<{
    name: string;
    id: string | null;
    customer_id: string | null;
    move_kind: string | null;
    status: string;
    memo: string;
    height: string;
    asset: string;
    units: string;
  }>(
    `SELECT substr(e.idem_key, 9) AS name, w.id, w.customer_id, m.kind AS move_kind,
            coalesce(w.status, f.decision, 'undecided') AS status, e.memo,
            e.effective_height::text AS height, p.asset,
            (CASE WHEN p.debit = '${BREAK}' THEN p.amount_units ELSE -p.amount_units END)::text
              AS units
       FROM journal_entry e
       JOIN posting p ON p.journal_id = e.id AND '${BREAK}' IN (p.debit, p.credit)
      CROSS JOIN LATERAL regexp_replace(substr(e.idem_key, 9), '-r[0-9]+$', '') AS called (id)
       LEFT JOIN recovered_payment f ON f.tx_hash = called.id
       LEFT JOIN withdrawal w ON w.id = coalesce(f.withdrawal_id, called.id)
       LEFT JOIN treasury_move m ON m.withdrawal_id = w.id
      WHERE e.kind = '${REMINED}' AND ${condition}
        AND ${IS_NOT_REVERSED}
      ORDER BY e.id, p.place LIMIT $1`,
    parameters,
  );
  return rows.map((row) => ({
    name: row.name,
    withdrawalId: row.id ?? undefined,
    customerId: row.customer_id ?? undefined,
    bearer:
      row.customer_id === null
        ? WRITE_OFF
        : bearerAccount({ customerId: row.customer_id, moveKind: row.move_kind }),
    status: row.status,
    hash: storedHash(row.memo.split(" ")[0]),
    height: storedHeight(row.height),
    asset: row.asset,
    takenUnits: storedAtoken(row.units),
  }));
}

function add(sums: Map<string, bigint>, asset: string, units: bigint): void {
  sums.set(asset, (sums.get(asset) ?? 0n) + units);
}
