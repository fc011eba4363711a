/** Releases of one withdrawal with the word of whoever decided: see `ledger/kept-word.ts`. */
import type { SqlDatabase } from "../../../runtime/sql/sql.js";
import { keepWord } from "../../kept-word.js";
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
  const { id, decision, operator, reason } = word;
  const terms: ReleaseTerms = { action: "release-withdrawal", withdrawalId: id, ...decision };
  return {
    url: database.url,
    query: (text, parameters) => database.query(text, parameters),
    snapshot: (work, options) => database.snapshot(work, options),
    close: () => database.close(),
    transaction: (work) =>
      database.transaction(async (tx) => {
        const result = await work(tx);
        const isDone: unknown = result;
        if (isDone === true) {
          await keepWord(tx, { kind: "release", subject: id, terms, reason, operator });
        }
        return result;
      }),
  };
}
