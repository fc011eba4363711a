/**
 * How deposits are booked: to the customer, or to suspense, but for what they have to bring back. What a
 * customer had withdrawn of a deposit that a chain lost stands as a break; the same payment, mined
 * again, fills that first. Else it would be paid out twice. So does what was only on its way out then.
 */
import type { Sql } from "../../runtime/sql/sql.js";
import {
  type AccountCode,
  BREAK,
  customerAccount,
  DEPOSIT_ADDRESSES,
  parseCustomerId,
  SUSPENSE,
} from "../journal/accounts.js";
import { type JournalEntry, postJournal, postJournals } from "../journal/journal.js";
import { REVERSAL_KEY, reversalKey } from "../journal/reversals.js";
import { lockSuspense } from "./suspense.js";
import type { NewEvent } from "../events.js";
import { storedAddress, storedAtoken, storedHash, storedHeight } from "../stored-values.js";
import { creditedEvent, type DueDeposit, reversedEvent } from "./deposit-events.js";
import { bookingKeys, least, lockShort, readShort, reversalKeys, shareOut } from "./mined-again.js";
import { paymentKey, samePayments } from "./same-payment.js";
import { type FilledBy, fillUndone, heldBefore, numberedKeys } from "./undone-decisions.js";

/** Kind of the entries of deposits that are nobody's yet. */
const TO_SUSPENSE = "deposit.suspense";

/** How deposits are booked. */
export interface DepositBooking {
  readonly entries: readonly JournalEntry[];
  /** By a deposit's identifier, what somebody is given of it: the rest fills a break. */
  readonly givenUnits: ReadonlyMap<string, bigint>;
}

/**
 * Entries of deposits: those in suspense, then those that are credited, each in their order.
 * @param rewinds how often the chain came back without blocks; nothing is short on one that never did
 */
export async function depositEntries(
  tx: Sql,
  due: { readonly strayed: readonly DueDeposit[]; readonly credited: readonly DueDeposit[] },
  rewinds: number,
): Promise<DepositBooking> {
  const all = [
    ...due.strayed.map((deposit) => ({ deposit, kind: TO_SUSPENSE, to: SUSPENSE })),
    ...due.credited.map((deposit) => {
      return { deposit, kind: "deposit.credit", to: customerAccount(deposit.customerId) };
    }),
  ];
  const deposits = all.map(({ deposit }) => deposit);
  const isAgain = rewinds > 0 && deposits.length > 0;
  if (isAgain) await lockShort(tx, idsOf(deposits));
  const shares = isAgain ? await shareOut(tx, deposits) : undefined;
  const givenUnits = new Map<string, bigint>();
  const entries = all.map(({ deposit, kind, to }): JournalEntry => {
    const { id, asset, amountUnits, height, txHash } = deposit;
    const whole = { givenUnits: amountUnits, takenUnits: 0n, backUnits: 0n };
    const { givenUnits: restUnits, takenUnits, backUnits } = shares?.get(id) ?? whole;
    givenUnits.set(id, restUnits);
    const parts = [
      { credit: to, amountUnits: restUnits },
      { credit: SUSPENSE, amountUnits: takenUnits },
      { credit: BREAK, amountUnits: backUnits },
    ];
    return {
      kind,
      idemKey: `deposit:${id}`,
      effectiveHeight: height,
      memo: txHash,
      postings: parts
        .filter((part) => part.amountUnits > 0n)
        .map((part) => ({ ...part, asset, debit: DEPOSIT_ADDRESSES })),
    };
  });
  return { entries, givenUnits };
}

/**
 * Marks payments that lay in suspense on a chain that was lost and that no person gave to whom their
 * address belongs: mined again, they lie there again. Crediting them would decide it. So do units of a
 * token that were seen before it was listed: they were part of a sum there.
 * @param rewinds how often the chain came back without blocks
 */
export async function withoutUndecided<
  Deposit extends Pick<DueDeposit, "address" | "customerId" | "asset" | "txHash"> & {
    readonly creditable: boolean;
  },
