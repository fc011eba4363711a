/** The sidecar's index, put together: what is written, what follows the node, what is read. */
import type { Network } from "../../chain/networks.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { Metrics } from "../../runtime/process/metrics.js";
import { SidecarError } from "../rosetta/errors.js";
import type { TokenRegistry } from "../rosetta/token-registry.js";
import { IndexFollower } from "./follower.js";
import { IndexedBlocks } from "./indexed-blocks.js";
import { createIndexMetrics } from "./index-metrics.js";
import { IndexStore } from "./index-store.js";
import { Indexer } from "./indexer.js";
import { TokenLedger } from "./tokens/token-ledger.js";

/** Settings of the index. */
export interface ChainIndexOptions {
  /** `<home>/data/sidecar`; made where it is missing. */
  readonly folder: string;
  readonly network: Network;
  readonly client: EvmClient;
  readonly registry: TokenRegistry;
  /** Bound of finished blocks in memory. */
  readonly cacheBytes: number;
  /** Bound of finished blocks on disk. */
  readonly storedBlocksBytes: number;
  /** Up to so many holders of a token are checked in every block that touches it. */
  readonly verifyHolders: number;
  /** Throws where a reply of /block is not as the API's description says. */
  readonly checkReply: (body: unknown) => void;
  readonly log: Logger;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** The process's signal: ends following. */
  readonly signal: AbortSignal;
  /** See `FollowerOptions`. */
  readonly maxWaitMs?: number;
}

/** An index: `follower.open()`, then `follower.run()`, then reads; `store.close()` behind all of them. */
export interface ChainIndex {
  readonly store: IndexStore;
  readonly blocks: IndexedBlocks;
  readonly follower: IndexFollower;
}

/** Puts an index together; nothing is opened yet. */
export function createChainIndex(options: ChainIndexOptions): ChainIndex {
  const { client, registry, metrics } = options;
  const store = new IndexStore(options.folder);
  const ledger = new TokenLedger(store);
  const blocks = new IndexedBlocks({ ...options, store, ledger });
  const counters = createIndexMetrics(metrics);
  const indexer = new Indexer({
    ...options,
    store,
    ledger,
    onIndexed(indexed) {
      for (const { block, encoded } of indexed) {
        blocks.keep(encoded);
        counters.count(block);
      }
      follower.onIndexed();
    },
  });
  const counting = {
    indexTo: (...parameters: Parameters<Indexer["indexTo"]>) =>
      indexer.indexTo(...parameters).catch((error: unknown) => {
        const isUnbalanced = error instanceof SidecarError && error.code === "JOURNAL_INCONSISTENT";
        if (isUnbalanced) counters.conservationFailed();
        throw error;
      }),
  };
  const follower = new IndexFollower({
    ...options,
    client,
    registry,
    store,
    ledger,
    indexer: counting,
  });
  counters.observe({ store, ledger, follower, blocks });
  return { store, blocks, follower };
}
