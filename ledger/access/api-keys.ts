/**
 * API keys as the ledger keeps them: scopes, expiry, pace, and a digest of the key. A key is shown
 * once, to who makes it, and cannot be read from anywhere afterwards.
 */
import { randomBytes, randomInt } from "node:crypto";
import { keyDigest } from "../../runtime/http/http-access.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { LedgerError } from "../errors.js";
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
}

/** What a key is made with. */
export interface NewApiKey extends Pick<ApiKey, "name" | "scopes" | "callsPerSecond"> {
  readonly expiresAt: Date | undefined;
}

/** Keys that are listed at most; more than any exchange hands out. */
const MAX_LISTED = 10_000;

const ID_LENGTH = 12;
const ID_DIGITS = "abcdefghijklmnopqrstuvwxyz0123456789";
const SECRET_BYTES = 32;

interface ApiKeyRow {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly calls_per_second: number | null;
  readonly created_at: Date;
  readonly expires_at: Date | null;
  readonly revoked_at: Date | null;
}

const COLUMNS = "id, name, scopes, calls_per_second, created_at, expires_at, revoked_at";

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
  sql: Sql,
  { name, scopes, callsPerSecond, expiresAt }: NewApiKey,
): Promise<{ readonly key: string; readonly stored: ApiKey }> {
  const id = Array.from({ length: ID_LENGTH }, () => ID_DIGITS[randomInt(ID_DIGITS.length)]).join(
    "",
  );
  const key = `cwk_${id}_${randomBytes(SECRET_BYTES).toString("base64url")}`;
  const [row] = await sql.query<ApiKeyRow>(
    `INSERT INTO api_key (id, digest, name, scopes, calls_per_second, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6) RETURNING ${COLUMNS}`,
    [id, apiKeyDigest(key), name, scopes, callsPerSecond ?? null, expiresAt ?? null],
  );
  if (row === undefined) throw new TypeError("the database returned no row of the new key");
  return { key, stored: toApiKey(row) };
}

/** All keys, oldest first, revoked and expired ones included. */
export async function listApiKeys(sql: Sql): Promise<readonly ApiKey[]> {
  const rows = await sql.query<ApiKeyRow>(
    `SELECT ${COLUMNS} FROM api_key ORDER BY created_at, id LIMIT ${MAX_LISTED}`,
  );
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
  const [row] = await sql.query<ApiKeyRow>(`SELECT ${COLUMNS} FROM api_key WHERE id = $1`, [id]);
  if (row === undefined || row.revoked_at === null) {
    throw new LedgerError("KEY_UNKNOWN", `no API key has the id ${id}: see \`causeway keys list\``);
  }
  return row.revoked_at;
}

/** The keys behind digests that are not revoked, by digest; whether they expired is for the caller. */
export async function findApiKeys(
  sql: Sql,
  digests: readonly string[],
): Promise<ReadonlyMap<string, ApiKey>> {
  const rows = await sql.query<ApiKeyRow & { readonly digest: string }>(
    `SELECT digest, ${COLUMNS} FROM api_key WHERE digest = ANY ($1::text[]) AND revoked_at IS NULL`,
    [digests],
  );
  return new Map(rows.map((row) => [row.digest, toApiKey(row)]));
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
  };
}
