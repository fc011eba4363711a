/** The record of calls that may have changed something: who, what, when; never a secret. */
import type { Sql } from "../../runtime/sql/sql.js";
import type { RecordedCall } from "../../runtime/http/http-access.js";
import { type ListOrder, listedBehind, listedBy } from "../list-order.js";

/** A call as it was written down before it was handled. */
export interface StoredCall extends Omit<RecordedCall, "signedDigest"> {
  readonly seq: number;
  /** The API that was called. */
  readonly service: string;
  readonly at: Date;
}

interface StoredCallRow {
  readonly seq: string;
  readonly key_id: string;
  readonly service: string;
  readonly method: string;
  readonly path: string;
  readonly idempotency_key: string | null;
  readonly body_sha256: string;
  readonly actor: string | null;
  readonly reason: string | null;
  readonly at: Date;
}

/** What became of a call: a signed one may be a repeat, and its key may have ended while its body came. */
export type CallRecord = "written" | "repeated" | "key-ended";

/**
 * Advisory lock of who writes calls down: whoever reads on behind the last number must not miss one below it
 * that the other API commits later.
 */
const CALLS_LOCK = 8_083_000_038n;

/** Wait for it: who writes keeps it for some milliseconds; any session of the database may for ever. */
const LOCK_WAIT_MS = 5_000;

/**
 * Writes calls down, in order, in one statement: those of keys that are revoked or have expired are not.
 * Numbers are drawn behind the lock, so that they appear in the order of commits.
 * @param nowMs wall clock, milliseconds
 * @throws DATABASE_UNAVAILABLE where somebody keeps the lock
 */
export async function recordCalls(
  sql: Sql,
  { service, nowMs }: { readonly service: string; readonly nowMs: number },
  calls: readonly RecordedCall[],
): Promise<readonly CallRecord[]> {
  const column = <T>(read: (call: RecordedCall) => T) => calls.map(read);
  const rows = await sql.query<{ signed_digest: string | null; ended: string | null }>(
    `WITH bound AS MATERIALIZED (SELECT set_config('lock_timeout', $12, true) AS ms
     ), turn AS MATERIALIZED (
       SELECT pg_advisory_xact_lock($11::bigint) FROM bound WHERE ms IS NOT NULL
     ), ended AS (
       SELECT id FROM api_key
        WHERE id = ANY ($2::text[]) AND (revoked_at IS NOT NULL OR expires_at <= $10::timestamptz)
     ), written AS (
       INSERT INTO api_call
         (key_id, service, method, path, idempotency_key, body_sha256, signed_digest, actor, reason)
       SELECT key_id, $1, method, path, idempotency_key, body_sha256, signed_digest, actor, reason
         FROM turn, unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                     $8::text[], $9::text[]) WITH ORDINALITY
           AS call (key_id, method, path, idempotency_key, body_sha256, signed_digest, actor, reason,
                    place)
        WHERE NOT EXISTS (SELECT 1 FROM ended WHERE id = key_id)
        ORDER BY place
       ON CONFLICT (signed_digest) WHERE signed_digest IS NOT NULL DO NOTHING
       RETURNING signed_digest
     )
     SELECT signed_digest, NULL AS ended FROM written UNION ALL SELECT NULL, id FROM ended`,
    [
      service,
      column(({ keyId }) => keyId),
      column(({ method }) => method),
      column(({ path }) => path),
      column(({ idempotencyKey }) => idempotencyKey ?? null),
      column(({ bodySha256 }) => bodySha256),
      column(({ signedDigest }) => signedDigest ?? null),
      column(({ actor }) => actor ?? null),
      column(({ reason }) => reason ?? null),
      new Date(nowMs).toISOString(),
      CALLS_LOCK,
      String(LOCK_WAIT_MS),
    ],
  );
  const ended = new Set(rows.map((row) => row.ended));
  // The same request twice in one batch has one row: the first of the two is let through.
  const written = new Set(rows.map((row) => row.signed_digest));
  return calls.map(({ keyId, signedDigest }) => {
    if (ended.has(keyId)) return "key-ended";
    return signedDigest === undefined || written.delete(signedDigest) ? "written" : "repeated";
  });
}

/** Calls behind a position, oldest first where nothing else is said. */
export async function listCalls(
  sql: Sql,
  page: {
    readonly keyId: string | undefined;
    readonly afterSeq: number;
    readonly limit: number;
    readonly order?: ListOrder;
  },
): Promise<readonly StoredCall[]> {
  const rows = await sql.query<StoredCallRow>(
    `SELECT seq, key_id, service, method, path, idempotency_key, body_sha256, actor, reason, at
       FROM api_call
      WHERE ${listedBehind("seq", page.order)} AND ($2::text IS NULL OR key_id = $2)
      ORDER BY ${listedBy("seq", page.order)} LIMIT $3`,
    [page.afterSeq, page.keyId ?? null, page.limit],
  );
  return rows.map((row) => ({
    seq: Number(row.seq),
    keyId: row.key_id,
    service: row.service,
    method: row.method,
    path: row.path,
    idempotencyKey: row.idempotency_key ?? undefined,
    bodySha256: row.body_sha256,
    actor: row.actor ?? undefined,
    reason: row.reason ?? undefined,
    at: row.at,
  }));
}
