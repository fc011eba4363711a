/** What the ledger itself has on a deposit: the rows of a transaction, and the entries of a deposit. */
import { keysOfDeposit } from "./mined-again.js";
import type { StoredDeposit } from "./deposit-queries.js";
import { keysOfTakings, surplusKey } from "./suspense.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { storedAtoken, storedHash, storedHeight } from "../stored-values.js";

/** A journal entry with its postings, as it was written. */
export interface PostedEntry {
  readonly kind: string;
  readonly idemKey: string;
  /** Null for movements inside the ledger only. */
  readonly effectiveHeight: Height | null;
  readonly postedAt: Date;
  readonly postings: readonly {
    readonly asset: string;
    readonly debit: string;
    readonly credit: string;
    readonly amountUnits: bigint;
  }[];
}

/** Entries of one deposit at most: it is booked once, and corrected by persons. */
const MAX_ENTRIES = 100;

/** SQL: the order of deposits by what they wait for. */
const WAITING_FIRST = `array_position(ARRAY['detected', 'held', 'suspense', 'credited'], status)`;

/** Deposits of one transaction that are told at most. */
const MAX_DEPOSITS = 100;

/**
 * Journal entries about a deposit, oldest first: its booking; its release from suspense to a customer, or
 * what persons took of it by its name; its reversal; none before it is credited or set aside.
 * @param further keys of entries that later rooms know of
 */
export async function entriesOfDeposit(
  sql: Sql,
  id: string,
  further: readonly string[] = [],
): Promise<readonly PostedEntry[]> {
  const rows = await sql.query<{
    kind: string;
    idem_key: string;
    effective_height: string | null;
    posted_at: Date;
    postings: readonly { asset: string; debit: string; credit: string; amount: string }[];
  }>(
    `SELECT entry.kind, entry.idem_key, entry.effective_height, entry.posted_at,
            (SELECT jsonb_agg(jsonb_build_object('asset', asset, 'debit', debit, 'credit', credit,
                      'amount', amount_units::text) ORDER BY place)
               FROM posting WHERE journal_id = entry.id) AS postings
       FROM journal_entry entry
      WHERE entry.idem_key IN (SELECT 'suspense-release:' || $1::text
                                UNION ALL SELECT key FROM (${keysOfDeposit("$1::text")}) AS keys
                                UNION ALL SELECT key FROM (${keysOfTakings("$1::text")}) AS taken
                                UNION ALL SELECT unnest($2::text[]))
      ORDER BY entry.id LIMIT ${MAX_ENTRIES}`,
    [id, further],
  );
  return rows.map((row) => ({
    kind: row.kind,
    idemKey: row.idem_key,
    effectiveHeight: row.effective_height === null ? null : storedHeight(row.effective_height),
    postedAt: row.posted_at,
    postings: row.postings.map(({ asset, debit, credit, amount }) => ({
      asset,
      debit,
      credit,
      amountUnits: storedAtoken(amount),
    })),
  }));
}

/** What came to a deposit's address of its token in its block, beyond all that the token said. */
export async function surplusBeside(
  sql: Sql,
  deposit: Pick<StoredDeposit, "id" | "height" | "asset" | "address">,
): Promise<bigint> {
  const [seen] = await sql.query<{ rewind: number }>(`SELECT rewind FROM deposit WHERE id = $1`, [
    deposit.id,
  ]);
  const [row] = await sql.query<{ units: string }>(
    `SELECT coalesce(sum(p.amount_units), 0)::text AS units
       FROM journal_entry e JOIN posting p ON p.journal_id = e.id WHERE e.idem_key = $1`,
    [surplusKey(deposit, seen?.rewind ?? 0)],
  );
  return storedAtoken(row?.units);
}

/**
 * What a deposit's token said to have left its address in its block, and what did not leave, by the
 * transactions that said so.
 */
export async function unmovedBeside(
  sql: Sql,
  { id }: Pick<StoredDeposit, "id">,
): Promise<ReadonlyMap<Hash32, bigint>> {
  const rows = await sql.query<Record<"tx_hash" | "units", string>>(
    `SELECT seen.tx_hash, sum(seen.claimed)::text AS units
       FROM deposit d
       JOIN asset a ON a.symbol = d.asset
       JOIN token_sighting seen ON seen.address = d.address AND seen.contract = a.contract
            AND seen.height = d.height AND seen.rewind = d.rewind AND seen.reason = 'NOT_LEFT'
      WHERE d.id = $1
      GROUP BY seen.tx_hash`,
    [id],
  );
  return new Map(rows.map((row) => [storedHash(row.tx_hash), storedAtoken(row.units)]));
}

/**
 * Identifiers of the deposits that one transaction made, in the order of their operations, at most
 * `MAX_DEPOSITS`. Where it made more, those that wait for something are among them.
 */
export async function depositIdsOfTransaction(
  sql: Sql,
  hash: Hash32,
): Promise<{ readonly ids: readonly string[]; readonly hasMore: boolean }> {
  const rows = await sql.query<{ id: string; is_told: boolean }>(
    `SELECT id, place <= ${MAX_DEPOSITS} AS is_told FROM (
       SELECT id, seq, row_number() OVER (ORDER BY ${WAITING_FIRST}, seq) AS place
         FROM deposit WHERE tx_hash = $1
        ORDER BY place LIMIT ${MAX_DEPOSITS + 1}) AS found
      ORDER BY seq`,
    [hash],
  );
  const told = rows.filter((row) => row.is_told);
  return { ids: told.map(({ id }) => id), hasMore: told.length < rows.length };
}

/**
 * The identifier of one deposit of each asset that a transaction made deposits of: the one that waits most.
 * Of a transaction with more deposits than are told no asset is left out.
 */
export async function depositIdsByAsset(
  sql: Sql,
  hash: Hash32,
): Promise<ReadonlyMap<string, string>> {
  const rows = await sql.query<{ asset: string; id: string }>(
    `SELECT DISTINCT ON (asset) asset, id FROM deposit WHERE tx_hash = $1
      ORDER BY asset, ${WAITING_FIRST}, seq`,
    [hash],
  );
  return new Map(rows.map(({ asset, id }) => [asset, id]));
}
