/**
 * How deposits are booked: to the customer, or to suspense, but for what they have to bring back. What a
 * customer had withdrawn of a deposit that a chain lost stands as a break; the same payment, mined
 * again, fills that first. Else it would be paid out twice.
 */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import {
  BREAK,
  customerAccount,
  type CustomerId,
  DEPOSIT_ADDRESSES,
  SUSPENSE,
} from "../books/accounts.js";
import type { JournalEntry } from "../books/journal.js";
import { storedAtoken } from "../stored-values.js";

/** Kind of the entries of deposits that are nobody's yet. */
const TO_SUSPENSE = "deposit.suspense";

/** A deposit that is booked now. */
export interface DueDeposit {
  /** Its public identifier. */
  readonly id: string;
  readonly address: Address;
  readonly customerId: CustomerId;
  readonly asset: string;
  readonly amountUnits: bigint;
  readonly height: Height;
  readonly txHash: Hash32;
}

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
  const shortUnits = rewinds === 0 ? new Map<string, bigint>() : await readShort(tx, deposits);
  const givenUnits = new Map<string, bigint>();
  const entries = all.map(({ deposit, kind, to }): JournalEntry => {
    const { id, asset, amountUnits, height, txHash } = deposit;
    const short = shortUnits.get(placeOf(deposit)) ?? 0n;
    const backUnits = short < amountUnits ? short : amountUnits;
    shortUnits.set(placeOf(deposit), short - backUnits);
    givenUnits.set(id, amountUnits - backUnits);
    const parts = [
      { credit: to, amountUnits: amountUnits - backUnits },
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

/** What nobody was given when a deposit was booked, because it brought that back. */
export async function broughtBack(sql: Sql, id: string): Promise<bigint> {
  const [row] = await sql.query<{ units: string }>(
    `SELECT coalesce(sum(p.amount_units), 0)::text AS units
       FROM journal_entry e JOIN posting p ON p.journal_id = e.id
      WHERE e.idem_key = 'deposit:' || $1 AND p.credit = $2`,
    [id, BREAK],
  );
  return storedAtoken(row?.units);
}

/** What reversals of the same payments found withdrawn, less what came back of it since. */
async function readShort(tx: Sql, deposits: readonly DueDeposit[]): Promise<Map<string, bigint>> {
  const rows = await tx.query<Record<"hash" | "address" | "asset" | "units", string>>(
    `SELECT d.tx_hash AS hash, d.address, d.asset,
            sum(CASE WHEN p.debit = $4 THEN p.amount_units ELSE -p.amount_units END)::text AS units
       FROM (SELECT DISTINCT * FROM unnest($1::text[], $2::text[], $3::text[])
                    AS input (hash, address, asset)) AS paid
       JOIN deposit d ON d.tx_hash = paid.hash AND d.address = paid.address
        AND d.asset = paid.asset AND d.status = 'reversed'
       JOIN journal_entry e ON e.idem_key IN ('deposit:' || d.id, 'reversal:deposit:' || d.id)
       JOIN posting p ON p.journal_id = e.id AND $4 IN (p.debit, p.credit)
      GROUP BY d.tx_hash, d.address, d.asset`,
    [
      deposits.map(({ txHash }) => txHash),
      deposits.map(({ address }) => address),
      deposits.map(({ asset }) => asset),
      BREAK,
    ],
  );
  return new Map(
    rows.map(({ hash, address, asset, units }) => [
      `${hash} ${address} ${asset}`,
      storedAtoken(units),
    ]),
  );
}

function placeOf({
  txHash,
  address,
  asset,
}: Pick<DueDeposit, "txHash" | "address" | "asset">): string {
  return `${txHash} ${address} ${asset}`;
}
