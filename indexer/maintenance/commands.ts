/**
 * What an operator does with the index: make it anew beside the live one, or hold all of it against
 * state.
 */
import type { Height } from "../../chain/hex.js";
import { createEvmClient } from "../../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../../rpc-client/json-rpc.js";
import { systemClock } from "../../runtime/process/clock.js";
import { createLogger } from "../../runtime/process/logger.js";
import { createMetrics } from "../../runtime/process/metrics.js";
import { retry, sleep } from "../../runtime/process/task.js";
import { SqlError } from "../../runtime/sql/sql-errors.js";
import { openSqlSession, type SqlSession } from "../../runtime/sql/sql-session.js";
import { checkBalances } from "../ingest/balance-check.js";
import { IndexMoved } from "../ingest/batch-write.js";
import { IndexFollower } from "../ingest/follower.js";
import { readIdentity } from "../ingest/node-identity.js";
import { IndexerError } from "../errors.js";
import { assertOurs, hasIndexes, readProgress } from "../store/progress.js";
import { type IndexSchema, LIVE_SCHEMA, OLD_SCHEMA, REBUILD_SCHEMA } from "../store/schema.js";
import { assertServerVersion } from "../store/server-version.js";

/** Where node and database are. */
export interface MaintenanceOptions {
  readonly databaseUrl: string;
  readonly nodeUrl: string;
  /** EIP-155 chain id of the network that is indexed. */
  readonly evmChainId: bigint;
  readonly timeoutMs: number;
  readonly batchBytes: number;
  /** Told of each step. Making the tables' indexes is one that takes minutes. */
  readonly onProgress?: (progress: MaintenanceProgress) => void;
  readonly signal: AbortSignal;
}

/** How far it is. */
export interface MaintenanceProgress {
  /** Newest block that the tables hold; -1 for none. */
  readonly height: number;
  readonly nodeHeight: number;
  /** Looks at balances so far: one that changes meanwhile is looked at again. */
  readonly looks: number;
}

/** What came of it. */
export interface MaintenanceReport {
  readonly height: number;
  /** Balances that agree with state, whoever looked at them: the live indexer does so, too. */
  readonly checked: number;
  /** Token balances whose logs did not add up, corrected meanwhile. */
  readonly corrected: number;
  /** Token balances that are as logs have them, since their contract does not tell any. */
  readonly unanswered: number;
}

const log = createLogger({ component: "indexer-maintenance", level: "silent" });

const POLL_INTERVAL_MS = 1_000;

/** Balances asked of the node at a time. */
const CHECK_ROUND = 500;

/** How long readers that come may wait behind the one that swaps. */
const LOCK_WAIT_MS = 100;

/** SQLSTATE of a lock that was not had in time. */
const LOCK_NOT_AVAILABLE = "55P03";

/** Rounds in a row before whose end the writer went on: then even the smallest take longer than blocks do. */
const MAX_MOVES = 100;

/**
 * Indexes the chain into tables of its own while the live ones serve and follow, then puts them in
 * their place in one transaction. A run that was cut off is gone on with.
 * @throws WRONG_NETWORK and other IndexerErrors, NodeFault, SqlError
 */
