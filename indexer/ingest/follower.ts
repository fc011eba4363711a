/**
 * Keeps the index at the node's head: one writer at a time, which reads ranges, writes batches and
 * holds balances against state while nothing is new. Nothing is ever overwritten: a node that
 * contradicts the index halts it, with the reason.
 */
import type { Address } from "../../chain/address.js";
import { errorMessage } from "../../chain/errors.js";
import type { Height } from "../../chain/hex.js";
import type { BlockRange } from "../../rpc-client/indexing/block-range.js";
import type { RangedBlock } from "../../rpc-client/indexing/ranged-block.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import { isMethodMissing, isPruned, WHOLE_NODE } from "../../rpc-client/errors.js";
import type { Clock } from "../../runtime/process/clock.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { MetricCounter, Metrics } from "../../runtime/process/metrics.js";
import { createWakeup, sleep } from "../../runtime/process/task.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { SqlError } from "../../runtime/sql/sql-errors.js";
import {
  openSqlSession,
  type SqlSession,
  type SqlSessionOptions,
} from "../../runtime/sql/sql-session.js";
import { IndexerError } from "../errors.js";
import {
  hasIndexes,
  type IndexIdentity,
  openIndexes,
  openTables,
  readProgressOnly,
  storeBurnAddress,
} from "../store/progress.js";
import { type IndexSchema, LAST_HEIGHT } from "../store/schema.js";
import { checkBalances } from "./balance-check.js";
import { IndexMoved, readTotals, type Tip, writeBatch } from "./batch-write.js";
import { type PreparedBatch, prepareBatch } from "./read-ahead.js";
import { MAX_STAGED_AGE, renewStaged } from "./staged-rows.js";
import { confirmPairs, readTokenFacts } from "./token-facts.js";
import { keepKnown } from "./wrapped-coins.js";

/** The node as the indexer needs it. */
export type IndexedNode = Pick<
  EvmClient,
  "blockRange" | "getBlockHeader" | "getBalances" | "tokenBalances" | "contractViews"
>;

/** What following works with. */
export interface FollowerOptions {
  /** Holds a password. */
  readonly databaseUrl: string;
  readonly schema: IndexSchema;
  readonly node: IndexedNode;
  readonly identity: IndexIdentity;
  /** Asked for what `identity` lacks, which is as it was stored while the node was away. */
  readonly readIdentity?: (options: RpcOptions) => Promise<IndexIdentity>;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly pollIntervalMs: number;
  readonly batchBytes: number;
  readonly verifyPerRound: number;
  /** Bounds the time of what contracts are asked. */
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Told of the blocks of each batch, after its commit. */
  readonly onBlocks?: (blocks: readonly RangedBlock[]) => void;
  /** Told how many balances a round held against state, after its commit. */
  readonly onChecked?: (checked: number) => void;
  /**
   * Ends at the node's head when all is checked that was there as its indexes were made: what came since
   * waits for who follows. Follows for ever without it.
   */
  readonly untilHead?: boolean;
  /** Age behind which the session's own tables are made young; default `MAX_STAGED_AGE`. */
  readonly maxStagedAge?: number;
}

/** What the follower is doing. */
export type FollowerState = "starting" | "waiting" | "behind" | "following" | "halted";

/** What others may see of it. */
export interface FollowerStatus {
  readonly state: FollowerState;
  /** Why it does not go on; undefined where it does. */
  readonly reason: string | undefined;
  readonly indexedHeight: Height;
  readonly nodeHeight: Height | undefined;
}

/** Time between two looks at a lock that another writer holds. */
const LOCK_POLL_MS = 500;

/** Time between two looks whether the tables that halted it were replaced. */
const HALTED_POLL_MS = 2_000;

/** Pauses after a fault: doubled from the first to the last. */
const MIN_PAUSE_MS = 200;
const MAX_PAUSE_MS = 5_000;

/** The first batch is small and each one twice the last, so that nobody waits long for something to do. */
const FIRST_BATCH_BYTES = 512 * 1024;

/** One key for each schema: the live index and a rebuild have a writer each. */
const LOCK_KEYS: Readonly<Record<IndexSchema, bigint>> = {
  indexer: 7_226_831_941n,
  indexer_rebuild: 7_226_831_942n,
};

