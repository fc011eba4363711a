/**
 * A person's word that lets something frozen go on. It is kept among what persons decide, in the commit that
 * carries it out: `causeway ledger decisions` shows who said what, and why.
 */
import type { Sql } from "../runtime/sql/sql.js";

/** What a person has said about something frozen, kept for ever. */
export interface KeptWord {
  readonly kind: "release" | "sweep";
  /** What it is about: it freezes again, and is decided about again. No colon is in it. */
  readonly subject: string;
  readonly terms: object;
  /** 1-1,000 characters. */
  readonly reason: string;
  /** 1-100 characters. */
  readonly operator: string;
}

/** Writes it down. Whoever does holds the subject's row: so the number of its next word is nobody else's. */
export async function keepWord(tx: Sql, word: KeptWord): Promise<void> {
  const { kind, subject, terms, reason, operator } = word;
  await tx.query(
    `INSERT INTO operator_decision
       (kind, key, terms, reason, needs_second, status, proposed_by, decided_by, decided_at)
     SELECT $1::text, $2::text || ':' || count(*) + 1, $3::jsonb, $4, false, 'done', $5, $5, now()
       FROM operator_decision WHERE kind = $1::text AND split_part(key, ':', 1) = $2::text`,
    [kind, subject, JSON.stringify(terms), reason, operator],
  );
}
