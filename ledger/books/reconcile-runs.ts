/** The record of reconciliations on a schedule: what was found, when, at which height. */
import type { Height } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { storedHeight } from "../stored-values.js";

/** One reconciliation. */
export interface ReconcileRun {
  readonly at: Date;
  readonly height: Height;
  readonly clean: boolean;
  /** Sentences about what does not match; empty when all does. */
  readonly findings: readonly string[];
}

/** Findings that are kept of one run: they are for people. */
const MAX_FINDINGS = 50;

/** Writes a run down. */
export async function recordRun(
  sql: Sql,
  { height, clean, findings }: Omit<ReconcileRun, "at">,
): Promise<void> {
  await sql.query(
    `INSERT INTO reconcile_run (height, clean, findings) VALUES ($1, $2, $3::jsonb)`,
    [height, clean, JSON.stringify(clean ? [] : findings.slice(0, MAX_FINDINGS))],
  );
}

/** The last run of whichever process; undefined before the first. */
export async function lastRun(sql: Sql): Promise<ReconcileRun | undefined> {
  const rows = await sql.query<{
    at: Date;
    height: string;
    clean: boolean;
    findings: readonly string[];
  }>(`SELECT at, height, clean, findings FROM reconcile_run ORDER BY id DESC LIMIT 1`);
  const [row] = rows;
  return row === undefined ? undefined : { ...row, height: storedHeight(row.height) };
}
