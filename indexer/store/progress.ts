/** How far the index is, and of which chain: one row, written in the transaction of each batch. */
import { type Address, bytesToAddress } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import { bytesToHash32 } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import type { SqlSession } from "../../runtime/sql/sql-session.js";
import { isMissingTable } from "../../runtime/sql/sql-errors.js";
import { IndexerError } from "../errors.js";
import {
  accountStatement,
  INDEX_SCHEMA_VERSION,
  type IndexSchema,
  indexStatements,
  LAST_INDEX,
  schemaStatements,
  wrappedCoinStatement,
} from "./schema.js";

/** The chain that is indexed. */
export interface IndexIdentity {
  readonly chainId: bigint;
  /** Hash of block 0. */
  readonly genesisHash: Hash32;
  /** Where coins are put out of everybody's reach; undefined while no node has told it. */
  readonly burnAddress?: Address | undefined;
}

/** The newest indexed block; height -1 before the first. */
export interface Progress extends IndexIdentity {
  readonly height: Height;
  readonly hash: Hash32 | undefined;
  readonly time: Date | undefined;
  readonly schemaVersion: number;
}

interface ProgressRow {
  readonly height: number;
  readonly hash: Buffer | null;
  readonly time: Date | null;
  readonly chain_id: string;
  readonly genesis_hash: Buffer;
  readonly schema_version: number;
}

/** The chain that an index was made for; undefined where there is none yet. */
export async function readStoredIdentity(
  sql: Sql,
  schema: IndexSchema,
): Promise<IndexIdentity | undefined> {
  const progress = await readProgress(sql, schema);
  if (progress === undefined) return undefined;
  const { chainId, genesisHash } = progress;
  const [table] = await sql.query<{ found: string | null }>(
    `SELECT to_regclass('${schema}.chain_account')::text AS found`,
  );
  if (typeof table?.found !== "string") return { chainId, genesisHash };
  const [row] = await sql.query<{ address: Buffer }>(
    `SELECT address FROM ${schema}.chain_account WHERE name = 'burnAddress'`,
  );
  const burnAddress = row === undefined ? undefined : bytesToAddress(row.address);
  return { chainId, genesisHash, burnAddress };
}

/** Keeps the burn address of the chain that is indexed, as its node told it. Its writer alone may. */
export async function storeBurnAddress(
  sql: Sql,
  schema: IndexSchema,
  { burnAddress }: IndexIdentity,
): Promise<void> {
  if (burnAddress === undefined) return;
  await sql.query(accountStatement(schema));
  await sql.query(
    `INSERT INTO ${schema}.chain_account (name, address) VALUES ('burnAddress', $1)
     ON CONFLICT (name) DO UPDATE SET address = excluded.address`,
    [Buffer.from(burnAddress.slice(2), "hex")],
  );
}

/** Undefined where there is no index yet. */
export async function readProgress(
  sql: Sql,
  schema: IndexSchema,
  options: { readonly lock?: boolean } = {},
): Promise<Progress | undefined> {
  const [table] = await sql.query<{ found: string | null }>(
    `SELECT to_regclass('${schema}.progress')::text AS found`,
  );
  if (typeof table?.found !== "string") return undefined;
  return selectProgress(sql, schema, options.lock === true ? "FOR UPDATE" : "");
}

/**
 * The same in one statement, for reads that have nothing to do without an index: a transaction in
 * which it was undefined is of no more use.
 */
export function readProgressOnly(sql: Sql, schema: IndexSchema): Promise<Progress | undefined> {
  return selectProgress(sql, schema, "").catch((error: unknown) => {
    if (isMissingTable(error)) return undefined;
    throw error;
  });
}

async function selectProgress(
  sql: Sql,
  schema: IndexSchema,
  lock: "FOR UPDATE" | "",
): Promise<Progress | undefined> {
  const [row] = await sql.query<ProgressRow>(
    `SELECT height, hash, time, chain_id, genesis_hash, schema_version
     FROM ${schema}.progress ${lock}`,
  );
  if (row === undefined) return undefined;
  return {
    height: row.height,
    hash: row.hash === null ? undefined : bytesToHash32(row.hash),
    time: row.time ?? undefined,
    chainId: BigInt(row.chain_id),
    genesisHash: bytesToHash32(row.genesis_hash),
    schemaVersion: row.schema_version,
  };
}

