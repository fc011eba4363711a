/**
 * API keys as the ledger keeps them: scopes, expiry, pace, and a digest of the key. A key is shown
 * once, to who makes it, and cannot be read from anywhere afterwards.
 */
import { randomBytes } from "node:crypto";
import { present } from "../../chain/errors.js";
import { keyDigest } from "../../runtime/http/http-access.js";
import type { RequestVerifier } from "../../runtime/http/signed-request.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { LedgerError } from "../errors.js";
import { newShortId } from "../short-id.js";
import { ACCESS_SCOPES, type AccessScope } from "./scopes.js";

/** A key without its secret. */
export interface ApiKey {
  /** 12 lower-case letters and digits: its name in logs, records and commands. */
  readonly id: string;
  /** What people call it. */
  readonly name: string;
  readonly scopes: readonly AccessScope[];
  /** Calls per second to each process; undefined for no bound. */
  readonly callsPerSecond: number | undefined;
  readonly createdAt: Date;
  readonly expiresAt: Date | undefined;
  readonly revokedAt: Date | undefined;
  /** How its changing requests are signed; undefined for a key that signs nothing. */
  readonly signing: RequestVerifier["kind"] | undefined;
}

/** A key as its API needs it. */
export interface KnownApiKey extends ApiKey {
  readonly verifier: RequestVerifier | undefined;
}

/** What a key is made with. */
export interface NewApiKey extends Pick<ApiKey, "name" | "scopes" | "callsPerSecond"> {
  readonly expiresAt: Date | undefined;
  readonly verifier?: RequestVerifier | undefined;
  /**
   * A key of the same person, whose place it takes: what both say counts as said by one. One that this ledger
   * does not have is none.
   */
  readonly replaces?: string | undefined;
}

/** Keys that are listed at most; more than any exchange hands out. */
const MAX_LISTED = 10_000;

const SECRET_BYTES = 32;

/** The secret of a key whose requests are signed by HMAC; the whole text is the key of the HMAC. */
export function newSigningSecret(): string {
  return `cws_${randomBytes(SECRET_BYTES).toString("base64url")}`;
}

interface ApiKeyRow {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly calls_per_second: number | null;
  readonly created_at: Date;
  readonly expires_at: Date | null;
  readonly revoked_at: Date | null;
  readonly kind: string | null;
}

const KEYS = `
  SELECT id, name, scopes, calls_per_second, created_at, expires_at, revoked_at, kind, verifier,
         digest
    FROM api_key LEFT JOIN api_key_signature ON key_id = id`;

/** SHA-256 of a key, 64 hex digits: what the database has of it. */
export function apiKeyDigest(key: string): string {
  return keyDigest(key).toString("hex");
}

/**
 * Makes a key.
 * @returns the key's text, which is kept nowhere, and its row
 * @throws SqlError
 */
export async function createApiKey(
  database: SqlDatabase,
  { name, scopes, callsPerSecond, expiresAt, verifier, replaces }: NewApiKey,
): Promise<{ readonly key: string; readonly stored: ApiKey }> {
  const id = newShortId();
  const key = `cwk_${id}_${randomBytes(SECRET_BYTES).toString("base64url")}`;
  const row = await database.transaction(async (tx) => {
    await tx.query(
      `INSERT INTO api_key (id, digest, name, scopes, calls_per_second, expires_at, first_key)
       VALUES ($1, $2, $3, $4, $5, $6,
               (SELECT coalesce(first_key, id) FROM api_key WHERE id = $7))`,
      [
        id,
        apiKeyDigest(key),
        name,
        scopes,
        callsPerSecond ?? null,
        expiresAt ?? null,
        replaces ?? null,
      ],
    );
    if (verifier !== undefined) {
      await tx.query(`INSERT INTO api_key_signature (key_id, kind, verifier) VALUES ($1, $2, $3)`, [
        id,
        verifier.kind,
        verifier.kind === "hmac"
          ? verifier.secret
          : Buffer.from(verifier.publicKey).toString("hex"),
      ]);
    }
    return (await tx.query<ApiKeyRow>(`${KEYS} WHERE id = $1`, [id]))[0];
  });
  return { key, stored: toApiKey(present(row, "row of the new key")) };
}

/** All keys, oldest first, revoked and expired ones included. */
export async function listApiKeys(sql: Sql): Promise<readonly ApiKey[]> {
  const rows = await sql.query<ApiKeyRow>(`${KEYS} ORDER BY created_at, id LIMIT ${MAX_LISTED}`);
  return rows.map(toApiKey);
}

/**
 * Ends a key; processes that know it forget it within `KEY_LIFE_MS` of the key ring.
 * @returns when it was revoked, also where that was before
 * @throws KEY_UNKNOWN
 */
export async function revokeApiKey(sql: Sql, id: string): Promise<Date> {
  await sql.query(`UPDATE api_key SET revoked_at = now() WHERE id = $1 AND revoked_at IS NULL`, [
    id,
  ]);
  const [row] = await sql.query<ApiKeyRow>(`${KEYS} WHERE id = $1`, [id]);
  if (row === undefined || row.revoked_at === null) {
    throw new LedgerError("KEY_UNKNOWN", `no API key has the id ${id}: see \`causeway keys list\``);
  }
  return row.revoked_at;
}

/**
 * The newest of the revoked keys with a name whose person has no other one; undefined where there is none.
 * Who has one is there still: somebody of the same name in another home is somebody else.
 */
export async function findRevokedKey(sql: Sql, name: string): Promise<string | undefined> {
  const [row] = await sql.query<{ id: string }>(
    `SELECT k.id FROM api_key k
      WHERE k.name = $1 AND k.revoked_at IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM api_key other
                         WHERE other.revoked_at IS NULL
                           AND person_of_key(other.id) = person_of_key(k.id))
      ORDER BY k.created_at DESC, k.id LIMIT 1`,
    [name],
  );
  return row?.id;
}

/** The keys behind digests that are not revoked, by digest; whether they expired is for the caller. */
export async function findApiKeys(
  sql: Sql,
  digests: readonly string[],
): Promise<ReadonlyMap<string, KnownApiKey>> {
  const rows = await sql.query<ApiKeyRow & { digest: string; verifier: string | null }>(
    `${KEYS} WHERE digest = ANY ($1::text[]) AND revoked_at IS NULL`,
    [digests],
  );
  return new Map(rows.map((row) => [row.digest, { ...toApiKey(row), verifier: toVerifier(row) }]));
}

function toVerifier(row: {
  readonly kind: string | null;
  readonly verifier: string | null;
}): RequestVerifier | undefined {
  if (row.verifier === null) return undefined;
  return row.kind === "hmac"
    ? { kind: "hmac", secret: row.verifier }
    : { kind: "ed25519", publicKey: Uint8Array.from(Buffer.from(row.verifier, "hex")) };
}

function toApiKey(row: ApiKeyRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    scopes: ACCESS_SCOPES.filter((scope) => row.scopes.includes(scope)),
    callsPerSecond: row.calls_per_second ?? undefined,
    createdAt: row.created_at,
    expiresAt: row.expires_at ?? undefined,
    revokedAt: row.revoked_at ?? undefined,
    signing: row.kind === "hmac" || row.kind === "ed25519" ? row.kind : undefined,
  };
}
