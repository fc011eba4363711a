/**
 * What is sent to webhooks. Events are written in the commit of what happened, so the event stream
 * is the outbox: each webhook has a cursor over it, and a bounded number of deliveries under way.
 * A delivery is claimed before it is sent and recorded after: whoever dies in between leaves it due
 * again, so each event arrives at least once, always under the same id.
 */
import { shorten } from "../../chain/evm/foreign-text.js";
import { present } from "../../chain/errors.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { LedgerError } from "../errors.js";
import { listedBehind, listedBy, type ListOrder } from "../list-order.js";
import { appendEvents, type StoredEvent } from "../events.js";
import { hasToldNumber, TOLD_BEFORE } from "../guard/told-before.js";
import { storedInteger, storedTime } from "../stored-values.js";
import type { Webhook } from "./subscriptions.js";

/** What became of a delivery. */
export const DELIVERY_STATUSES = ["pending", "delivered", "dead"] as const;

/** One of `DELIVERY_STATUSES`. */
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** One event for one webhook. */
export interface DeliveryKey {
  readonly webhookId: string;
  readonly seq: number;
}

/** A delivery that its claimer is to send now. */
export interface ClaimedDelivery extends DeliveryKey {
  readonly url: string;
  /** All claims so far, this one included. */
  readonly attempts: number;
  /** Claims since it was last asked for, this one included. */
  readonly tries: number;
  readonly event: StoredEvent;
}

/** An event on its way to one webhook: tries so far, and when the next one is due. */
export interface StoredDelivery extends DeliveryKey {
  readonly eventType: string;
  readonly status: DeliveryStatus;
  readonly attempts: number;
  /** Undefined once it has ended. */
  readonly nextTryAt: Date | undefined;
  /** HTTP status of the last answer; undefined where there was none. */
  readonly lastStatus: number | undefined;
  readonly lastError: string | undefined;
  readonly changedAt: Date;
}

/** What a try came to. */
export type DeliveryOutcome =
  | { readonly kind: "delivered"; readonly status: number }
  | {
      readonly kind: "retry" | "dead";
      readonly status: number | undefined;
      readonly error: string;
      readonly delayMs: number;
    };

/** Deliveries of one webhook that are made from events ahead of time. */
const PENDING_WINDOW = 256;

/**
 * Deliveries of one webhook that are kept when they have ended: what a person looks through. Older ones
 * are forgotten a day after their end; their events are not.
 */
const DELIVERIES_KEPT = 10_000;

/** Deliveries that one statement forgets: a moment's work. */
const PRUNED_AT_ONCE = 5_000;

/** Deliveries that one statement draws back. */
const DRAWN_AT_ONCE = 1_000;

/** Events that one statement looks through for a webhook. */
const SCAN_EVENTS = 1_000;

/** As in the table. */
const MAX_ERROR_LENGTH = 500;

/** A webhook that loses so many deliveries without one that arrives is switched off. */
export const DEAD_UNTIL_DISABLED = 10;

/**
 * Makes deliveries of the events behind a webhook's cursor, as far as its window has room.
 * @returns true when there may be more
 */
export async function fillDeliveries(sql: Sql, webhookId: string): Promise<boolean> {
  const rows = await sql.query<{ scanned: string }>(
    `WITH told AS MATERIALIZED (${TOLD_BEFORE}
     ), hook AS (
       SELECT id, cursor_seq, events FROM webhook
        WHERE id = $1 AND status = 'active'
          AND (SELECT count(*) FROM webhook_delivery d
                WHERE d.webhook_id = $1 AND d.status = 'pending') < $2
          FOR UPDATE
     ), scanned AS (
       SELECT event.seq, (type = ANY (events) OR '*' = ANY (events)
              OR split_part(type, '.', 1) || '.*' = ANY (events)) AND NOT ${hasToldNumber()} AS is_wanted
         -- From the cursor on: as a join all events before it may be read as well, or all behind it.
         FROM hook CROSS JOIN LATERAL (
           SELECT * FROM event WHERE event.seq > hook.cursor_seq ORDER BY event.seq LIMIT $3) AS event
     ), written AS (
       INSERT INTO webhook_delivery (webhook_id, seq)
       SELECT $1, seq FROM scanned WHERE is_wanted ORDER BY seq
       ON CONFLICT (webhook_id, seq) DO UPDATE
         SET status = 'pending', tries = 0, next_try_at = now(), changed_at = now()
         WHERE webhook_delivery.status <> 'pending'
     ), reached AS (
       -- Numbers that a recovery skipped have no event: nothing is waited for there.
       SELECT CASE WHEN count(*) = $3 THEN max(seq) ELSE (SELECT seq FROM event_counter) END AS seq
         FROM scanned
     ), moved AS (
       UPDATE webhook SET cursor_seq = greatest(webhook.cursor_seq, reached.seq)
         FROM hook, reached WHERE webhook.id = hook.id
     )
     SELECT count(*)::text AS scanned FROM scanned`,
    [webhookId, PENDING_WINDOW, SCAN_EVENTS],
  );
  return storedInteger(rows[0]?.scanned) === SCAN_EVENTS;
}