export async function rebuildIndex(options: MaintenanceOptions): Promise<MaintenanceReport> {
  const { databaseUrl: url, signal } = options;
  await withSession(url, assertServerVersion);
  const rpc = createJsonRpcClient({ url: options.nodeUrl, timeoutMs: options.timeoutMs });
  try {
    const node = createEvmClient(rpc);
    // What is put in the live tables' place is not looked at again by anybody.
    const identity = await readIdentity(node, options.evmChainId, { signal });
    let looks = 0;
    const tell = (checked = 0) => {
      looks += checked;
      const { indexedHeight: height, nodeHeight = height } = follower.status();
      options.onProgress?.({ height, nodeHeight, looks });
    };
    const follower = new IndexFollower({
      databaseUrl: url,
      schema: REBUILD_SCHEMA,
      node,
      identity,
      log,
      metrics: createMetrics({ processMetrics: false }),
      pollIntervalMs: POLL_INTERVAL_MS,
      batchBytes: options.batchBytes,
      verifyPerRound: CHECK_ROUND,
      clock: systemClock,
      untilHead: true,
      onBlocks: () => tell(),
      onChecked: tell,
    });
    await follower.run(signal).catch(async (error: unknown) => {
      // What a run that was cut off has left may be of another chain or version: then from block 0.
      if (!(error instanceof IndexerError) || !UNFIT_CODES.has(error.code)) throw error;
      await dropRebuild(url);
    });
    for (let isSwapped = false; !isSwapped; ) {
      await follower.run(signal);
      signal.throwIfAborted();
      const { indexedHeight } = follower.status();
      const ahead = await swap(url, indexedHeight, signal);
      if (ahead === undefined) isSwapped = true;
      else {
        const head = await node.getBlockHeader("latest", { signal });
        if ((head?.height ?? ahead) >= ahead) continue;
        if (await isOfOneChain(url, indexedHeight)) {
          // The node is late, as one that catches up.
          tell();
          await sleep(POLL_INTERVAL_MS, { signal });
          continue;
        }
        // What the node does not have cannot be caught up with: the live index is of another chain.
        isSwapped = (await swap(url, ahead, signal)) === undefined;
      }
    }
    const { indexedHeight: height } = follower.status();
    return { height, ...(await withSession(url, (session) => tally(session, 0))) };
  } finally {
    rpc.close();
  }
}

const UNFIT_CODES: ReadonlySet<string> = new Set([
  "CONTRADICTED",
  "FOREIGN_INDEX",
  "NEWER_INDEX",
  "OLDER_INDEX",
]);

/** Whether the live index has the same block as the new one at a height. */
function isOfOneChain(url: string, height: Height): Promise<boolean> {
  return withSession(url, async (session) => {
    const rows = await session.query(
      `SELECT 1 FROM ${LIVE_SCHEMA}.block live JOIN ${REBUILD_SCHEMA}.block made USING (height, hash)
        WHERE height = $1`,
      [height],
    );
    return rows.length > 0;
  });
}

async function dropRebuild(url: string): Promise<void> {
  await withSession(url, (session) =>
    session.patient().query(`DROP SCHEMA IF EXISTS ${REBUILD_SCHEMA} CASCADE`),
  );
}

async function withSession<T>(url: string, work: (session: SqlSession) => Promise<T>): Promise<T> {
  const session = await openSqlSession({ url, applicationName: "causeway-indexer-rebuild", log });
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}

/** What the live index has of balances that were looked at from a height on, and of corrections. */
async function tally(
  session: SqlSession,
  from: Height,
): Promise<Omit<MaintenanceReport, "height">> {
  const s = LIVE_SCHEMA;
  const [row] = await session
    .patient()
    .query<Record<keyof Omit<MaintenanceReport, "height">, string>>(
      `SELECT count(*) FILTER (WHERE verified_at >= $1) AS checked,
       count(*) FILTER (WHERE checked_at >= $1 AND verified_at IS NULL) AS unanswered,
       (SELECT count(*) FROM ${s}.correction WHERE height >= $1) AS corrected
     FROM ${s}.balance`,
      [from],
    );
  const { checked = "0", corrected = "0", unanswered = "0" } = row ?? {};
  return {
    checked: Number(checked),
    corrected: Number(corrected),
    unanswered: Number(unanswered),
  };
}

/**
 * Puts the new tables into the live ones' place. Every read and the live writer begin at `progress`:
 * while it is locked nobody is between old and new tables. Who reads is not kept waiting: where the
 * lock cannot be had soon, it is asked for again later.
 * @returns the live index's height, and nothing is done, where it is above `height`, so that what
 *   readers see never goes back
 */