/** The loop, and what it tells of itself. */
export class IndexFollower {
  private readonly wakeup = createWakeup();
  private state: FollowerState = "starting";
  private reason: string | undefined;
  private tip: Tip = { height: -1, hash: undefined };
  private nodeHeight: Height | undefined;
  /** Whether the indexes are there that reads need. */
  private isReadable = false;
  /** Of a run that ends: what changed up to here is checked before. */
  private goal: Height | undefined;
  /** Which tables were opened: a rebuild puts others into their place. */
  private tables = "";
  /** The token with which the next look at balances begins. */
  private nextToken: Buffer | undefined;
  /** The pair behind which the next look at pairs begins; a run that ends has no second look. */
  private lastPair: Buffer | undefined;
  private readonly figures: Readonly<
    Record<"blocks" | "transfers" | "checked" | "corrected", MetricCounter>
  >;

  constructor(private readonly options: FollowerOptions) {
    const { metrics } = options;
    const counter = (name: string, help: string) =>
      metrics.counter(`causeway_indexer_${name}_total`, help);
    this.figures = {
      blocks: counter("blocks", "Blocks written to the index"),
      transfers: counter("transfers", "Transfers written to the index"),
      checked: counter("balances_checked", "Balances held against state"),
      corrected: counter("balances_corrected", "Token balances that their logs did not add up to"),
    };
    metrics.gauge("causeway_indexer_height", "Newest indexed block", [], (gauge) =>
      gauge.set(this.tip.height),
    );
    metrics.gauge("causeway_indexer_lag_blocks", "Blocks behind the node", [], (gauge) =>
      gauge.set(Math.max(0, (this.nodeHeight ?? this.tip.height) - this.tip.height)),
    );
    metrics.gauge(
      "causeway_indexer_halted",
      "1 while it does not go on until somebody acts; /ready says why",
      [],
      (gauge) => gauge.set(this.state === "halted" ? 1 : 0),
    );
  }

  status(): FollowerStatus {
    const { state, reason = this.firstWay(), nodeHeight } = this;
    return { state, reason, indexedHeight: this.tip.height, nodeHeight };
  }

  /** Near the head as far from it: without their indexes most reads would go through whole tables. */
  private firstWay(): string | undefined {
    const { state, isReadable, nodeHeight, tip } = this;
    if (state !== "behind" || isReadable || nodeHeight === undefined) return undefined;
    return (
      `${Math.max(0, nodeHeight - tip.height)} blocks are left of the first way to the head, where ` +
      "the indexes are made by which reads find their rows"
    );
  }

  /**
   * Looks at once: a new head was announced. While a batch or a check takes long, this alone tells how far
   * the node is by now.
   */
  wake(height: Height): void {
    this.nodeHeight = Math.max(this.nodeHeight ?? height, height);
    this.wakeup.wake();
  }