/**
 * Makes deliveries due that were made, claimed or put off at a time that is still to come: the database's
 * clock has gone back since, and what they wait for may be a day away. A minute is soon caught up with: for
 * less no try is made beside one that is under way.
 * @returns how many, and whether there may be more
 */
export async function drawDeliveriesBack(
  sql: Sql,
): Promise<{ readonly count: number; readonly isMore: boolean }> {
  const rows = await sql.query(
    `WITH late AS (
       SELECT webhook_id, seq FROM webhook_delivery
        WHERE status = 'pending' AND changed_at > clock_timestamp() + interval '1 minute'
        ORDER BY webhook_id, seq LIMIT $1 FOR UPDATE SKIP LOCKED
     ), drawn AS (
       UPDATE webhook_delivery d SET next_try_at = now(), changed_at = now()
         FROM late WHERE d.webhook_id = late.webhook_id AND d.seq = late.seq RETURNING 1)
     SELECT 1 FROM drawn`,
    [DRAWN_AT_ONCE],
  );
  return { count: rows.length, isMore: rows.length === DRAWN_AT_ONCE };
}

/** Webhooks with events behind their cursor or deliveries that are due, and the last event there is. */
export async function webhooksAtWork(sql: Sql): Promise<{
  readonly webhooks: readonly { readonly id: string; readonly isBehind: boolean }[];
  readonly headSeq: number;
}> {
  const rows = await sql.query<{ id: string; is_behind: boolean; head_seq: string }>(
    `SELECT id, cursor_seq < head.seq AS is_behind, head.seq::text AS head_seq
       FROM webhook, event_counter AS head
      WHERE status = 'active'
        AND (cursor_seq < head.seq
             OR EXISTS (SELECT 1 FROM webhook_delivery d
                         WHERE d.webhook_id = webhook.id AND d.status = 'pending'
                           AND d.next_try_at <= clock_timestamp()))
      ORDER BY position`,
  );
  return {
    webhooks: rows.map((row) => ({ id: row.id, isBehind: row.is_behind })),
    headSeq: rows[0] === undefined ? 0 : storedInteger(rows[0].head_seq),
  };
}

/**
 * Claims deliveries that are due, oldest events first, for each webhook at most what it has room for.
 * Until `claimMs` is over nobody else claims them.
 */
export async function claimDeliveries(
  sql: Sql,
  {
    rooms,
    upToSeq,
    claimMs,
  }: {
    readonly rooms: ReadonlyMap<string, number>;
    readonly upToSeq: number;
    readonly claimMs: number;
  },
): Promise<readonly ClaimedDelivery[]> {
  const rows = await sql.query<ClaimedRow>(
    `WITH due AS (
       SELECT d.webhook_id, d.seq, hook.url
         FROM unnest($1::text[], $2::integer[]) AS room (webhook_id, most)
         JOIN webhook hook ON hook.id = room.webhook_id AND hook.status = 'active'
        CROSS JOIN LATERAL (
          SELECT webhook_id, seq FROM webhook_delivery
           WHERE webhook_id = room.webhook_id AND status = 'pending'
             AND seq <= $4 AND next_try_at <= clock_timestamp()
           ORDER BY seq LIMIT room.most FOR UPDATE SKIP LOCKED) AS d
     ), claimed AS (
       UPDATE webhook_delivery d
          SET attempts = attempts + 1, tries = tries + 1, changed_at = now(),
              next_try_at = clock_timestamp() + $3::integer * interval '1 millisecond'
         FROM due WHERE d.webhook_id = due.webhook_id AND d.seq = due.seq
       RETURNING d.webhook_id, d.seq, d.attempts, d.tries, due.url
     )
     SELECT claimed.*, event.epoch, event.type, event.data, event.at
       FROM claimed JOIN event USING (seq) ORDER BY claimed.seq, claimed.webhook_id`,
    [[...rooms.keys()], [...rooms.values()], claimMs, upToSeq],
  );
  return rows.map((row) => ({
    webhookId: row.webhook_id,
    seq: storedInteger(row.seq),
    url: row.url,
    attempts: row.attempts,
    tries: row.tries,
    event: {
      seq: storedInteger(row.seq),
      epoch: row.epoch,
      type: row.type,
      data: row.data,
      at: storedTime(row.at),
    },
  }));
}

