/**
 * A person's word that lets a frozen withdrawal go on is kept among what persons decide, in the commit that
 * carries it out: `causeway ledger decisions` shows who said what, and why.
 */
import type { Sql, SqlDatabase } from "../../../runtime/sql/sql.js";
import type { WithdrawalId } from "../../requests/withdrawal-id.js";
import type { ReleaseDecision } from "./outcome.js";

/** What a person said about one frozen withdrawal. */
export interface ReleaseWord {
  readonly id: WithdrawalId;
  readonly decision: ReleaseDecision;
  /** 1-100 characters. */
  readonly operator: string;
  /** 1-1,000 characters. */
  readonly reason: string;
}

/** What is kept of it beside person and reason. */
export type ReleaseTerms = ReleaseDecision & {
  readonly action: "release-withdrawal";
  readonly withdrawalId: WithdrawalId;
};

/**
 * The same database for one release: each of its deeds that answers in its transaction that it is done takes
 * the word along. What only looks, or finds a receipt, keeps none.
 */
export function keepingWord(database: SqlDatabase, word: ReleaseWord): SqlDatabase {
  return {
    url: database.url,
    query: (text, parameters) => database.query(text, parameters),
    snapshot: (work, options) => database.snapshot(work, options),
    close: () => database.close(),
    transaction: (work) =>
      database.transaction(async (tx) => {
        const result = await work(tx);
        const isDone: unknown = result;
        if (isDone === true) await keep(tx, word);
        return result;
      }),
  };
}

/** Of one withdrawal that froze again there are several; whoever writes one holds its row. */
async function keep(tx: Sql, { id, decision, operator, reason }: ReleaseWord): Promise<void> {
  const terms: ReleaseTerms = { action: "release-withdrawal", withdrawalId: id, ...decision };
  await tx.query(
    `INSERT INTO operator_decision
       (kind, key, terms, reason, needs_second, status, proposed_by, decided_by, decided_at)
     SELECT 'release', $1 || '#' || count(*) + 1, $2::jsonb, $3, false, 'done', $4, $4, now()
       FROM operator_decision WHERE kind = 'release' AND terms ->> 'withdrawalId' = $1`,
    [id, JSON.stringify(terms), reason, operator],
  );
}
