/**
 * What an operator does with the index: make it anew beside the live one, or hold all of it against
 * state.
 */
import { createEvmClient } from "../../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../../rpc-client/json-rpc.js";
import { createLogger } from "../../runtime/process/logger.js";
import { createMetrics } from "../../runtime/process/metrics.js";
import { openSqlSession } from "../../runtime/sql/sql-session.js";
import { checkBalances } from "../ingest/balance-check.js";
import { IndexMoved } from "../ingest/batch-write.js";
import { IndexFollower } from "../ingest/follower.js";
import { IndexerError } from "../errors.js";
import { readProgress } from "../store/progress.js";
import { type IndexSchema, LIVE_SCHEMA, OLD_SCHEMA, REBUILD_SCHEMA } from "../store/schema.js";

/** Where node and database are. */
export interface MaintenanceOptions {
  readonly databaseUrl: string;
  readonly nodeUrl: string;
  readonly timeoutMs: number;
  readonly batchBytes: number;
  readonly signal: AbortSignal;
}

/** What came of it. */
export interface MaintenanceReport {
  readonly height: number;
  /** Balances held against state. */
  readonly checked: number;
  /** Token balances whose logs did not add up, corrected now. */
  readonly corrected: number;
}

const log = createLogger({ component: "indexer-maintenance", level: "silent" });

/** Balances asked of the node at a time. */
const CHECK_ROUND = 500;

/** How often a verification begins anew because the writer went on meanwhile. */
const MAX_MOVES = 1_000;

/**
 * Indexes the chain into tables of its own while the live ones serve and follow, then puts them in
 * their place in one transaction. A run that was cut off is gone on with.
 * @throws IndexerError, NodeFault, SqlError
 */
export async function rebuildIndex(options: MaintenanceOptions): Promise<MaintenanceReport> {
  const { databaseUrl: url, signal } = options;
  const rpc = createJsonRpcClient({ url: options.nodeUrl, timeoutMs: options.timeoutMs });
  try {
    const node = createEvmClient(rpc);
    const [chainId, genesisHash] = await Promise.all([
      node.chainId({ signal }),
      node.genesisHash({ signal }),
    ]);
    const follower = new IndexFollower({
      databaseUrl: url,
      schema: REBUILD_SCHEMA,
      node,
      identity: { chainId, genesisHash },
      log,
      metrics: createMetrics({ processMetrics: false }),
      pollIntervalMs: 1_000,
      batchBytes: options.batchBytes,
      verifyPerRound: CHECK_ROUND,
      untilHead: true,
    });
    await follower.run(signal);
    signal.throwIfAborted();
    await swap(url);
    return { height: follower.status().indexedHeight, ...follower.checks() };
  } finally {
    rpc.close();
  }
}

/** Nothing is locked for longer than the renaming takes; the live writer finds the new tables. */
async function swap(url: string): Promise<void> {
  const session = await openSqlSession({ url, applicationName: "causeway-indexer-rebuild", log });
  try {
    await session.query(`DROP SCHEMA IF EXISTS ${OLD_SCHEMA} CASCADE`);
    await session.transaction(async (tx) => {
      const live = await readProgress(tx, LIVE_SCHEMA, { lock: true });
      if (live !== undefined) {
        await tx.query(`ALTER SCHEMA ${LIVE_SCHEMA} RENAME TO ${OLD_SCHEMA}`);
      }
      await tx.query(`ALTER SCHEMA ${REBUILD_SCHEMA} RENAME TO ${LIVE_SCHEMA}`);
    });
    await session.query(`DROP SCHEMA IF EXISTS ${OLD_SCHEMA} CASCADE`);
  } finally {
    await session.close();
  }
}

/**
 * Holds every balance of the live index against state at the newest indexed block: coins that differ
 * are an error, tokens that differ are corrected and counted.
 * @throws CONTRADICTED, NO_INDEX, NodeFault, SqlError
 */
export async function verifyIndex(options: MaintenanceOptions): Promise<MaintenanceReport> {
  const { databaseUrl: url, signal } = options;
  const schema: IndexSchema = LIVE_SCHEMA;
  const rpc = createJsonRpcClient({ url: options.nodeUrl, timeoutMs: options.timeoutMs });
  const session = await openSqlSession({ url, applicationName: "causeway-indexer-verify", log });
  try {
    const node = createEvmClient(rpc);
    const progress = await readProgress(session, schema);
    if (progress === undefined || progress.height < 0) {
      throw new IndexerError("NO_INDEX", "there is no index yet: start the indexer once");
    }
    await session.query(`UPDATE ${schema}.balance SET checked_at = NULL`);
    let [checked, corrected, moves] = [0, 0, 0];
    for (;;) {
      signal.throwIfAborted();
      const tip = await readProgress(session, schema);
      if (tip === undefined) throw new IndexerError("NO_INDEX", "the index is gone");
      try {
        const round = await checkBalances({ session, schema }, tip, node, {
          signal,
          limit: CHECK_ROUND,
        });
        if (round.checked === 0) return { height: tip.height, checked, corrected };
        checked += round.checked;
        corrected += round.corrected;
      } catch (error) {
        moves += 1;
        if (!(error instanceof IndexMoved) || moves > MAX_MOVES) throw error;
      }
    }
  } finally {
    await session.close();
    rpc.close();
  }
}
