/**
 * Double entry. One posting is one debit account, one credit account and one amount > 0, so an
 * entry balances by construction; the database keeps customers from going negative and keeps
 * every row for ever.
 */
import type { Height } from "../../chain/hex.js";
import { SqlError } from "../../runtime/sql/sql-errors.js";
import type { Sql } from "../../runtime/sql/sql.js";
import type { AccountCode } from "./accounts.js";
import { LedgerError } from "../errors.js";

/** One movement between two accounts. */
export interface Posting {
  /** `TOKEN` or the symbol of a registered token: both sides are of it. */
  readonly asset: string;
  readonly debit: AccountCode;
  readonly credit: AccountCode;
  /** In the asset's smallest unit: greater than zero, below 2^256. */
  readonly amountUnits: bigint;
}

/** Postings of one event, posted together or not at all. */
export interface JournalEntry {
  /** What happened, for example "deposit.credit" or "withdrawal.hold". */
  readonly kind: string;
  /** Natural key of the event; the same key is posted once, for ever. */
  readonly idemKey: string;
  /** Block that moved the coins; null for movements inside the ledger only, such as holds. */
  readonly effectiveHeight: Height | null;
  /** For people; that of what a transaction moved begins with its hash (`memoHash`). */
  readonly memo?: string;
  readonly postings: readonly Posting[];
}

/** SQL: hash of the transaction that an entry's memo begins with; null where it begins with no such thing. */
export function memoHash(entry: string): string {
  return `substring(${entry}.memo FROM '^(0x[0-9a-f]{64})(?: |$)')`;
}

/**
 * Posts one entry inside the caller's transaction; idempotent by `idemKey`.
 * @returns posted false when the key was posted before with the same content
 * @throws JOURNAL_CONFLICT, INSUFFICIENT_BALANCE, UNKNOWN_CUSTOMER
 */
export async function postJournal(tx: Sql, entry: JournalEntry): Promise<{ posted: boolean }> {
  const posted = await postJournals(tx, [entry]);
  return { posted: posted.has(entry.idemKey) };
}

/**
 * Posts many entries in one round trip. Keys must differ from each other.
 * @returns the keys that were posted now; the others were posted before with the same content
 * @throws JOURNAL_CONFLICT, INSUFFICIENT_BALANCE, UNKNOWN_CUSTOMER
 */
export async function postJournals(
  tx: Sql,
  entries: readonly JournalEntry[],
): Promise<ReadonlySet<string>> {
  if (entries.length === 0) return new Set();
  // In key order, so that two writers of the same keys wait for each other instead of deadlocking.
  const ordered = entries.toSorted((left, right) => (left.idemKey < right.idemKey ? -1 : 1));
  const posted = new Set(await insertEntries(tx, ordered));
  const repeated = ordered.filter((entry) => !posted.has(entry.idemKey));
  if (repeated.length > 0) await assertSameContent(tx, repeated);
  return posted;
}

const INSERT_ENTRIES = `
  WITH entry AS (
    INSERT INTO journal_entry (kind, idem_key, effective_height, memo)
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[])
    ON CONFLICT (idem_key) DO NOTHING
    RETURNING id, idem_key
  ), written AS (
    INSERT INTO posting (journal_id, place, asset, debit, credit, amount_units)
    SELECT entry.id, leg.place, leg.asset, leg.debit, leg.credit, leg.amount_units
      FROM unnest($5::text[], $6::integer[], $7::text[], $8::text[], $9::text[], $10::numeric[])
           AS leg (idem_key, place, asset, debit, credit, amount_units)
      JOIN entry USING (idem_key)
     ORDER BY entry.id, leg.place
  )
  SELECT idem_key FROM entry`;

async function insertEntries(tx: Sql, entries: readonly JournalEntry[]): Promise<string[]> {
  const legs = entries.flatMap((entry) =>
    entry.postings.map((posting, place) => ({ idemKey: entry.idemKey, place, posting })),
  );
  try {
    const rows = await tx.query<{ idem_key: string }>(INSERT_ENTRIES, [
      entries.map((entry) => entry.kind),
      entries.map((entry) => entry.idemKey),
      entries.map((entry) => entry.effectiveHeight),
      entries.map((entry) => entry.memo ?? null),
      legs.map((leg) => leg.idemKey),
      legs.map((leg) => leg.place),
      legs.map((leg) => leg.posting.asset),
      legs.map((leg) => leg.posting.debit),
      legs.map((leg) => leg.posting.credit),
      legs.map((leg) => leg.posting.amountUnits.toString()),
    ]);
    return rows.map((row) => row.idem_key);
  } catch (error) {
    throw asLedgerError(error);
  }
}

/** A refusal that a caller can explain to people; every other fault passes unchanged. */
function asLedgerError(error: unknown): unknown {
  if (!(error instanceof SqlError)) return error;
  const { code, constraint } = error;
  if (code === "CHECK_VIOLATION" && constraint?.startsWith("customer_balance_") === true) {
    return new LedgerError("INSUFFICIENT_BALANCE", "a customer's balance would go below zero", {
      details: { constraint },
      cause: error,
    });
  }
  if (code === "FOREIGN_KEY_VIOLATION" && constraint === "customer_balance_customer_id_fkey") {
    return new LedgerError("UNKNOWN_CUSTOMER", "the ledger does not know this customer", {
      cause: error,
    });
  }
  return error;
}

interface StoredEntryRow {
  readonly idem_key: string;
  readonly kind: string;
  readonly effective_height: string | null;
  readonly legs: readonly { asset: string; debit: string; credit: string; amount: string }[];
}

/** A key that is used for something else would hide a movement, so it is a fault, not a repeat. */
async function assertSameContent(tx: Sql, entries: readonly JournalEntry[]): Promise<void> {
  const rows = await tx.query<StoredEntryRow>(
    `SELECT entry.idem_key, entry.kind, entry.effective_height::text,
            coalesce(jsonb_agg(jsonb_build_object('asset', posting.asset, 'debit', posting.debit,
              'credit', posting.credit, 'amount', posting.amount_units::text)
              ORDER BY posting.place)
              FILTER (WHERE posting.id IS NOT NULL), '[]') AS legs
       FROM journal_entry entry LEFT JOIN posting ON posting.journal_id = entry.id
      WHERE entry.idem_key = ANY ($1::text[])
      GROUP BY entry.id`,
    [entries.map((entry) => entry.idemKey)],
  );
  const stored = new Map(rows.map((row) => [row.idem_key, row]));
  for (const entry of entries) {
    const row = stored.get(entry.idemKey);
    if (row === undefined || !isStoredAs(entry, row)) {
      throw new LedgerError("JOURNAL_CONFLICT", "this key was posted with other content", {
        details: { idemKey: entry.idemKey },
      });
    }
  }
}

/** Whether a row says the same as an entry, leg by leg in their order. */
function isStoredAs(entry: JournalEntry, row: StoredEntryRow): boolean {
  const { postings, effectiveHeight } = entry;
  const height = effectiveHeight === null ? null : String(effectiveHeight);
  if (row.kind !== entry.kind || row.effective_height !== height) return false;
  if (row.legs.length !== postings.length) return false;
  return row.legs.every(({ asset, debit, credit, amount }, place) => {
    const posting = postings[place];
    return (
      posting !== undefined &&
      asset === posting.asset &&
      debit === posting.debit &&
      credit === posting.credit &&
      amount === posting.amountUnits.toString()
    );
  });
}
