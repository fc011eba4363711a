/**
 * What a node keeps of the past, how an archive finds it, and when a node ends: pruning, spans and
 * halt-height, from its settings.
 */
import type { Height } from "../../chain/hex.js";
import { systemClock } from "../../runtime/process/clock.js";
import type { Service } from "../../runtime/process/lifecycle.js";
import type { Logger } from "../../runtime/process/logger.js";
import { TaskGroup } from "../../runtime/process/task.js";
import type { AppConfig, NodeConfig } from "../settings/config.js";
import type { Consensus } from "../consensus/consensus.js";
import type { EventBus } from "../view/event-bus.js";
import { stateRetention } from "../settings/pruning-config.js";
import { ConsensusStore } from "../store/consensus-store.js";
import type { OpenStores } from "../store/open-store.js";
import { Pruner } from "../store/pruning/pruner.js";
import { retainedFrom } from "../store/pruning/retention.js";
import { SpanBuilder } from "../store/tries/span-builder.js";

/** Part of the time between two blocks that a round of pruning may take. */
const ROUND_SHARE = 0.5;

/** What pruning needs of the node. */
export interface NodePruningParts {
  readonly stores: OpenStores;
  readonly consensus: Pick<Consensus, "height" | "isPastEvidence" | "params">;
  readonly bus: EventBus;
  readonly app: AppConfig;
  readonly config: NodeConfig;
  readonly blockIntervalMs: number;
  /** Height of the oldest snapshot that is kept. */
  readonly oldestSnapshot: () => Height | undefined;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly fatal: (error: unknown) => void;
}

/**
 * Prunes in the background, and makes spans of the diffs that stay, until it is stopped; the store must
 * stay open until then.
 */
export function startPruning(parts: NodePruningParts): Service {
  const { stores, consensus, bus, app, config, log } = parts;
  const states = stateRetention(app[""]);
  const retention = {
    minRetainBlocks: app[""]["min-retain-blocks"],
    evidenceMaxAgeBlocks: consensus.params(0).evidenceMaxAgeBlocks,
    stateBlocks: states === undefined ? 0 : states.keepRecentBlocks + states.intervalBlocks,
    doubleSignCheckBlocks: config.consensus.double_sign_check_height,
  };
  const pruner = new Pruner({
    ...stores,
    consensus: new ConsensusStore(stores.database),
    head: () => consensus.height(),
    states,
    retainedFrom: (head) => retainedFrom(head, retention, parts.oldestSnapshot()),
    isPastEvidence: (height) => consensus.isPastEvidence(height),
    roundMs: parts.blockIntervalMs * ROUND_SHARE,
    clock: systemClock,
    log,
  });
  const spans = new SpanBuilder({
    ...stores,
    head: () => consensus.height(),
    clock: systemClock,
    log,
  });
  const tasks = new TaskGroup({
    signal: parts.signal,
    onFault: (name, error) => {
      log.error({ err: error }, `${name} failed`);
      parts.fatal(error);
    },
  });
  const unsubscribe = bus.on("block", () => {
    pruner.wake();
    spans.wake();
  });
  tasks.run("pruning", (signal) => pruner.run(signal));
  tasks.run("spans of old tries", (signal) => spans.run(signal));
  const { base, historyBase } = stores.base.get();
  log.info({ pruning: app[""].pruning, ...retention, base, historyBase }, "pruning");
  return {
    name: "pruning",
    async stop() {
      unsubscribe();
      await tasks.stop();
    },
  };
}

/**
 * Ends the process when the block of the setting `halt-height` is committed.
 * @returns true when the node has that block already: it must not go on
 */
export function haltAtHeight(parts: {
  readonly app: AppConfig;
  readonly bus: EventBus;
  /** The newest height at the start. */
  readonly height: Height;
  readonly log: Logger;
  readonly finish: (reason: string) => void;
}): boolean {
  const { app, bus, log, finish } = parts;
  const haltHeight = app[""]["halt-height"];
  if (haltHeight === 0) return false;
  const halt = (height: Height) => {
    log.info({ height, haltHeight }, "halted: halt-height of app.toml is reached");
    finish("halt-height of app.toml is reached: take it out and start again to go on");
  };
  if (parts.height >= haltHeight) {
    halt(parts.height);
    return true;
  }
  bus.on("block", ({ block }) => {
    if (block.header.height >= haltHeight) halt(block.header.height);
  });
  return false;
}