>(tx: Sql, deposits: readonly Deposit[], rewinds: number): Promise<readonly Deposit[]> {
  if (rewinds === 0 || deposits.length === 0) return deposits;
  const rows = await tx.query<Record<"hash" | "address" | "asset", string>>(
    `SELECT DISTINCT paid.hash, paid.address, paid.asset
       FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
            AS paid (hash, address, asset, customer)
       JOIN deposit d ON d.tx_hash = paid.hash AND d.address = paid.address
        AND d.asset = paid.asset AND d.status = 'reversed'
       JOIN journal_entry e ON e.idem_key = 'deposit:' || d.id AND e.kind = '${TO_SUSPENSE}'
      WHERE (d.customer_id <> paid.customer
             OR NOT EXISTS (SELECT 1 FROM journal_entry r
                             WHERE r.idem_key = 'suspense-release:' || d.id))
        -- What was decided after an earlier loss counts.
        AND NOT EXISTS (SELECT 1 FROM deposit later
                         WHERE later.tx_hash = d.tx_hash AND later.address = d.address
                           AND later.asset = d.asset AND later.rewind > d.rewind)
     UNION
     SELECT paid.hash, paid.address, paid.asset
       FROM unnest($1::text[], $2::text[], $3::text[]) AS paid (hash, address, asset)
       JOIN token_sighting s ON s.tx_hash = paid.hash AND s.address = paid.address
        AND s.reason = 'UNKNOWN_TOKEN'
       JOIN asset a ON a.contract = s.contract AND a.symbol = paid.asset
      WHERE NOT EXISTS (SELECT 1 FROM deposit d
                         WHERE d.tx_hash = paid.hash AND d.address = paid.address
                           AND d.asset = paid.asset)`,
    [
      deposits.map(({ txHash }) => txHash),
      deposits.map(({ address }) => address),
      deposits.map(({ asset }) => asset),
      deposits.map(({ customerId }) => customerId),
    ],
  );
  const undecided = new Set(rows.map(({ hash, address, asset }) => `${hash} ${address} ${asset}`));
  return deposits.map((deposit) =>
    undecided.has(placeOf(deposit)) ? { ...deposit, creditable: false } : deposit,
  );
}

/** What nobody was given of a deposit, because it brought that back; nothing of one that is not there. */
export async function broughtBack(sql: Sql, id: string): Promise<bigint> {
  const [row] = await sql.query<{ units: string }>(
    `SELECT ${BROUGHT_BACK}::text AS units FROM deposit d WHERE d.id = $1`,
    [id],
  );
  return storedAtoken(row?.units ?? "0");
}

/** SQL: see `broughtBack`, of a deposit `d`. */
const BROUGHT_BACK = `(
  SELECT coalesce(sum(CASE WHEN p.credit = '${BREAK}' THEN p.amount_units ELSE -p.amount_units END), 0)
    FROM journal_entry e JOIN posting p ON p.journal_id = e.id AND '${BREAK}' IN (p.debit, p.credit)
   WHERE e.idem_key IN (${bookingKeys("d.id")}))`;

/** A withdrawal that ended without payment. */
export interface ReturnedHold {
  readonly withdrawalId: string;
  /** What its customer has again. */
  readonly units: bigint;
}

/**
 * Holds that came back in this transaction: one of before a loss held coins of the deposits that were
 * lost, which were taken for withdrawn. It fills what they are short of first, or its customer would
 * have them after all; what was asked for later is of other coins. The balances are locked by the holds'
 * own entries: two that come back at once are counted one after the other. Where a deposit was mined again
 * meanwhile and had brought back what the hold held, whoever has it has that of it now: lost once more, it is
 * taken back. What is left then fills what is missing of decisions.
 * @param options.by where a person gave it back
 * @returns events to append last
 */
export async function fillShort(
  tx: Sql,
  holds: readonly ReturnedHold[],
  { by }: { readonly by?: FilledBy } = {},
): Promise<NewEvent[]> {
  const leftUnits = new Map(holds.map(({ withdrawalId, units }) => [withdrawalId, units]));
  const events = holds.length === 0 ? [] : await fillDeposits(tx, leftUnits, by);
  await fillUndone(tx, leftUnits, by);
  return events;
}

/** What is read of a deposit that was lost or came again, as text. */
type DepositColumn =
  | "id"
  | "address"
  | "customer_id"
  | "asset"
  | "amount"
  | "height"
  | "tx_hash"
  | "key";

