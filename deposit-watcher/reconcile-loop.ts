/** Books against chain on a schedule: what was found is kept, counted and, where it matters, told. */
import { toChecksumAddress } from "../chain/address.js";
import type { Height } from "../chain/hex.js";
import { type Divergence, divergenceText, explainBreaks } from "../ledger/books/break-causes.js";
import { missingBlockText, otherBlockText } from "../ledger/books/compared-block.js";
import { reconcile, type ReconcileReport } from "../ledger/books/reconcile.js";
import {
  hasKept,
  type LastRun,
  lastRun,
  reconciledAssets,
  recordRun,
} from "../ledger/books/reconcile-runs.js";
import { readCursor } from "../ledger/watch/watch-cursor.js";
import type { EvmClient } from "../rpc-client/evm-client.js";
import { createReconcileChain } from "../rpc-client/reconcile-chain.js";
import type { Clock } from "../runtime/process/clock.js";
import { type Metrics, sharedRead } from "../runtime/process/metrics.js";
import type { SqlDatabase } from "../runtime/sql/sql.js";
import { type LeasedLoop, runLeased } from "../ledger/leased-loop.js";
import { DepositError } from "./errors.js";
import { isOwn } from "./watch-faults.js";

/** One process at a time reconciles; `owner` names this one in the lease. */
export interface ReconcileLoopParts extends Pick<LeasedLoop, "database" | "owner" | "log"> {
  readonly node: EvmClient;
  /** Time from one run to the next, whichever process made it. */
  readonly intervalMs: number;
  /** For how long a run waits. */
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Blocks that a halted watcher may be below the head for a clean run to count. */
  readonly maxLagBlocks: number;
  /** Asked where a run is due: it waits meanwhile, for one more interval at most. */
  readonly isCatchingUp: () => boolean;
}

/** Pause between two looks at whether a run is due. */
const LOOK_MS = 5_000;

/** A comparison of a hundred thousand addresses takes a node a minute. */
const LEASE_MS = 300_000;

/** Runs until the signal fires; see `runLeased` for faults. */
export async function runReconcileLoop(
  parts: ReconcileLoopParts,
  signal: AbortSignal,
): Promise<void> {
  const { database, owner, log, intervalMs, clock } = parts;
  const loop = { database, task: "reconcile" as const, owner, log, leaseMs: LEASE_MS, isOwn };
  const pauseMs = Math.min(LOOK_MS, intervalMs);
  let dueSinceMs: number | undefined;
  let notKeptAtMs: number | undefined;
  await runLeased(
    { ...loop, pauseMs },
    async (roundSignal) => {
      const last = await lastRun(database);
      // One of a time that is still to come says nothing: a clock was set back.
      if (last !== undefined && last.ageMs >= 0 && last.ageMs < intervalMs) {
        dueSinceMs = undefined;
        return false;
      }
      if (notKeptAtMs !== undefined && clock.monotonicMs() - notKeptAtMs < intervalMs) return false;
      dueSinceMs ??= clock.monotonicMs();
      // It asks for every address, of the node that the blocks come from, too.
      const mayWait = clock.monotonicMs() - dueSinceMs < intervalMs;
      // Who waits for a node that is away keeps nobody else from comparing.
      if (!(await isComparable(parts, roundSignal))) return false;
      if (mayWait && parts.isCatchingUp()) return false;
      let isKept = false;
      try {
        isKept = await reconcileOnce(parts, roundSignal);
      } finally {
        // What failed in the middle has read all the books: not every few seconds.
        notKeptAtMs = isKept ? undefined : clock.monotonicMs();
      }
      dueSinceMs = undefined;
      return false;
    },
    signal,
  );
}

/**
 * Whether there is a block to compare at. It is asked before the books are read, which takes as long as they
 * are many: while the node is away, or below them, that would be in vain each time.
 * @throws RpcError where the node does not answer; STALE_HEAD where it has no such block
 */
async function isComparable(
  { database, node }: Pick<ReconcileLoopParts, "database" | "node">,
  signal: AbortSignal,
): Promise<boolean> {
  const cursor = await readCursor(database);
  // Before the first block there is nothing to act on.
  if (cursor.blockHash === undefined) return false;
  const header = await node.getBlockHeader(cursor.height, { signal });
  if (header !== undefined) return true;
  const message = `ledger and chain not compared: ${missingBlockText(cursor)}`;
  throw new DepositError("STALE_HEAD", message, { retriable: true });
}

/**
 * One comparison, and what it found written down: a break that is new before it is looked into, which takes
 * as long as the books are large, and once more with where it begins and by what. Nothing is written down
 * where there was no block to compare at, or where `isHaltedFarBelow`.
 * @returns whether it was: otherwise the age of the last run grows, on which alarms are set
 * @throws the signal's reason, instead of writing anything down
 */
