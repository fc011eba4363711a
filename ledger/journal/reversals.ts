/** Entries of blocks that a chain has lost, undone by entries of their own: nothing is ever deleted. */
import type { Height } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import type { AccountCode } from "./accounts.js";
import { postJournal, type Posting } from "./journal.js";
import { storedAtoken } from "../stored-values.js";

/** Before an entry's key in that of the entry that reverses it. */
export const REVERSAL_KEY = "reversal:";

/** SQL: of an entry `e`, whether nothing has reversed it. */
export const IS_NOT_REVERSED = `
  NOT EXISTS (SELECT 1 FROM journal_entry r WHERE r.idem_key = '${REVERSAL_KEY}' || e.idem_key)`;

/** Key of the entry that reverses another one, as a whole or as far as there is something to take back. */
export function reversalKey(idemKey: string): string {
  return `${REVERSAL_KEY}${idemKey}`;
}

/** The same postings with the sides changed, at the same height: together they are nothing. */
export async function reverseEntry(
  tx: Sql,
  entry: { readonly idemKey: string; readonly memo: string; readonly height: Height },
): Promise<void> {
  await postJournal(tx, {
    kind: "wallet.reversal",
    idemKey: reversalKey(entry.idemKey),
    effectiveHeight: entry.height,
    memo: entry.memo,
    postings: await readReversed(tx, entry.idemKey),
  });
}

/** The postings of an entry with their sides changed; none where there is no such entry. */
export async function readReversed(tx: Sql, idemKey: string): Promise<Posting[]> {
  const rows = await tx.query<{ asset: string; debit: string; credit: string; amount: string }>(
    `SELECT p.asset, p.debit, p.credit, p.amount_units::text AS amount
       FROM posting p JOIN journal_entry e ON e.id = p.journal_id
      WHERE e.idem_key = $1 ORDER BY p.place`,
    [idemKey],
  );
  return rows.map(
    (row): Posting => ({
      asset: row.asset,
      debit: row.credit as AccountCode,
      credit: row.debit as AccountCode,
      amountUnits: storedAtoken(row.amount),
    }),
  );
}
