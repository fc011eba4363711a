/**
 * The event stream of the exchange APIs: sequence numbers in commit order, without gaps. A recovery begins
 * a new epoch and counts on from the highest number that was ever told, so that no number is used
 * twice; within an epoch there is no gap, but for what was written behind a loss before anybody met it.
 */
import type { Sql } from "../runtime/sql/sql.js";
import { refuseInRecovery } from "./guard/recovery-incident.js";
import { hasToldNumber, TOLD_BEFORE } from "./guard/told-before.js";
import { storedInteger, timeTextSql } from "./stored-values.js";

/** Types of events: what became of deposits, withdrawals, tokens and webhooks. */
export const EVENT_TYPES = [
  "deposit.detected",
  "deposit.held",
  "deposit.suspense",
  "deposit.credited",
  "deposit.reversed",
  "withdrawal.pending_approval",
  "withdrawal.accepted",
  "withdrawal.slotted",
  "withdrawal.signed",
  "withdrawal.broadcast",
  "withdrawal.cancelling",
  "withdrawal.included",
  "withdrawal.frozen",
  "withdrawal.settled",
  "withdrawal.failed",
  "withdrawal.rejected",
  "withdrawal.cancelled",
  "token.paused",
  "token.resumed",
  "webhook.disabled",
] as const;

/** One of `EVENT_TYPES`. */
export type EventType = (typeof EVENT_TYPES)[number];

/** An event to append; `data` names what it is about and what integrators need. */
export interface NewEvent {
  readonly type: EventType;
  readonly data: Readonly<Record<string, unknown>>;
}

/** An event as stored. */
export interface StoredEvent {
  /** 1, 2, 3 ... in commit order; gaps as said above. */
  readonly seq: number;
  /** 1, and one more with each recovery of the ledger (D27). */
  readonly epoch: number;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** RFC 3339, UTC. */
  readonly at: string;
}

/**
 * Appends events in the order given. Call it as the LAST statement that locks anything: it takes
 * the one counter row and holds it until the commit, which is what makes the sequence gapless and
 * equal to the order of commits. A ledger in recovery counts from an older backup: its numbers may
 * have been told already, so that it says nothing before it is recovered.
 * @returns the sequence number of the first event; undefined when there is none
 * @throws RECOVERY
 */
export async function appendEvents(
  tx: Sql,
  events: readonly NewEvent[],
): Promise<number | undefined> {
  if (events.length === 0) return undefined;
  const rows = await tx.query<{ seq: string; epoch: number }>(
    `UPDATE event_counter SET seq = seq + $1::bigint RETURNING seq, epoch`,
    [events.length],
  );
  // Behind the counter's lock, under which a recovery is opened.
  await refuseInRecovery(tx);
  const firstSeq = storedInteger(rows[0]?.seq) - events.length + 1;
  await tx.query(
    `INSERT INTO event (seq, epoch, type, data)
     SELECT $1::bigint + place - 1, $2::integer, type, data
       FROM unnest($3::text[], $4::jsonb[]) WITH ORDINALITY AS input (type, data, place)`,
    [
      firstSeq,
      storedInteger(rows[0]?.epoch),
      events.map((event) => event.type),
      events.map((event) => JSON.stringify(event.data)),
    ],
  );
  return firstSeq;
}

/** An event as a JSON text, for who passes it on as it is. */
export interface EventText {
  readonly seq: number;
  /** The members of `StoredEvent`. */
  readonly json: string;
}

/** Events after a sequence number, oldest first, at most `limit`; none that has the number of another one. */
export async function listEventTexts(
  sql: Sql,
  page: { readonly afterSeq: number; readonly limit: number },
): Promise<EventText[]> {
  const rows = await sql.query<EventRow>(
    `WITH told AS MATERIALIZED (${TOLD_BEFORE})
     SELECT seq, epoch, type, data::text, ${timeTextSql("at")} AS at FROM event
      WHERE seq > $1 AND NOT ${hasToldNumber()} ORDER BY seq LIMIT $2`,
    [page.afterSeq, page.limit],
  );
  return rows.map((row) => {
    const seq = storedInteger(row.seq);
    const head = `{"seq":${seq},"epoch":${row.epoch},"type":${JSON.stringify(row.type)}`;
    return { seq, json: `${head},"data":${row.data},"at":"${toMs(row.at)}"}` };
  });
}

/** Milliseconds, of microseconds. */
const toMs = (timeText: string) => `${timeText.slice(0, -"000Z".length)}Z`;

/** Columns as the server's texts, but for small integers. */
interface EventRow {
  readonly seq: string;
  readonly epoch: number;
  readonly type: string;
  readonly data: string;
  readonly at: string;
}
