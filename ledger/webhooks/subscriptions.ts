/**
 * Webhooks as the ledger keeps them: where events are sent, which ones, and the secrets that they are
 * signed with. A secret is shown once, to who makes it; it is kept because every delivery needs it.
 */
import { randomBytes } from "node:crypto";
import { present } from "../../chain/errors.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { SqlError } from "../../runtime/sql/sql-errors.js";
import { LedgerError } from "../errors.js";
import { EVENT_TYPES } from "../events.js";
import { newShortId } from "../short-id.js";
import { storedInteger } from "../stored-values.js";

/** What becomes of a webhook. */
const WEBHOOK_STATUSES = ["active", "disabled", "removed"] as const;

/** One of `WEBHOOK_STATUSES`. */
export type WebhookStatus = (typeof WEBHOOK_STATUSES)[number];

/** A webhook as it is asked for: where to, and of which events. */
export interface NewWebhook {
  /** Judged by `parseTarget` before. */
  readonly url: string;
  /** "deposit.credited", "deposit.*" or "*". */
  readonly events: readonly string[];
  readonly description: string | undefined;
}

/** A secret that deliveries are signed by, as it is listed: its text is told once, when it is made. */
export interface WebhookSecret {
  readonly id: string;
  readonly createdAt: Date;
}

/** A webhook that is not removed. */
export interface Webhook extends NewWebhook {
  readonly id: string;
  readonly status: WebhookStatus;
  /** Why it was disabled. */
  readonly reason: string | undefined;
  readonly createdAt: Date;
  readonly changedAt: Date;
  /** Events up to this one have their deliveries. */
  readonly cursorSeq: number;
  /** Number of the newest event of all. */
  readonly newestSeq: number;
  /**
   * Events behind the cursor, of whichever type: they wait for earlier deliveries. Numbers that a recovery
   * skipped are none.
   */
  readonly behindEvents: number;
  readonly pending: number;
  readonly dead: number;
  readonly secrets: readonly WebhookSecret[];
}

/** A secret at the moment of its making. */
export interface MadeSecret {
  readonly id: string;
  /** "whsec_" and 43 characters; the whole text is the key of the HMAC. */
  readonly secret: string;
}

/**
 * Webhooks that are not removed at a time: each may keep one connection busy, and an exchange sends
 * to a handful of its own services.
 */
const MAX_WEBHOOKS = 64;

/** Filters of one webhook: there are fewer types of events. */
const MAX_FILTERS = 50;

/** What a filter may be: one that is misspelt would never match, and nobody would be told of anything. */
const FILTERS: ReadonlySet<string> = new Set([
  "*",
  ...EVENT_TYPES.flatMap((type) => [type, `${type.split(".", 1)[0]}.*`]),
]);

const SECRET_BYTES = 32;

/**
 * Filters as a client or a person wrote them, without doubles.
 * @throws INVALID_WEBHOOK
 */
export function parseEventFilters(filters: readonly string[]): readonly string[] {
  const wanted = [...new Set(filters)];
  const wrong = wanted.find((filter) => !FILTERS.has(filter));
  if (wrong === undefined && wanted.length > 0 && wanted.length <= MAX_FILTERS) return wanted;
  throw new LedgerError(
    "INVALID_WEBHOOK",
    `events: ${wrong === undefined ? `1 to ${MAX_FILTERS} of them` : `"${wrong.slice(0, 60)}"`}: ` +
      `all of a kind as "deposit.*", "*", or any of ${EVENT_TYPES.join(", ")}`,
  );
}

/**
 * Adds a webhook, which is told of the events from now on.
 * @returns its row and its first secret
 * @throws TOO_MANY_WEBHOOKS
 */