/** @param leftUnits lessened by what is filled @returns events to append last */
async function fillDeposits(
  tx: Sql,
  leftUnits: Map<string, bigint>,
  by: FilledBy | undefined,
): Promise<NewEvent[]> {
  const rows = await tx.query<
    Record<DepositColumn | "withdrawal", string> & { readonly count: number }
  >(
    `SELECT d.id, d.address, d.customer_id, d.asset, d.amount_units::text AS amount,
            d.height::text, d.tx_hash, w.id AS withdrawal, ${paymentKey("d")} AS key,
            (SELECT count(*)::integer FROM (${reversalKeys("d.id")}) AS undone) - 1 AS count
       FROM withdrawal w
       JOIN deposit d ON d.customer_id = w.customer_id AND d.asset = w.asset
        AND d.status = 'reversed'
       JOIN journal_entry e ON e.idem_key = '${REVERSAL_KEY}deposit:' || d.id
        AND ${heldBefore("e", "w.id")}
      WHERE w.id = ANY ($1::text[])
        AND EXISTS (SELECT 1 FROM watch_cursor WHERE rewinds > 0)
      ORDER BY w.position, d.seq`,
    [[...leftUnits.keys()]],
  );
  if (rows.length === 0) return [];
  const lost = rows.map((row) => ({
    id: row.id,
    address: storedAddress(row.address),
    customerId: parseCustomerId(row.customer_id),
    asset: row.asset,
    amountUnits: storedAtoken(row.amount),
    height: storedHeight(row.height),
    txHash: storedHash(row.tx_hash),
    withdrawalId: row.withdrawal,
    key: row.key,
    count: row.count,
  }));
  const counts = new Map(lost.map(({ id, count }) => [id, count]));
  await lockShort(tx, idsOf(lost));
  const shorts = await readShort(tx, idsOf(lost));
  const entries: JournalEntry[] = [];
  const events: NewEvent[] = [];
  for (const deposit of lost) {
    const { id, withdrawalId } = deposit;
    const short = shorts.get(id);
    const left = leftUnits.get(withdrawalId) ?? 0n;
    const amountUnits = least(short?.units ?? 0n, left);
    if (short === undefined || amountUnits <= 0n) continue;
    short.units -= amountUnits;
    leftUnits.set(withdrawalId, left - amountUnits);
    entries.push(filledEntry(deposit, { amountUnits, by, n: nextOf(counts, id) }));
    events.push(reversedEvent(deposit, amountUnits));
  }
  const returned = await returnedBy(tx, lost, { leftUnits, counts, by });
  await postJournals(tx, [...entries, ...returned.entries]);
  return [...events, ...returned.events];
}

/** A deposit that was lost, and a withdrawal whose hold held its coins. */
type LostDeposit = DueDeposit & { readonly withdrawalId: string; readonly key: string };

/**
 * What is left of holds is of the payments that were mined again and had brought it back: whoever has those
 * now is given it, the same customer, another one, or suspense where nobody has decided yet.
 */
async function returnedBy(
  tx: Sql,
  lost: readonly LostDeposit[],
  {
    leftUnits,
    counts,
    by,
  }: {
    readonly leftUnits: Map<string, bigint>;
    readonly counts: Map<string, number>;
    readonly by: FilledBy | undefined;
  },
): Promise<{ readonly entries: JournalEntry[]; readonly events: NewEvent[] }> {
  const again = await readAgain(tx, lost);
  const entries: JournalEntry[] = [];
  const events: NewEvent[] = [];
  for (const deposit of lost) {
    const { withdrawalId, asset, customerId } = deposit;
    for (const one of again.filter(({ key }) => key === deposit.key)) {
      const left = leftUnits.get(withdrawalId) ?? 0n;
      const amountUnits = least(one.broughtUnits, left);
      if (amountUnits <= 0n) continue;
      one.broughtUnits -= amountUnits;
      leftUnits.set(withdrawalId, left - amountUnits);
      const n = nextOf(counts, deposit.id);
      one.count += 1;
      entries.push(filledEntry(deposit, { amountUnits, by, n }), {
        kind: one.isCredited ? "deposit.credit" : TO_SUSPENSE,
        idemKey: `deposit:${one.id}:${one.count}`,
        effectiveHeight: one.height,
        memo: one.txHash,
        postings: [
          {
            asset,
            debit: BREAK,
            credit: one.isCredited ? customerAccount(one.customerId) : SUSPENSE,
            amountUnits,
          },
        ],
      });
      // Nothing to tell: its customer has it as before.
      if (one.isCredited && one.customerId === customerId) continue;
      events.push(reversedEvent(deposit, amountUnits));
      if (one.isCredited) events.push(creditedEvent(one, amountUnits));
    }
  }
  return { entries, events };
}

/** A hold fills what a deposit that was lost is short of. */
function filledEntry(
  { id, asset, customerId, height, txHash }: DueDeposit,
  entry: { readonly amountUnits: bigint; readonly by: FilledBy | undefined; readonly n: number },
): JournalEntry {
  const { amountUnits, by, n } = entry;
  const debit = customerAccount(customerId);
  return {
    kind: "deposit.reversal",
    idemKey: `${reversalKey(`deposit:${id}`)}:${n}`,
    effectiveHeight: by?.height ?? height,
    memo: by === undefined ? txHash : `${txHash} ${by.key}`,
    postings: [{ asset, debit, credit: BREAK, amountUnits }],
  };
}