async function swap(url: string, height: Height, signal: AbortSignal): Promise<Height | undefined> {
  const session = await openSqlSession({ url, applicationName: "causeway-indexer-rebuild", log });
  const rename = () =>
    session.transaction(async (tx) => {
      await tx.query(`SET LOCAL lock_timeout = ${LOCK_WAIT_MS}`);
      const live = await readProgress(tx, LIVE_SCHEMA);
      if (live !== undefined) {
        await tx.query(`LOCK TABLE ${LIVE_SCHEMA}.progress IN ACCESS EXCLUSIVE MODE`);
        const now = await readProgress(tx, LIVE_SCHEMA);
        if (now !== undefined && now.height > height) return now.height;
        await tx.query(`ALTER SCHEMA ${LIVE_SCHEMA} RENAME TO ${OLD_SCHEMA}`);
      }
      await tx.query(`ALTER SCHEMA ${REBUILD_SCHEMA} RENAME TO ${LIVE_SCHEMA}`);
      return undefined;
    });
  try {
    await session.patient().query(`DROP SCHEMA IF EXISTS ${OLD_SCHEMA} CASCADE`);
    const ahead = await retry(rename, {
      signal,
      minDelayMs: LOCK_WAIT_MS,
      maxDelayMs: 20 * LOCK_WAIT_MS,
      isRetriable: (error) =>
        error instanceof SqlError && error.details["sqlState"] === LOCK_NOT_AVAILABLE,
    });
    if (ahead === undefined) {
      await session.patient().query(`DROP SCHEMA IF EXISTS ${OLD_SCHEMA} CASCADE`);
    }
    return ahead;
  } finally {
    await session.close();
  }
}

/**
 * Holds every balance of the live index, as it is now, against state at the newest indexed block: coins that
 * differ are an error, tokens that differ are corrected and counted.
 * @throws CONTRADICTED, NO_INDEX, INDEX_MOVED, what `assertOurs` and `readIdentity` throw, NodeFault,
 *   SqlError
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
    assertOurs(progress, await readIdentity(node, options.evmChainId, { signal }));
    if (!(await hasIndexes(session, schema))) {
      const message =
        "the index has not reached the node's head yet: wait until /ready answers 200";
      throw new IndexerError("NO_INDEX", message);
    }
    const before = await tally(session, progress.height);
    const upTo = await session.patient().transaction(async (tx) => {
      // First of all, as every batch does: with balances in an order of its own each of the two could wait
      // for what the other has changed, and the database would end one of them.
      const locked = await readProgress(tx, schema, { lock: true });
      await tx.query(`UPDATE ${schema}.balance SET checked_at = NULL`);
      // What changes after it is looked at by the live indexer: a busy chain would have no end.
      return locked?.height ?? progress.height;
    });
    let [moves, looks, limit] = [0, 0, CHECK_ROUND];
    let from: Buffer | undefined;
    for (;;) {
      signal.throwIfAborted();
      const tip = await readProgress(session, schema);
      if (tip === undefined) throw new IndexerError("NO_INDEX", "the index is gone");
      try {
        const round = await checkBalances({ session, schema }, tip, node, {
          signal,
          limit,
          clock: systemClock,
          from,
          upTo,
        });
        from = round.next;
        moves = 0;
        limit = Math.min(2 * limit, CHECK_ROUND);
        looks += round.checked;
        options.onProgress?.({ height: tip.height, nodeHeight: tip.height, looks });
        if (round.isMore) continue;
        const found = await tally(session, progress.height);
        return { height: tip.height, ...found, corrected: found.corrected - before.corrected };
      } catch (error) {
        if (!(error instanceof IndexMoved)) throw error;
        moves += 1;
        limit = Math.max(1, Math.floor(limit / 2));
        if (moves > MAX_MOVES) throw movedTooOften(error);
      }
    }
  } finally {
    await session.close();
    rpc.close();
  }
}

function movedTooOften(cause: unknown): IndexerError {
  const message =
    `${MAX_MOVES} times in a row the index moved on before the node had answered for a few balances: the ` +
    "node is slower than its blocks; what was looked at stays so, and the live indexer looks at the rest";
  return new IndexerError("INDEX_MOVED", message, { cause });
}
