/**
 * Incidents: facts that must not happen on this chain (D10). An open one stops crediting and
 * signing, also across restarts, until an operator resumes; the watcher then looks again and opens
 * a new one if the cause is still there. A ledger that is behind what was answered from it has the
 * incident RECOVERY, which only a recovery closes (`recovery/`).
 */
import { present } from "../chain/errors.js";
import type { Height } from "../chain/hex.js";
import type { Sql } from "../runtime/sql/sql.js";
import { listedBehind, listedBy, type ListOrder } from "./list-order.js";
import { storedHeight, storedInteger, storedTime } from "./stored-values.js";

/** What went wrong. */
const INCIDENT_KINDS = [
  "PARENT_MISMATCH",
  "HASH_CHANGED",
  "HEIGHT_WENT_BACK",
  "BALANCE_MISMATCH",
  "NODES_DISAGREE",
  "LEDGER_CONFLICT",
  "RECOVERY",
] as const;

/** One of `INCIDENT_KINDS`. */
export type IncidentKind = (typeof INCIDENT_KINDS)[number];

/** An incident before it is written. */
export interface NewIncident {
  readonly kind: IncidentKind;
  readonly height: Height | undefined;
  /** One sentence for people. */
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Why crediting and signing stop until a person has looked. */
export interface Incident {
  readonly id: number;
  readonly kind: string;
  readonly height: Height | undefined;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** What a person does about it, as half a sentence. */
  readonly remedy: string;
  /** RFC 3339, UTC. */
  readonly openedAt: string;
}

/** An incident, open or over, with who ended it. */
export interface PastIncident extends Incident {
  /** RFC 3339, UTC; undefined while it is open. */
  readonly resolvedAt: string | undefined;
  readonly resolvedBy: string | undefined;
}

/** What an operator does about an incident. */
function remedyOf(kind: string): string {
  return kind === "RECOVERY"
    ? "to see what the chain proves: causeway recover"
    : "when its cause is gone: causeway deposits resume";
}

/**
 * The incident that stops crediting and signing now; undefined when there is none. A recovery comes
 * first: nothing else can be judged before it.
 */
export async function openIncident(sql: Sql): Promise<Incident | undefined> {
  const [row] = await sql.query<IncidentRow>(
    `SELECT ${COLUMNS} FROM incident
      WHERE resolved_at IS NULL ORDER BY (kind = 'RECOVERY') DESC, id LIMIT 1`,
  );
  return row === undefined ? undefined : toIncident(row);
}

/** Pure: which incident, why, and what to do, where something is halted by it. */
export function incidentText({ id, kind, message, remedy }: Incident): string {
  return `incident ${id} (${kind}): ${message}; ${remedy}`;
}

/** Incidents behind a position, open and closed ones. */
export async function listIncidents(
  sql: Sql,
  page: { readonly afterId: number; readonly limit: number; readonly order: ListOrder },
): Promise<readonly PastIncident[]> {
  const rows = await sql.query<IncidentRow>(
    `SELECT ${COLUMNS} FROM incident
      WHERE ${listedBehind("id", page.order)} ORDER BY ${listedBy("id", page.order)} LIMIT $2`,
    [page.afterId, page.limit],
  );
  return rows.map((row) => ({
    ...toIncident(row),
    resolvedAt: row.resolved_at === null ? undefined : storedTime(row.resolved_at),
    resolvedBy: row.resolved_by ?? undefined,
  }));
}

interface IncidentRow {
  readonly id: string;
  readonly kind: string;
  readonly height: string | null;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
  readonly opened_at: unknown;
  readonly resolved_at: unknown;
  readonly resolved_by: string | null;
}

const COLUMNS = `id, kind, height, message, details, opened_at, resolved_at, resolved_by`;

function toIncident(row: IncidentRow): Incident {
  return {
    id: storedInteger(row.id),
    kind: row.kind,
    height: row.height === null ? undefined : storedHeight(row.height),
    message: row.message,
    details: row.details,
    remedy: remedyOf(row.kind),
    openedAt: storedTime(row.opened_at),
  };
}

/**
 * Writes an incident inside the caller's transaction; while one is open, later ones change nothing:
 * the first is the cause. The switches of all wallets are held meanwhile: a signature that is being
 * stored is stored before the incident counts, and none is stored after.
 * @returns whether it was written
 */
export async function writeIncident(tx: Sql, incident: NewIncident): Promise<boolean> {
  await holdForIncident(tx, incident.kind);
  const rows = await tx.query(
    `WITH written AS (
       INSERT INTO incident (kind, height, message, details) VALUES ($1, $2, $3, $4::jsonb)
       ON CONFLICT ((kind = 'RECOVERY')) WHERE resolved_at IS NULL DO NOTHING RETURNING id)
     SELECT id FROM written`,
    [
      incident.kind,
      incident.height ?? null,
      incident.message,
      JSON.stringify(incident.details, (_key, value: unknown) =>
        typeof value === "bigint" ? value.toString() : value,
      ),
    ],
  );
  return rows.length > 0;
}

/** Until the commit no signature is stored and, before a recovery is opened, no event. */
export async function holdForIncident(tx: Sql, kind: IncidentKind): Promise<void> {
  await tx.query(`SELECT wallet FROM signing_freeze ORDER BY wallet FOR UPDATE`);
  if (kind === "RECOVERY") await tx.query(`SELECT 1 FROM event_counter FOR UPDATE`);
}

/**
 * An operator's word that the cause is gone: signing goes on, and so does crediting after the
 * watcher has checked again. A recovery is not closed this way.
 * @param id the incident that the operator looked at: another one that is open by now stays; absent for
 *   whichever is open
 * @returns how many incidents were open (0 or 1)
 */
export async function resumeCrediting(sql: Sql, resolvedBy: string, id?: number): Promise<number> {
  const rows = await sql.query<{ resolved: number }>(
    `WITH closed AS (
       UPDATE incident SET resolved_at = now(), resolved_by = $1
        WHERE resolved_at IS NULL AND kind <> 'RECOVERY' AND id = coalesce($2::bigint, id)
       RETURNING 1
     ) SELECT count(*)::integer AS resolved FROM closed`,
    [resolvedBy, id ?? null],
  );
  return present(rows[0], "count of resolved incidents").resolved;
}