function nextOf(counts: Map<string, number>, id: string): number {
  const n = (counts.get(id) ?? 0) + 1;
  counts.set(id, n);
  return n;
}

/**
 * The same payments as they stand now, mined again, with what they have brought back: whom a person gives one
 * to at this moment is given that, too, or is seen here, as is a chain that loses it.
 */
async function readAgain(tx: Sql, lost: readonly Pick<DueDeposit, "id">[]) {
  await lockSuspense(tx);
  const rows = await tx.query<
    Record<DepositColumn | "units", string> & {
      readonly is_credited: boolean;
      readonly count: number;
    }
  >(
    `SELECT d.id, d.address, d.customer_id, d.asset, d.amount_units::text AS amount,
            d.height::text, d.tx_hash, d.status = 'credited' AS is_credited,
            ${paymentKey("d")} AS key,
            ${BROUGHT_BACK}::text AS units,
            (SELECT count(*)::integer FROM (${bookingKeys("d.id")}) AS booked) - 1 AS count
       FROM deposit d
      WHERE d.status IN ('credited', 'suspense')
        AND d.id IN (SELECT same.id FROM deposit l CROSS JOIN LATERAL (${samePayments("l")}) AS same
                      WHERE l.id = ANY ($1::text[]))
      ORDER BY d.seq`,
    [idsOf(lost)],
  );
  return rows.map((row) => ({
    id: row.id,
    address: storedAddress(row.address),
    customerId: parseCustomerId(row.customer_id),
    asset: row.asset,
    amountUnits: storedAtoken(row.amount),
    height: storedHeight(row.height),
    txHash: storedHash(row.tx_hash),
    key: row.key,
    isCredited: row.is_credited,
    broughtUnits: storedAtoken(row.units),
    count: row.count,
  }));
}

/**
 * A person's decision is undone whose coins had filled what deposits were short of, and its customer has
 * not so much any more: they are short of it again.
 * @param key what `fillShort` was given @param wantedUnits the most that is missing
 * @returns what the customer has again, to be taken for the decision
 */
export async function emptyFilled(
  tx: Sql,
  {
    key,
    asset,
    wantedUnits,
  }: { readonly key: string; readonly asset: string; readonly wantedUnits: bigint },
): Promise<bigint> {
  if (wantedUnits === 0n) return 0n;
  const rows = await tx.query<
    Record<"kind" | "undone" | "memo" | "height" | "customer" | "units", string> & {
      readonly n: number;
    }
  >(
    `SELECT e.kind, base.undone, e.memo, e.effective_height::text AS height,
            p.debit AS customer, p.amount_units::text AS units,
            (SELECT count(*)::integer FROM (${numberedKeys("base.undone")}) AS keys) AS n
       FROM journal_entry e JOIN posting p ON p.journal_id = e.id
      CROSS JOIN LATERAL (SELECT regexp_replace(e.idem_key, ':[0-9]+$', '') AS undone) AS base
      -- Of deposits, and of decisions that were undone before.
      WHERE e.kind IN ('deposit.reversal', 'wallet.reversal')
        AND right(e.memo, length($1) + 1) = ' ' || $1
        AND p.asset = $2 AND p.credit = '${BREAK}'
      ORDER BY e.id`,
    [key, asset],
  );
  let leftUnits = wantedUnits;
  for (const { kind, undone, memo, height, customer, units, n } of rows) {
    const amountUnits = storedAtoken(units) < leftUnits ? storedAtoken(units) : leftUnits;
    if (amountUnits === 0n) break;
    leftUnits -= amountUnits;
    const credit = customer as AccountCode;
    await postJournal(tx, {
      kind,
      idemKey: `${undone}:${n}`,
      effectiveHeight: storedHeight(height),
      memo,
      postings: [{ asset, debit: BREAK, credit, amountUnits }],
    });
  }
  return wantedUnits - leftUnits;
}

function idsOf(deposits: readonly { readonly id: string }[]): readonly string[] {
  return deposits.map(({ id }) => id);
}

function placeOf({
  txHash,
  address,
  asset,
}: Pick<DueDeposit, "txHash" | "address" | "asset">): string {
  return `${txHash} ${address} ${asset}`;
}