interface ClaimedRow {
  readonly webhook_id: string;
  readonly seq: string;
  readonly url: string;
  readonly attempts: number;
  readonly tries: number;
  readonly epoch: number;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly at: unknown;
}

/**
 * Writes down what a try came to; one whose claim another has taken over since says nothing, nor one from
 * before the event was asked for again (`redeliver`): that is due, with all its tries. The tenth delivery
 * in a row that is given up switches its webhook off, with an event that says so. Webhooks are held before
 * their deliveries, as where these are made of events.
 * @returns whether it counted
 */
export async function recordOutcome(
  database: SqlDatabase,
  claim: Pick<ClaimedDelivery, "webhookId" | "seq" | "attempts" | "tries">,
  outcome: DeliveryOutcome,
): Promise<boolean> {
  const { webhookId, seq, attempts, tries } = claim;
  return database.transaction(async (tx) => {
    const isCounted = await lockCount(tx, webhookId, outcome);
    const isRetry = outcome.kind === "retry";
    const rows = await tx.query(
      `UPDATE webhook_delivery
          SET status = $4, last_status = $5, last_error = $6, changed_at = now(),
              next_try_at = clock_timestamp() + $7::bigint * interval '1 millisecond'
        WHERE webhook_id = $1 AND seq = $2 AND attempts = $3 AND tries = $8 AND status = 'pending'
       RETURNING seq`,
      [
        webhookId,
        seq,
        attempts,
        isRetry ? "pending" : outcome.kind,
        outcome.status ?? null,
        outcome.kind === "delivered" ? null : shorten(outcome.error, MAX_ERROR_LENGTH),
        isRetry ? outcome.delayMs : 0,
        tries,
      ],
    );
    if (rows.length === 0) return false;
    if (outcome.kind === "delivered" && isCounted) {
      await tx.query(
        `UPDATE webhook SET dead_in_a_row = 0
          WHERE id = $1 AND dead_in_a_row > 0 AND status <> 'removed'`,
        [webhookId],
      );
    }
    if (outcome.kind === "dead") await countDead(tx, webhookId, outcome.error);
    return true;
  });
}

/** Holds a webhook whose count of lost deliveries is to change. @returns false where there is none */
async function lockCount(tx: Sql, webhookId: string, { kind }: DeliveryOutcome): Promise<boolean> {
  if (kind === "retry") return false;
  const rows = await tx.query(
    `SELECT 1 FROM webhook WHERE id = $1 AND ($2 OR dead_in_a_row > 0) FOR UPDATE`,
    [webhookId, kind === "dead"],
  );
  return rows.length > 0;
}

async function countDead(tx: Sql, webhookId: string, lastError: string): Promise<void> {
  const reason = `${DEAD_UNTIL_DISABLED} deliveries in a row were given up; the last one: `;
  const rows = await tx.query<{ status: string; reason: string | null }>(
    `UPDATE webhook
        SET dead_in_a_row = dead_in_a_row + 1,
            status = CASE WHEN dead_in_a_row + 1 >= $2 THEN 'disabled' ELSE status END,
            reason = CASE WHEN dead_in_a_row + 1 >= $2 THEN $3 ELSE reason END,
            changed_at = CASE WHEN dead_in_a_row + 1 >= $2 THEN now() ELSE changed_at END
      WHERE id = $1 AND status = 'active' RETURNING status, reason`,
    [webhookId, DEAD_UNTIL_DISABLED, shorten(reason + lastError, MAX_ERROR_LENGTH)],
  );
  const row = rows[0];
  if (row?.status !== "disabled") return;
  await appendEvents(tx, [{ type: "webhook.disabled", data: { webhookId, reason: row.reason } }]);
}

/**
 * Gives deliveries up whose event is told again in another epoch, by a number of its own, inside the
 * transaction of a recovery.
 */