export async function addWebhook(
  database: SqlDatabase,
  { url, events, description }: NewWebhook,
): Promise<{ readonly webhook: Webhook; readonly secret: MadeSecret }> {
  const id = newShortId();
  const secret = await database.transaction(async (tx) => {
    // Behind this lock no event is committed, and webhooks are added one after another.
    await tx.query(`SELECT 1 FROM event_counter FOR UPDATE`);
    const rows = await tx.query(
      `INSERT INTO webhook (id, url, events, description, cursor_seq)
       SELECT $1, $2, $3::text[], $4, (SELECT seq FROM event_counter)
        WHERE (SELECT count(*) FROM webhook WHERE status <> 'removed') < ${MAX_WEBHOOKS}
       RETURNING id`,
      [id, url, events, description ?? null],
    );
    if (rows.length === 0) {
      const message = `there are ${MAX_WEBHOOKS} webhooks, which is the most: remove one first`;
      throw new LedgerError("TOO_MANY_WEBHOOKS", message);
    }
    return writeSecret(tx, id);
  });
  return { webhook: await findWebhook(database, id), secret };
}

/** All webhooks that are not removed, oldest first. */
export async function listWebhooks(sql: Sql): Promise<readonly Webhook[]> {
  const rows = await sql.query<WebhookRow>(`${WEBHOOK} WHERE status <> 'removed' ${ORDER}`);
  return rows.map(toWebhook);
}

/** One webhook. @throws WEBHOOK_UNKNOWN, also for a removed one */
export async function findWebhook(sql: Sql, id: string): Promise<Webhook> {
  const rows = await sql.query<WebhookRow>(
    `${WEBHOOK} WHERE status <> 'removed' AND hook.id = $1 ${ORDER}`,
    [id],
  );
  const row = rows[0];
  if (row === undefined) throw unknown(id);
  return toWebhook(row);
}

/** Ends a webhook: nothing more is sent, its secrets are forgotten. @throws WEBHOOK_UNKNOWN */
export async function removeWebhook(database: SqlDatabase, id: string): Promise<void> {
  await database.transaction(async (tx) => {
    const rows = await tx.query(
      `UPDATE webhook SET status = 'removed', reason = NULL, changed_at = now()
        WHERE id = $1 AND status <> 'removed' RETURNING id`,
      [id],
    );
    if (rows.length === 0) throw unknown(id);
    await tx.query(
      `UPDATE webhook_secret SET secret = NULL, retired_at = now()
        WHERE webhook_id = $1 AND retired_at IS NULL`,
      [id],
    );
  });
}

/**
 * Adds a second secret: deliveries are signed with both until one is retired.
 * @throws WEBHOOK_UNKNOWN, SECRETS_FULL
 */
export async function addSecret(database: SqlDatabase, id: string): Promise<MadeSecret> {
  await findWebhook(database, id);
  return refusing("SECRETS_FULL", "the webhook has two live secrets: retire one first", () =>
    database.transaction((tx) => writeSecret(tx, id)),
  );
}

/**
 * Forgets a secret; the last one stays.
 * @throws WEBHOOK_UNKNOWN, SECRET_UNKNOWN, LAST_SECRET
 */
export async function retireSecret(
  database: SqlDatabase,
  id: string,
  secretId: string,
): Promise<void> {
  await findWebhook(database, id);
  const rows = await refusing(
    "LAST_SECRET",
    "it is the webhook's only secret: make another one first",
    () =>
      database.query(
        `UPDATE webhook_secret SET secret = NULL, retired_at = now()
          WHERE webhook_id = $1 AND id = $2 AND retired_at IS NULL RETURNING id`,
        [id, secretId],
      ),
  );
  if (rows.length > 0) return;
  throw new LedgerError("SECRET_UNKNOWN", "the webhook has no live secret of this id");
}

/** What deliveries of webhooks are signed with, newest first; at most two for each. */
export async function liveSecrets(
  sql: Sql,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = await sql.query<{ webhook_id: string; secrets: readonly string[] }>(
    `SELECT webhook_id, array_agg(secret ORDER BY created_at DESC, id) AS secrets
       FROM webhook_secret WHERE webhook_id = ANY ($1::text[]) AND retired_at IS NULL
      GROUP BY webhook_id`,
    [ids],
  );
  return new Map(rows.map((row) => [row.webhook_id, row.secrets]));
}

