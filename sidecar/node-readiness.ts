/** Whether the node behind the online server is the right one, reachable and moving, and indexed. */
import type { Height } from "../chain/hex.js";
import type { Network } from "../chain/networks.js";
import type { EvmClient } from "../rpc-client/evm-client.js";
import {
  createReadiness,
  oldBlockReason,
  otherChainReason,
} from "../rpc-client/readiness/node-readiness.js";
import type { Clock } from "../runtime/process/clock.js";
import type { Readiness } from "../runtime/http/http-server.js";
import type { IndexFollower } from "./index/follower.js";
import { LIGHT_READ_TIMEOUT_MS } from "./index/head-ticker.js";
import type { IndexReader } from "./index/index-reader.js";

/** What the check needs. */
export interface NodeReadinessOptions {
  readonly network: Network;
  readonly client: EvmClient;
  readonly index: Pick<IndexReader, "tip">;
  readonly follower: Pick<IndexFollower, "halted" | "fault">;
  readonly maxBlockAgeMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Blocks that may be missing from the index of a server that keeps up. */
const MAX_LAG_BLOCKS = 16;

/** The check behind /ready. */
export function createNodeReadiness(options: NodeReadinessOptions): () => Promise<Readiness> {
  return createReadiness(() => reasonNotReady(options));
}

/** One sentence, or undefined when all is well. */
async function reasonNotReady(options: NodeReadinessOptions): Promise<string | undefined> {
  const { network, client, follower, signal } = options;
  const light = { signal, timeoutMs: LIGHT_READ_TIMEOUT_MS };
  const [chainId, isSyncing, head] = await Promise.all([
    client.chainId(light),
    client.isSyncing(light),
    client.getBlockHeader("latest", light),
  ]);
  const wrong = otherChainReason(chainId, network) ?? follower.halted();
  if (wrong !== undefined) return wrong;
  if (isSyncing) return "the node is behind the chain";
  if (head === undefined) return "the node has no block";
  return oldBlockReason(head, options) ?? indexReason(options, head.height);
}

/** Why the index cannot answer for the node's newest block. */
function indexReason({ index, follower }: NodeReadinessOptions, head: Height): string | undefined {
  const tip = index.tip()?.index;
  if (tip === undefined) return follower.fault() ?? "no block is indexed yet";
  if (tip > head) return `the node is at block ${head}, the index already at ${tip}`;
  if (head - tip <= MAX_LAG_BLOCKS) return undefined;
  const fault = follower.fault();
  const why = fault === undefined ? "" : `: ${fault}`;
  return `the index is at block ${tip}, the node at ${head}${why}`;
}