export async function reconcileOnce(
  parts: Pick<ReconcileLoopParts, "database" | "node" | "log"> &
    Partial<Pick<ReconcileLoopParts, "maxLagBlocks">>,
  signal: AbortSignal,
): Promise<boolean> {
  const { database, node, log } = parts;
  const chain = createReconcileChain(node, signal);
  const report = await reconcile(database, chain);
  const { height, uncompared, clean } = report;
  if (uncompared !== undefined) {
    log.warn({ reason: uncompared }, "ledger and chain not compared");
    return false;
  }
  const { maxLagBlocks = Infinity } = parts;
  const headHeight = await node.blockNumber({ signal });
  if (isHaltedFarBelow(report, headHeight, maxLagBlocks)) {
    log.warn(
      { height, headHeight, halted: report.halted },
      "booking is halted far below the head: the clean comparison is not kept " +
        "(causeway deposits status)",
    );
    return false;
  }
  const keep = async (findings: readonly string[]) => {
    // Whose lease is over found out less than who works now, and blames the node.
    signal.throwIfAborted();
    await recordRun(database, { height, clean, findings, assets: reconciledAssets(report) });
    if (!clean) log.error({ height, findings }, "ledger and chain do not match");
  };
  if (clean) {
    await keep([]);
    return true;
  }
  const found = findingTexts(report, []);
  if (!hasKept(await lastRun(database), found)) await keep(found);
  const { divergences } = await explainBreaks(database, chain, report);
  await keep(findingTexts(report, divergences));
  return true;
}

/** Whether a watcher that is halted has left so many blocks out that clean would say too much. */
export function isHaltedFarBelow(
  { clean, halted, height }: Pick<ReconcileReport, "clean" | "halted" | "height">,
  headHeight: Height,
  maxLagBlocks: number,
): boolean {
  return clean && halted !== undefined && headHeight - height > maxLagBlocks;
}

/** Breaks whose beginnings come before the names of all: a run that keeps no names is new each time. */
const FIRST_PLACES = 20;

/** In words, what weighs most first: of many breaks a run keeps the first ones. */
export function findingTexts(
  report: ReconcileReport,
  divergences: readonly Divergence[],
): readonly string[] {
  const assets = [report, ...report.tokens];
  const lines = assets.flatMap((asset) => asset.lines);
  const otherBlock = otherBlockText(report);
  return [
    ...(otherBlock === undefined ? [] : [otherBlock]),
    ...assets
      .flatMap(({ internalBreaks }) => internalBreaks)
      .map(({ what }) => `inside the ledger: ${what}`),
    ...divergences.slice(0, FIRST_PLACES).map(divergenceText),
    ...lines.flatMap(({ account, breaks, moreBreaks }) => [
      ...breaks.map(({ address }) => `${account}: ${toChecksumAddress(address)} does not match`),
      ...(moreBreaks > 0 ? [`${account}: ${moreBreaks} more addresses`] : []),
    ]),
    ...divergences.slice(FIRST_PLACES).map(divergenceText),
  ];
}

/**
 * Figures about the last run of whichever process, read when a page is asked for. While the database does not
 * tell there are none: a number would be taken for what it says.
 */
export function registerReconcileFigures(
  metrics: Metrics,
  parts: { readonly database: SqlDatabase; readonly clock: Pick<Clock, "monotonicMs"> },
): void {
  const { database, clock } = parts;
  const sinceMs = clock.monotonicMs();
  // A page is served without the database, too.
  const read = sharedRead(async () => {
    try {
      return { last: await lastRun(database) };
    } catch {
      return undefined;
    }
  });
  const show = (suffix: string, help: string, valueOf: (last: LastRun | undefined) => number) => {
    metrics.gauge(`causeway_reconcile_${suffix}`, help, [], async (gauge) => {
      const found = await read();
      if (found === undefined) gauge.remove();
      else gauge.set(valueOf(found.last));
    });
  };
  show(
    "age_seconds",
    "Time since ledger and chain were compared; before the first time, since this process's start.",
    // It grows where comparisons never work, so that an alarm on it rings there, too.
    (last) => Math.max(0, last?.ageMs ?? clock.monotonicMs() - sinceMs) / 1_000,
  );
  show("clean", "1 when ledger and chain matched the last time; -1 before the first.", (last) =>
    last === undefined ? -1 : Number(last.clean),
  );
  show(
    "height",
    "Block at which they were compared; -1 before the first time.",
    (last) => last?.height ?? -1,
  );
  show(
    "findings",
    "What did not match the last time; -1 before the first.",
    (last) => last?.findings.length ?? -1,
  );
}