/** Memory of the server for making one index. */
const INDEX_MEMORY = "128MB";

/**
 * Makes the indexes where they are missing: once in the life of the tables, at their first head. The
 * rows are counted then, too: plans that were made over empty tables are not kept.
 * @throws SqlError; UNIQUE_VIOLATION where a row is there twice
 */
export async function openIndexes(session: SqlSession, schema: IndexSchema): Promise<void> {
  const isFirst = !(await hasIndexes(session, schema));
  const patient = session.patient();
  for (const statement of indexStatements(schema)) {
    await patient.transaction(async (tx) => {
      await tx.query(`SET LOCAL maintenance_work_mem = '${INDEX_MEMORY}'`);
      await tx.query(statement);
    });
  }
  if (!isFirst) return;
  const tables = await session.query<{ name: string }>(
    "SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = $1",
    [schema],
  );
  for (const { name } of tables) await patient.query(`ANALYZE ${schema}.${name}`);
}

/** Whether the tables were at the head once. */
export async function hasIndexes(sql: Sql, schema: IndexSchema): Promise<boolean> {
  const [row] = await sql.query<{ found: boolean }>(
    `SELECT to_regclass('${schema}.${LAST_INDEX}') IS NOT NULL AS found`,
  );
  return row?.found === true;
}

/**
 * Makes the tables where they are missing, and the row of an empty index, and keeps what is known of the
 * chain. Call it with the writer's lock held, in a transaction.
 * @throws FOREIGN_INDEX, NEWER_INDEX, OLDER_INDEX before anything is changed
 */
export async function openTables(
  sql: Sql,
  schema: IndexSchema,
  identity: IndexIdentity,
): Promise<Progress> {
  const before = await readProgress(sql, schema);
  if (before !== undefined) {
    assertOurs(before, identity);
    await storeBurnAddress(sql, schema, identity);
    await sql.query(wrappedCoinStatement(schema));
    return before;
  }
  for (const statement of schemaStatements(schema)) await sql.query(statement);
  await sql.query(
    `INSERT INTO ${schema}.progress (schema_version, chain_id, genesis_hash, height)
     VALUES ($1, $2, $3, -1) ON CONFLICT (single) DO NOTHING`,
    [INDEX_SCHEMA_VERSION, identity.chainId, Buffer.from(identity.genesisHash.slice(2), "hex")],
  );
  await storeBurnAddress(sql, schema, identity);
  const made = await readProgress(sql, schema);
  if (made === undefined) throw new IndexerError("NO_INDEX", "the tables were not made");
  return made;
}

/** @throws FOREIGN_INDEX, NEWER_INDEX, OLDER_INDEX where the tables are not of this program and chain */
export function assertOurs(progress: Progress, identity: IndexIdentity): void {
  const { schemaVersion, chainId, genesisHash } = progress;
  const versions = { details: { stored: schemaVersion, supported: INDEX_SCHEMA_VERSION } };
  if (schemaVersion > INDEX_SCHEMA_VERSION) {
    const message =
      `the index has format ${schemaVersion}, this program knows ${INDEX_SCHEMA_VERSION}: ` +
      "start the version that wrote it";
    throw new IndexerError("NEWER_INDEX", message, versions);
  }
  if (schemaVersion < INDEX_SCHEMA_VERSION) {
    const message =
      `the index has format ${schemaVersion}, this program writes ${INDEX_SCHEMA_VERSION}: ` +
      "run causeway indexer rebuild";
    throw new IndexerError("OLDER_INDEX", message, versions);
  }
  if (chainId !== identity.chainId || genesisHash !== identity.genesisHash) {
    throw new IndexerError(
      "FOREIGN_INDEX",
      `the index belongs to another chain (genesis ${genesisHash}, the node's is ` +
        `${identity.genesisHash}): use the database of this chain, or an empty one`,
      { details: { stored: genesisHash, node: identity.genesisHash } },
    );
  }
}