export async function endToldAgain(tx: Sql): Promise<void> {
  await tx.query(
    `WITH told AS MATERIALIZED (${TOLD_BEFORE})
     UPDATE webhook_delivery d
        SET status = 'dead', changed_at = now(),
            last_error = 'its number stood for another event: it is sent under another one'
       FROM event WHERE event.seq = d.seq AND d.status = 'pending' AND ${hasToldNumber()}`,
  );
}

/**
 * Forgets deliveries that ended more than a day ago, beyond the newest of each webhook.
 * @returns true when there may be more
 */
export async function pruneDeliveries(sql: Sql, kept = DELIVERIES_KEPT): Promise<boolean> {
  const rows = await sql.query<{ pruned: number }>(
    `SELECT prune_webhook_deliveries($1, $2) AS pruned`,
    [kept, PRUNED_AT_ONCE],
  );
  return rows[0]?.pruned === PRUNED_AT_ONCE;
}

/**
 * Sends events again from a sequence number on, whatever became of them; a webhook that was switched
 * off is switched on by it. What waits for its next try is due at once, and has all its tries again; one
 * whose try is being written down at this moment keeps its time.
 * @throws WEBHOOK_UNKNOWN
 */
export async function redeliver(sql: Sql, webhookId: string, fromSeq: number): Promise<void> {
  const rows = await sql.query(
    `WITH hook AS (
       UPDATE webhook
          SET cursor_seq = least(cursor_seq, greatest(0, $2::bigint - 1)), status = 'active',
              reason = NULL, dead_in_a_row = 0,
              changed_at = CASE WHEN status = 'active' THEN changed_at ELSE now() END
        WHERE id = $1 AND status <> 'removed' RETURNING id
     ), waiting AS (
       SELECT d.webhook_id, d.seq FROM hook JOIN webhook_delivery d ON d.webhook_id = hook.id
        WHERE d.seq >= $2::bigint AND d.status = 'pending'
        ORDER BY d.seq FOR UPDATE OF d SKIP LOCKED
     ), due AS (
       UPDATE webhook_delivery d SET tries = 0, next_try_at = now(), changed_at = now()
         FROM waiting WHERE d.webhook_id = waiting.webhook_id AND d.seq = waiting.seq
     )
     SELECT id FROM hook`,
    [webhookId, fromSeq],
  );
  if (rows.length === 0) {
    throw new LedgerError("WEBHOOK_UNKNOWN", `no webhook has the id ${webhookId}`);
  }
}

/** Says of a redelivery that there is nothing to send from that number on; undefined where there is. */
export function nothingToRedeliver(
  { newestSeq }: Pick<Webhook, "newestSeq">,
  fromSeq: number,
): string | undefined {
  if (fromSeq <= newestSeq) return undefined;
  return `there is no event ${fromSeq}: the newest is ${newestSeq}; nothing is sent again`;
}

/** Deliveries of a webhook behind a sequence number, oldest first where nothing else is said. */
export async function listDeliveries(
  sql: Sql,
  webhookId: string,
  page: {
    readonly status: DeliveryStatus | undefined;
    readonly afterSeq: number;
    readonly limit: number;
    readonly order?: ListOrder;
  },
): Promise<readonly StoredDelivery[]> {
  const rows = await sql.query<DeliveryRow>(
    `SELECT d.seq, event.type, d.status, d.attempts, d.next_try_at, d.last_status, d.last_error,
            d.changed_at
       FROM webhook_delivery d JOIN event USING (seq)
      WHERE ${listedBehind("d.seq", page.order)} AND d.webhook_id = $2
        AND ($3::text IS NULL OR d.status = $3)
      ORDER BY ${listedBy("d.seq", page.order)} LIMIT $4`,
    [page.afterSeq, webhookId, page.status ?? null, page.limit],
  );
  return rows.map((row) => ({
    webhookId,
    seq: storedInteger(row.seq),
    eventType: row.type,
    status: present(
      DELIVERY_STATUSES.find((known) => known === row.status),
      "status of a delivery",
    ),
    attempts: row.attempts,
    nextTryAt: row.status === "pending" ? row.next_try_at : undefined,
    lastStatus: row.last_status ?? undefined,
    lastError: row.last_error ?? undefined,
    changedAt: row.changed_at,
  }));
}

interface DeliveryRow {
  readonly seq: string;
  readonly type: string;
  readonly status: string;
  readonly attempts: number;
  readonly next_try_at: Date;
  readonly last_status: number | null;
  readonly last_error: string | null;
  readonly changed_at: Date;
}
