/** What every read of the API shares: one snapshot of the index, and `meta`. */
import type { Address } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import { bytesToHex } from "../../chain/hex.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { IndexerError } from "../errors.js";
import type { FollowerStatus } from "../ingest/follower.js";
import { type Progress, readProgressOnly } from "../store/progress.js";
import { LIVE_SCHEMA } from "../store/schema.js";
import type { Asker, IndexReads } from "./index-reads.js";

/** What handlers work with. */
export interface ApiContext {
  readonly database: IndexReads;
  readonly node: Pick<
    EvmClient,
    | "getCode"
    | "getTransactionCount"
    | "transactionStatus"
    | "accountStates"
    | "tokenBalanceAnswers"
  >;
  readonly chainId: bigint;
  /** Where the chain's genesis has coins put out of everybody's reach; undefined before it is told. */
  readonly burnAddress: () => Address | undefined;
  readonly status: () => FollowerStatus;
}

/** An index as of one moment. */
export interface Snapshot {
  readonly sql: Sql;
  readonly progress: Progress;
  /** Newest block of the node that was seen. */
  readonly nodeHeight: Height | undefined;
}

/** Spec rule 5, in every answer. */
const NOTICE = "for front ends: exchange-critical reads go to your own node";

/**
 * Runs reads that all see the same index. They may be run a second time.
 * @throws NO_INDEX before the first block is indexed; what `IndexReads.snapshot` throws
 */
export function atOneMoment<T>(
  { database, status }: ApiContext,
  asker: Asker,
  work: (snapshot: Snapshot) => Promise<T>,
): Promise<T> {
  const read = async (sql: Sql) => {
    const progress = await readProgressOnly(sql, LIVE_SCHEMA);
    if (progress === undefined || progress.height < 0) {
      const reason = status().reason ?? "no block is indexed yet";
      throw new IndexerError("NO_INDEX", `there is no index yet: ${reason}`);
    }
    return work({ sql, progress, nodeHeight: status().nodeHeight });
  };
  return database.snapshot(read, asker);
}

/** `meta` of an answer. */
export function metaOf({ progress, nodeHeight }: Snapshot) {
  const { height, hash, time, chainId } = progress;
  return {
    chainId: chainId.toString(),
    indexedHeight: height,
    indexedHash: hash ?? null,
    indexedTime: time?.toISOString() ?? null,
    nodeHeight: nodeHeight === undefined ? null : Math.max(nodeHeight, height),
    lag: nodeHeight === undefined ? null : Math.max(0, nodeHeight - height),
    notice: NOTICE,
  };
}

/** Hash of an indexed block; undefined where the index has none of the height. */
export async function blockHashAt(sql: Sql, height: Height): Promise<string | undefined> {
  const [row] = await sql.query<{ hash: Buffer }>(
    `SELECT hash FROM ${LIVE_SCHEMA}.block WHERE height = $1`,
    [height],
  );
  return row === undefined ? undefined : hexOf(row.hash);
}

/** Bytes as hex; null for none. */
export function hexOf(bytes: Buffer): string {
  return bytesToHex(bytes);
}

/** The same for what may be NULL. */
export function hexOrNull(bytes: Buffer | null): string | null {
  return bytes === null ? null : bytesToHex(bytes);
}

/** Hex to the bytes of a parameter. */
export function bytesOf(hex: string): Buffer {
  return Buffer.from(hex.slice(2), "hex");
}

/** The name of an asset: TOKEN, or the contract's address. */
export function assetName(asset: Buffer): string {
  return asset.length === 0 ? "TOKEN" : bytesToHex(asset);
}
