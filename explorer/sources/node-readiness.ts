/** Whether the node behind the explorer is the right one, reachable and moving. */
import {
  blockAgeSeconds,
  blockAgeText,
  isBlockAgeBeyond,
} from "../../chain/consensus/block-age.js";
import { errorMessage } from "../../chain/errors.js";
import type { Network } from "../../chain/networks.js";
import type { Readiness } from "../../runtime/http/http-server.js";
import type { Clock } from "../../runtime/process/clock.js";
import { shareUnderway } from "../../runtime/process/task.js";
import type { ChainSource } from "./chain-source.js";

/** What the check needs. */
export interface NodeReadinessOptions {
  readonly network: Pick<Network, "evmChainId">;
  readonly chain: ChainSource;
  readonly maxBlockAgeMs: number;
  readonly clock: Clock;
  /** The process's signal. */
  readonly signal: AbortSignal;
}

/** The check behind /ready. Block age is the sign that cannot deceive; faults of the node are reasons. */
export function createNodeReadiness(options: NodeReadinessOptions): () => Promise<Readiness> {
  // Anybody may ask, as often as he likes: one by one these questions would fill the client of all pages.
  return shareUnderway(async () => {
    const reason = await reasonNotReady(options).catch(errorMessage);
    return reason === undefined ? { ready: true } : { ready: false, reason };
  });
}

async function reasonNotReady(options: NodeReadinessOptions): Promise<string | undefined> {
  const { chain, network, clock, maxBlockAgeMs, signal } = options;
  const [chainId, head] = await Promise.all([
    chain.evm.chainId({ signal }),
    chain.head({ signal }),
  ]);
  if (chainId !== network.evmChainId) {
    return `the node is on chain ${chainId}, not ${network.evmChainId}`;
  }
  const ageSeconds = blockAgeSeconds(head.timestampSeconds * 1_000, clock.nowMs());
  if (!isBlockAgeBeyond(ageSeconds, maxBlockAgeMs / 1_000)) return undefined;
  return `the newest block (${head.height}) is ${blockAgeText(ageSeconds)}`;
}