  /** Follows until the signal fires, or until all is done where `untilHead` asks for that. */
  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.options;
    let pauseMs = MIN_PAUSE_MS;
    while (!signal.aborted) {
      try {
        await this.runSession(signal, () => {
          pauseMs = MIN_PAUSE_MS;
        });
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof IndexMoved) continue;
        const fault = explained(error);
        if (this.options.untilHead === true) throw fault;
        this.reason = errorMessage(fault);
        if (isFinal(fault)) {
          this.state = "halted";
          log.error({ code: fault.code, reason: fault.message }, "the index is halted");
          await this.replacement(signal);
          if (!signal.aborted) log.info({}, "the index was replaced: it goes on");
          continue;
        }
        if (this.state === "following") this.state = "behind";
        log.warn({ reason: this.reason }, "the index does not go on");
        await sleep(pauseMs, { signal }).catch(() => undefined);
        pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS);
      }
    }
  }

  /** The life of one connection with the writer's lock. */
  private async runSession(signal: AbortSignal, onProgress: () => void): Promise<void> {
    const { databaseUrl, schema, log, identity } = this.options;
    const applicationName = "causeway-indexer-writer";
    const session = await openSqlSession({ url: databaseUrl, applicationName, log });
    try {
      // A commit that a crash of the server takes back takes its progress with it.
      await session.query("SET synchronous_commit = off");
      this.tables = await tablesOf(session, schema);
      while (!(await session.tryLock(LOCK_KEYS[schema]))) {
        const { height, hash } = (await readProgressOnly(session, schema)) ?? this.tip;
        this.tip = { height, hash };
        this.state = "waiting";
        this.reason = "another indexer writes this index; this one serves and waits";
        await sleep(LOCK_POLL_MS, { signal });
      }
      // One statement at a time, so that a crash leaves either no table or all of them.
      this.tables = await tablesOf(session, schema);
      const progress = await session.transaction((tx) => openTables(tx, schema, identity));
      this.tables = await tablesOf(session, schema);
      this.tip = { height: progress.height, hash: progress.hash };
      // Another process has begun the tables anew: what was reached before counts no more.
      if (this.goal !== undefined && this.tip.height < this.goal) {
        this.goal = undefined;
        this.lastPair = undefined;
      }
      this.state = "behind";
      await this.assertSameChain(signal);
      await this.keepBurnAddress(session, signal);
      await this.follow(session, signal, onProgress);
    } finally {
      await session.close().catch(() => undefined);
    }
  }

  /** Once in each session: the node of a session before may have been another one. */
  private async keepBurnAddress(session: SqlSession, signal: AbortSignal): Promise<void> {
    const { identity, schema, readIdentity } = this.options;
    if (identity.burnAddress !== undefined || readIdentity === undefined) return;
    const told = await readIdentity({ signal });
    // One of another chain is refused with its blocks.
    if (told.genesisHash !== identity.genesisHash) return;
    await session.transaction((tx) => storeBurnAddress(tx, schema, told));
  }

  /** Resolves when other tables are in the place of those that halted it, or the signal fires. */
  private async replacement(signal: AbortSignal): Promise<void> {
    const { databaseUrl: url, schema, log } = this.options;
    const options = { url, applicationName: "causeway-indexer-halted", log };
    while (!signal.aborted) {
      await sleep(HALTED_POLL_MS, { signal }).catch(() => undefined);
      const tables = await tablesNow(options, schema);
      if (tables !== undefined && tables !== this.tables) return;
    }
  }

  private async follow(
    session: SqlSession,
    signal: AbortSignal,
    onProgress: () => void,
  ): Promise<void> {
    const target = { session, schema: this.options.schema };
    let maxBytes = Math.min(FIRST_BATCH_BYTES, this.options.batchBytes);
    const read = (from: Height) => {
      const range = this.read(from, maxBytes, signal);
      maxBytes = Math.min(2 * maxBytes, this.options.batchBytes);
      return range;
    };
    let totals = await readTotals(session, this.options.schema, this.tip.height);
    let ahead: Promise<PreparedBatch> | undefined;
    let areIndexesSeenTo = false;
    const known = new Map<Address, Height>();
    this.isReadable = await hasIndexes(session, this.options.schema);
    while (!signal.aborted) {
      const prepared = await (ahead ??
        prepareBatch(read, this.tip.height + 1, totals, signal, known));
      const { range, batch } = prepared;
      failpoint("indexer.after-read");
      this.nodeHeight = range.head.height;
      ahead = prepared.next();
      const written = await writeBatch(target, this.tip, range.blocks, prepared);
      this.tip = written.tip;
      keepKnown(known, written.known);
      // Behind each batch: the way to the head may be weeks long.
      await renewStaged(session, this.options.maxStagedAge ?? MAX_STAGED_AGE);
      totals = batch.totals;
      this.figures.blocks.inc(range.blocks.length);
      this.figures.transfers.inc(written.transfers);
      if (range.blocks.length > 0) this.options.onBlocks?.(range.blocks);
      onProgress();
      if (range.next !== undefined) {
        this.state = "behind";
        this.reason = undefined;
        continue;
      }
      if (!areIndexesSeenTo) {
        await openIndexes(session, this.options.schema);
        areIndexesSeenTo = true;
        this.isReadable = true;
        if (this.options.untilHead === true) this.goal ??= this.tip.height;
        failpoint("indexer.after-indexes");
        continue;
      }
      if (range.blocks.length === 0) await this.assertSameChain(signal);
      this.state = "following";
      this.reason = undefined;
      if (await this.upkeep(target, signal)) continue;
      if (this.options.untilHead === true) return;
      await this.wakeup.wait({ signal, timeoutMs: this.options.pollIntervalMs });
    }
  }

  private read(from: Height, maxBytes: number, signal: AbortSignal): Promise<BlockRange> {
    // It gives as many as one answer may have, and says whether there are more. Of a range that ends below
    // its head it would say that all of it is there, as it does at the head.
    return this.options.node.blockRange({ from, to: LAST_HEIGHT, maxBytes }, { signal });
  }

  /** What can wait for a quiet moment; true while there is more of it. */
  private async upkeep(
    target: { readonly session: SqlSession; readonly schema: IndexSchema },
    signal: AbortSignal,
  ): Promise<boolean> {
    const { node, verifyPerRound: limit, clock } = this.options;
    if (this.tip.height < 0) return false;
    const options = { signal, clock, upTo: this.goal };
    const pairOptions = { ...options, after: this.lastPair };
    const pairs = await confirmPairs(target, this.tip, node, pairOptions);
    this.lastPair = pairs.last;
    const tokens = await readTokenFacts(target, this.tip, node, options);
    const balanceOptions = { ...options, limit, from: this.nextToken };
    const round = await checkBalances(target, this.tip, node, balanceOptions);
    const { checked, corrected, isMore } = round;
    this.nextToken = round.next;
    this.figures.checked.inc(checked);
    this.figures.corrected.inc(corrected);
    this.options.onChecked?.(checked);
    failpoint("indexer.after-check");
    return pairs.asked + tokens > 0 || isMore;
  }

  /** @throws CONTRADICTED when the node's block at the tip is another one */
  private async assertSameChain(signal: AbortSignal): Promise<void> {
    const { height, hash } = this.tip;
    if (height < 0) return;
    const header = await this.options.node.getBlockHeader(height, { signal });
    if (header === undefined) {
      const head = await this.options.node.getBlockHeader("latest", { signal });
      this.nodeHeight = head?.height;
      throw new Error(`the node is at block ${head?.height}, the index at ${height}: it waits`);
    }
    if (header.hash === hash) return;
    const message =
      `block ${height} is ${header.hash} at the node and ${hash} in the index: blocks are final, ` +
      "so one of the two is not of this chain; connect the right node, or run causeway indexer rebuild";
    throw new IndexerError("CONTRADICTED", message, { details: { height, hash: header.hash } });
  }
}

