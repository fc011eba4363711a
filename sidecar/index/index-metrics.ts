/** Figures of the index for Prometheus. */
import type { Metrics } from "../../runtime/process/metrics.js";
import type { RosettaBlock } from "../rosetta/operations.js";
import type { IndexFollower } from "./follower.js";
import type { IndexedBlocks } from "./indexed-blocks.js";
import type { IndexStore } from "./index-store.js";
import type { TokenLedger } from "./tokens/token-ledger.js";

/** What the gauges look at when a page is asked for. */
export interface ObservedIndex {
  readonly store: Pick<IndexStore, "tip">;
  readonly ledger: Pick<TokenLedger, "quarantines">;
  readonly follower: Pick<IndexFollower, "nodeHead">;
  readonly blocks: Pick<IndexedBlocks, "statistics">;
}

/** Counts what is indexed. */
export interface IndexMetrics {
  count(block: RosettaBlock): void;
  /** A block's operations did not add up to minted - burned. */
  conservationFailed(): void;
  /** Begins to export the gauges. */
  observe(index: ObservedIndex): void;
}

/** Makes the metrics. */
export function createIndexMetrics(metrics: Metrics): IndexMetrics {
  const blocks = metrics.counter("causeway_sidecar_blocks_indexed_total", "Blocks indexed.");
  const operations = metrics.counter(
    "causeway_sidecar_operations_indexed_total",
    "Operations of indexed blocks.",
  );
  const failures = metrics.counter(
    "causeway_sidecar_conservation_failures_total",
    "Times a block's operations did not add up to minted - burned; it was not served.",
  );
  return {
    count({ transactions }) {
      blocks.inc();
      operations.inc(transactions.reduce((count, tx) => count + tx.operations.length, 0));
    },
    conservationFailed: () => failures.inc(),
    observe: (index) => observe(metrics, index),
  };
}

function observe(metrics: Metrics, { store, ledger, follower, blocks }: ObservedIndex): void {
  const gauge = (name: string, help: string, read: () => number) =>
    metrics.gauge(`causeway_sidecar_${name}`, help, [], (made) => made.set(read()));
  const tip = () => store.tip()?.index ?? -1;
  const head = () => follower.nodeHead() ?? -1;
  gauge("index_height", "Newest indexed block; -1 before genesis.", tip);
  gauge("node_height", "Newest block of the node that was seen; -1 before any.", head);
  gauge("index_lag_blocks", "Blocks that the node has and the index not yet.", () =>
    Math.max(0, head() - tip()),
  );
  gauge(
    "block_cache_hits",
    "Blocks served from memory since start.",
    () => blocks.statistics().hits,
  );
  gauge(
    "block_cache_misses",
    "Blocks read from disk or the node since start.",
    () => blocks.statistics().misses,
  );
  gauge(
    "block_cache_bytes",
    "Memory held by finished blocks, bytes.",
    () => blocks.statistics().bytes,
  );
  metrics.gauge(
    "causeway_sidecar_token_quarantined_height",
    "Block from which a token's operations are left out.",
    ["contract"],
    (made) => {
      made.reset();
      for (const [contract, { height }] of ledger.quarantines()) made.set({ contract }, height);
    },
  );
}
