/** Whether the node behind the online server is the right one, reachable and moving, and indexed. */
import { blockAgeSeconds, blockAgeText, isBlockAgeBeyond } from "../chain/consensus/block-age.js";
import { errorMessage } from "../chain/errors.js";
import type { Height } from "../chain/hex.js";
import type { Network } from "../chain/networks.js";
import type { EvmClient } from "../rpc-client/evm-client.js";
import type { Clock } from "../runtime/process/clock.js";
import { shareUnderway } from "../runtime/process/task.js";
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

/** The check behind /ready; faults of the node are reasons, not errors. */
export function createNodeReadiness(options: NodeReadinessOptions): () => Promise<Readiness> {
  // Anybody may ask, as often as he likes: one by one these questions would fill the client of the index.
  return shareUnderway(async () => {
    const reason = await reasonNotReady(options).catch(errorMessage);
    return reason === undefined ? { ready: true } : { ready: false, reason };
  });
}

/** One sentence, or undefined when all is well. Block age is the signal that cannot deceive. */
async function reasonNotReady(options: NodeReadinessOptions): Promise<string | undefined> {
  const { network, client, clock, maxBlockAgeMs, follower, signal } = options;
  const light = { signal, timeoutMs: LIGHT_READ_TIMEOUT_MS };
  const [chainId, isSyncing, head] = await Promise.all([
    client.chainId(light),
    client.isSyncing(light),
    client.getBlockHeader("latest", light),
  ]);
  if (chainId !== network.evmChainId) {
    return `the node is on chain ${chainId}, not ${network.evmChainId}`;
  }
  const halted = follower.halted();
  if (halted !== undefined) return halted;
  if (isSyncing) return "the node is behind the chain";
  if (head === undefined) return "the node has no block";
  const ageSeconds = blockAgeSeconds(head.timestampSeconds * 1_000, clock.nowMs());
  if (isBlockAgeBeyond(ageSeconds, maxBlockAgeMs / 1_000)) {
    return `the newest block (${head.height}) is ${blockAgeText(ageSeconds)}`;
  }
  return indexReason(options, head.height);
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