const FINAL_CODES: ReadonlySet<string> = new Set([
  "CONTRADICTED",
  "FOREIGN_INDEX",
  "NEWER_INDEX",
  "OLDER_INDEX",
]);

/** Asking again cannot cure these: somebody has to act. */
function isFinal(error: unknown): error is IndexerError {
  return error instanceof IndexerError && FINAL_CODES.has(error.code);
}

/** A node's refusals in words that say what to do. */
function explained(error: unknown): unknown {
  if (isMethodMissing(error)) {
    const message = `the node has no ${error.rpc.method}: only a Causeway node can be indexed`;
    return new IndexerError("NODE_UNFIT", message, { cause: error });
  }
  if (isPruned(error)) {
    const message =
      "the node has deleted blocks, journals or state that the index needs: connect " + WHOLE_NODE;
    return new IndexerError("NODE_UNFIT", message, { cause: error });
  }
  return error;
}

/** Tells tables of one name apart; empty where there are none. */
async function tablesOf(sql: Sql, schema: IndexSchema): Promise<string> {
  const [row] = await sql.query<{ id: string | null }>(
    `SELECT to_regclass('${schema}.progress')::oid::text AS id`,
  );
  return row?.id ?? "";
}

/** The same over a connection of its own; undefined while the database does not answer. */
async function tablesNow(
  options: SqlSessionOptions,
  schema: IndexSchema,
): Promise<string | undefined> {
  try {
    const session = await openSqlSession(options);
    try {
      return await tablesOf(session, schema);
    } finally {
      await session.close();
    }
  } catch (error) {
    if (error instanceof SqlError) return undefined;
    throw error;
  }
}
