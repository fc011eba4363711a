/** Answers of screening: one for each withdrawal, kept for ever. */
import type { Sql } from "../../runtime/sql/sql.js";
import type { WithdrawalId } from "../requests/withdrawal-id.js";

/** What screening may answer; "review" asks persons. */
export const SCREENING_VERDICTS = ["allow", "deny", "review"] as const;

/** One of `SCREENING_VERDICTS`. */
export type ScreeningVerdict = (typeof SCREENING_VERDICTS)[number];

/** An answer about one withdrawal. */
export interface ScreeningAnswer {
  readonly withdrawalId: WithdrawalId;
  readonly verdict: ScreeningVerdict;
  /** The service's own name for its answer, at most 200 characters. */
  readonly reference: string;
}

/** Keeps answers; the first about a withdrawal stays. */
export async function recordVerdicts(sql: Sql, answers: readonly ScreeningAnswer[]): Promise<void> {
  if (answers.length === 0) return;
  await sql.query(
    `INSERT INTO screening_verdict (withdrawal_id, verdict, reference)
     SELECT * FROM unnest($1::text[], $2::text[], $3::text[]) ON CONFLICT DO NOTHING`,
    [
      answers.map(({ withdrawalId }) => withdrawalId),
      answers.map(({ verdict }) => verdict),
      answers.map(({ reference }) => reference),
    ],
  );
}

/** Those of the withdrawals that nobody has answered about. */
export async function withoutVerdict(
  sql: Sql,
  ids: readonly WithdrawalId[],
): Promise<ReadonlySet<string>> {
  const rows = await sql.query<{ id: string }>(
    `SELECT id FROM unnest($1::text[]) AS asked (id)
      WHERE NOT EXISTS (SELECT 1 FROM screening_verdict v WHERE v.withdrawal_id = asked.id)`,
    [ids],
  );
  return new Set(rows.map(({ id }) => id));
}
