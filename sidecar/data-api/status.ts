/** /network/status: where the index stands, and how far the node is. */
import type { Height } from "../../chain/hex.js";
import type { Network } from "../../chain/networks.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { HttpRoute } from "../../runtime/http/http-route.js";
import { toRoute } from "../rosetta/endpoint.js";
import { toSidecarError } from "../rosetta/errors.js";
import type { BlockIdentifier } from "../rosetta/identifiers.js";
import type { IndexFollower } from "../index/follower.js";
import { LIGHT_READ_TIMEOUT_MS } from "../index/head-ticker.js";
import type { IndexReader } from "../index/index-reader.js";
import { oldestOf } from "../index/missing-block.js";
import type { BlockSource } from "./block-source.js";

/** What the route reads. */
export interface StatusRouteOptions {
  readonly network: Network;
  readonly client: Pick<EvmClient, "isSyncing" | "oldestHeight">;
  readonly source: Pick<BlockSource, "tip" | "genesis" | "block" | "resolve" | "kept">;
  readonly index: Pick<IndexReader, "tip">;
  readonly follower: Pick<IndexFollower, "nodeHead">;
}

/** The route. While the index catches up it tells how far it is; everything up to there is served. */
export function statusRoutes(options: StatusRouteOptions): HttpRoute[] {
  const { network, client, source, index, follower } = options;
  const status = {
    path: "/network/status",
    fields: ["metadata"],
    async handler(_fields: unknown, { signal }: { readonly signal: AbortSignal }) {
      const light = { signal, timeoutMs: LIGHT_READ_TIMEOUT_MS };
      const [{ tip, isBehind }, isSyncing, oldestHeight] = await Promise.all([
        newest(source, index),
        client.isSyncing(light),
        oldestOf(client, light),
      ]);
      const genesis = await source.genesis();
      const { timestampMs } = await source.block(tip);
      return {
        body: {
          current_block_identifier: tip,
          current_block_timestamp: timestampMs,
          genesis_block_identifier: genesis,
          oldest_block_identifier: await oldestServed(source, oldestHeight, tip),
          sync_status: {
            current_index: tip.index,
            target_index: Math.max(tip.index, follower.nodeHead() ?? 0),
            stage: isSyncing ? "catching up" : isBehind ? "indexing" : "following",
            synced: !isSyncing && !isBehind,
          },
          peers: [],
        },
      };
    },
  };
  return [toRoute(status, network)];
}

/**
 * The oldest block that can be asked for, with balances after it. A reply that was dropped is made again
 * of the state before the block as well, which the node's oldest one has not.
 */
async function oldestServed(
  source: Pick<BlockSource, "resolve" | "kept">,
  oldestHeight: Height,
  tip: BlockIdentifier,
): Promise<BlockIdentifier> {
  const index = Math.min(oldestHeight, tip.index);
  const oldest = await source.resolve({ index, hash: undefined });
  if (index === 0 || index === tip.index || source.kept(oldest) !== undefined) return oldest;
  return source.resolve({ index: index + 1, hash: undefined });
}

/** The tip as new as the node's; where the index is far behind, the tip that it has. */
async function newest(
  source: StatusRouteOptions["source"],
  index: StatusRouteOptions["index"],
): Promise<{ readonly tip: BlockIdentifier; readonly isBehind: boolean }> {
  try {
    return { tip: await source.tip(), isBehind: false };
  } catch (error) {
    const tip = index.tip();
    const { code } = toSidecarError(error);
    const isIndexFault = code === "INDEX_BEHIND" || code === "INDEX_WRITE_FAILED";
    if (tip === undefined || !isIndexFault) throw error;
    return { tip, isBehind: true };
  }
}