/**
 * SQL, rows of a CTE: numbers that no event has, those behind `from_seq` up to `to_seq`. A new epoch counts
 * on from the highest number that was remembered, so that few rows tell it, however many events there are.
 */
const SKIPPED = `
  SELECT from_seq, max(to_seq) AS to_seq
    FROM (SELECT coalesce((SELECT max(event.seq) FROM event
                            WHERE event.seq <= told.event_seq), 0) AS from_seq,
                 least(told.event_seq, (SELECT seq FROM event_counter)) AS to_seq
            FROM (SELECT DISTINCT event_seq FROM remembered_ledger) AS told) AS remembered
   WHERE to_seq > from_seq GROUP BY from_seq`;

const WEBHOOK = `
  WITH skipped AS MATERIALIZED (${SKIPPED})
  SELECT hook.id, url, events, description, status, reason, created_at, changed_at,
         cursor_seq::text, (SELECT seq FROM event_counter)::text AS head_seq,
         (SELECT coalesce(sum(to_seq - greatest(from_seq, hook.cursor_seq)), 0)
            FROM skipped WHERE to_seq > hook.cursor_seq)::text AS skipped,
         (SELECT count(*) FROM webhook_delivery d
           WHERE d.webhook_id = hook.id AND d.status = 'pending')::text AS pending,
         (SELECT count(*) FROM webhook_delivery d
           WHERE d.webhook_id = hook.id AND d.status = 'dead')::text AS dead,
         (SELECT coalesce(jsonb_agg(jsonb_build_object('id', s.id, 'createdAt', s.created_at)
                   ORDER BY s.created_at DESC, s.id), '[]')
            FROM webhook_secret s WHERE s.webhook_id = hook.id AND retired_at IS NULL) AS secrets
    FROM webhook hook`;

const ORDER = `ORDER BY position LIMIT ${MAX_WEBHOOKS}`;

interface WebhookRow {
  readonly id: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly description: string | null;
  readonly status: string;
  readonly reason: string | null;
  readonly created_at: Date;
  readonly changed_at: Date;
  readonly cursor_seq: string;
  readonly head_seq: string;
  readonly skipped: string;
  readonly pending: string;
  readonly dead: string;
  readonly secrets: readonly { readonly id: string; readonly createdAt: string }[];
}

function toWebhook(row: WebhookRow): Webhook {
  const [cursorSeq, newestSeq] = [storedInteger(row.cursor_seq), storedInteger(row.head_seq)];
  return {
    id: row.id,
    url: row.url,
    events: row.events,
    description: row.description ?? undefined,
    status: present(
      WEBHOOK_STATUSES.find((known) => known === row.status),
      "status of a webhook",
    ),
    reason: row.reason ?? undefined,
    createdAt: row.created_at,
    changedAt: row.changed_at,
    cursorSeq,
    newestSeq,
    behindEvents: Math.max(0, newestSeq - cursorSeq - storedInteger(row.skipped)),
    pending: storedInteger(row.pending),
    dead: storedInteger(row.dead),
    secrets: row.secrets.map(({ id, createdAt }) => ({ id, createdAt: new Date(createdAt) })),
  };
}

async function writeSecret(tx: Sql, webhookId: string): Promise<MadeSecret> {
  const id = newShortId();
  const secret = `whsec_${randomBytes(SECRET_BYTES).toString("base64url")}`;
  await tx.query(`INSERT INTO webhook_secret (id, webhook_id, secret) VALUES ($1, $2, $3)`, [
    id,
    webhookId,
    secret,
  ]);
  return { id, secret };
}

/** PostgreSQL's restrict_violation: the tables' own rules refused it. */
const RESTRICTED = "23001";

async function refusing<T>(
  code: "SECRETS_FULL" | "LAST_SECRET",
  message: string,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const isRefused = cause instanceof SqlError && cause.details["sqlState"] === RESTRICTED;
    throw isRefused ? new LedgerError(code, message, { cause }) : cause;
  }
}

function unknown(id: string): LedgerError {
  return new LedgerError("WEBHOOK_UNKNOWN", `no webhook has the id ${id}`);
}
