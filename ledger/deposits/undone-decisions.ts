/**
 * What a person gave a customer for a payment that a chain had mined again with another outcome, and that was
 * withdrawn by the time the chain lost that block, too. It is missing: a hold of before the loss that comes
 * back fills it, and so does what is given for the same payment the next time.
 */
import type { Height } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { type AccountCode, BREAK } from "../journal/accounts.js";
import { type JournalEntry, postJournals } from "../journal/journal.js";
import { REVERSAL_KEY, reversalKey } from "../journal/reversals.js";
import { storedAtoken, storedHeight } from "../stored-values.js";

/** Before the name in the keys of entries of payments that were mined with another outcome. */
export const REMINED_KEY = "remined:";

/** Kind of the entry of a person's word about one. */
export const DECIDED = "ledger.remined";

const DECISION_KEY = "remined-accepted:";

/** Key of the entry of a person's word about one. */
export function decisionKey(name: string): string {
  return `${DECISION_KEY}${name}`;
}

/** A person's decision that gave a hold back. */
export interface FilledBy {
  /** What it filled is known by it. */
  readonly key: string;
  /** Block from which on it counts. */
  readonly height: Height;
}

/** SQL: a key and those behind it with numbers, as many as were posted. @param key an expression */
export function numberedKeys(key: string): string {
  return `
    WITH RECURSIVE numbered (n) AS (
      SELECT 0 UNION ALL
      SELECT n + 1 FROM numbered
       WHERE EXISTS (SELECT 1 FROM journal_entry f WHERE f.idem_key = ${key} || ':' || (n + 1)))
    SELECT ${key} || CASE n WHEN 0 THEN '' ELSE ':' || n END AS key FROM numbered`;
}

/**
 * SQL: whether a withdrawal's hold is of before an entry. By their numbers, which are drawn under the balance
 * that both change: a database's clock may have gone back between the two.
 * @param entry of `journal_entry` @param withdrawalId an expression
 */
export function heldBefore(entry: string, withdrawalId: string): string {
  return `NOT EXISTS (SELECT 1 FROM journal_entry held
                       WHERE held.idem_key = 'withdrawal:' || ${withdrawalId} || ':hold'
                         AND held.id > ${entry}.id)`;
}

/** SQL: what was taken back of what a decision `d` gave by a posting `p`, and how often since the loss. */
const TAKEN_BACK = `
  SELECT (count(DISTINCT keys.key) - 1)::integer AS count,
         coalesce(sum(CASE WHEN t.credit = '${BREAK}' THEN t.amount_units ELSE -t.amount_units END), 0)
           AS units
    FROM (${numberedKeys(`'${REVERSAL_KEY}' || d.idem_key`)}) AS keys
    LEFT JOIN journal_entry r ON r.idem_key = keys.key
    LEFT JOIN posting t ON t.journal_id = r.id AND t.asset = p.asset
          AND '${BREAK}' IN (t.debit, t.credit)`;

/**
 * Takes what is missing of such decisions out of holds that came back in this transaction; their entries hold
 * the balances. What was asked for after the loss is of other coins.
 * @param leftUnits what each withdrawal's customer has again of its hold
 */
export async function fillUndone(
  tx: Sql,
  leftUnits: ReadonlyMap<string, bigint>,
  by: FilledBy | undefined,
): Promise<void> {
  const ids = [...leftUnits].flatMap(([id, units]) => (units > 0n ? [id] : []));
  if (ids.length === 0) return;
  const rows = await tx.query<
    Record<"withdrawal" | "key" | "memo" | "height" | "asset" | "account" | "units", string> & {
      readonly count: number;
    }
  >(
    `SELECT w.id AS withdrawal, d.idem_key AS key, d.memo, d.effective_height::text AS height, p.asset,
            p.credit AS account, (p.amount_units - taken.units)::text AS units, taken.count
       FROM withdrawal w
       JOIN posting p ON p.debit = '${BREAK}' AND p.asset = w.asset
        AND p.credit = 'liability:customer:' || w.customer_id
       JOIN journal_entry d ON d.id = p.journal_id AND d.kind = '${DECIDED}'
       JOIN journal_entry u
         ON u.idem_key = '${REVERSAL_KEY}${REMINED_KEY}'
                         || substr(d.idem_key, ${DECISION_KEY.length + 1})
        AND ${heldBefore("u", "w.id")}
      CROSS JOIN LATERAL (${TAKEN_BACK}) AS taken
      WHERE w.id = ANY ($1::text[]) AND p.amount_units > taken.units
        AND EXISTS (SELECT 1 FROM watch_cursor WHERE rewinds > 0)
      ORDER BY w.position, d.id`,
    [ids],
  );
  const left = new Map(leftUnits);
  const missing = new Map<string, { units: bigint; count: number }>();
  const entries: JournalEntry[] = [];
  for (const { withdrawal, key, memo, height, asset, account, units, count } of rows) {
    const place = `${key} ${asset}`;
    const known = missing.get(place) ?? { units: storedAtoken(units), count };
    missing.set(place, known);
    const held = left.get(withdrawal) ?? 0n;
    const amountUnits = known.units < held ? known.units : held;
    if (amountUnits === 0n) continue;
    known.units -= amountUnits;
    known.count += 1;
    left.set(withdrawal, held - amountUnits);
    entries.push({
      kind: "wallet.reversal",
      idemKey: `${reversalKey(key)}:${known.count}`,
      effectiveHeight: by?.height ?? storedHeight(height),
      memo: by === undefined ? memo : `${memo} ${by.key}`,
      postings: [{ asset, debit: account as AccountCode, credit: BREAK, amountUnits }],
    });
  }
  await postJournals(tx, entries);
}
