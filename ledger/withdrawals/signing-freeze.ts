/** The kill switch of a hot wallet: while frozen nothing new is signed, whoever asks. */
import type { Address } from "../../chain/address.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { type Incident, openIncident } from "../incidents.js";
import { storedTime } from "../stored-values.js";

/** Whether a wallet may sign, and since when and why not. */
export interface SigningFreeze {
  /** True by an operator's or the worker's own switch, and while an incident is open (D10). */
  readonly frozen: boolean;
  /** Why it was frozen or released; empty where neither ever happened. */
  readonly reason: string;
  /** RFC 3339, UTC; undefined where it never changed. */
  readonly changedAt: string | undefined;
}

interface FreezeRow {
  readonly frozen: boolean;
  readonly reason: string;
  readonly changed_at: unknown;
}

/** Reads whether a wallet may sign; one without a row was never frozen by its switch. */
export async function readFreeze(sql: Sql, wallet: Address): Promise<SigningFreeze> {
  const rows = await sql.query<FreezeRow>(
    `SELECT frozen, reason, changed_at FROM signing_freeze WHERE wallet = $1`,
    [wallet],
  );
  return toFreeze(rows[0], await openIncident(sql));
}

/**
 * The same inside a signing transaction, held: a freeze or an incident that comes at the same time
 * waits for the commit, or is seen.
 */
export async function lockFreeze(tx: Sql, wallet: Address): Promise<SigningFreeze> {
  const rows = await tx.query<FreezeRow>(
    `SELECT frozen, reason, changed_at FROM signing_freeze WHERE wallet = $1 FOR SHARE`,
    [wallet],
  );
  // Read behind the lock: an incident is written under it.
  return toFreeze(rows[0], await openIncident(tx));
}

/** Freezes signing; the first reason stays while it is frozen. @returns false if it already was */
export async function freezeSigning(sql: Sql, wallet: Address, reason: string): Promise<boolean> {
  const rows = await sql.query(
    `WITH changed AS (
       INSERT INTO signing_freeze (wallet, frozen, reason) VALUES ($1, true, $2)
       ON CONFLICT (wallet) DO UPDATE SET frozen = true, reason = $2, changed_at = now()
         WHERE NOT signing_freeze.frozen
       RETURNING wallet)
     SELECT wallet FROM changed`,
    [wallet, reason],
  );
  return rows.length > 0;
}

/** Lifts the freeze; the caller has looked first. @returns false if it was not frozen */
export async function releaseSigning(sql: Sql, wallet: Address, reason: string): Promise<boolean> {
  const rows = await sql.query(
    `WITH changed AS (
       UPDATE signing_freeze SET frozen = false, reason = $2, changed_at = now()
        WHERE wallet = $1 AND frozen
       RETURNING wallet)
     SELECT wallet FROM changed`,
    [wallet, reason],
  );
  return rows.length > 0;
}

function toFreeze(row: FreezeRow | undefined, incident: Incident | undefined): SigningFreeze {
  // The switch comes first: it stays when the incident is over.
  if (row?.frozen !== true && incident !== undefined) {
    const { id, kind, message, remedy, openedAt } = incident;
    const reason = `incident ${id} (${kind}): ${message}; ${remedy}`;
    return { frozen: true, reason, changedAt: openedAt };
  }
  if (row === undefined) return { frozen: false, reason: "", changedAt: undefined };
  return { frozen: row.frozen, reason: row.reason, changedAt: storedTime(row.changed_at) };
}
