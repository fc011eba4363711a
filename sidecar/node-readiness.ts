/** Whether the node behind the online server is the right one, reachable and moving. */
import { errorMessage } from "../chain/errors.js";
import type { Network } from "../chain/networks.js";
import type { EvmClient } from "../rpc-client/evm-client.js";
import type { Clock } from "../runtime/clock.js";
import type { Readiness } from "../runtime/http-server.js";

/** What the check needs. */
export interface NodeReadinessOptions {
  readonly network: Network;
  readonly client: EvmClient;
  readonly maxBlockAgeMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** The check behind /ready; faults of the node are reasons, not errors. */
export function createNodeReadiness(options: NodeReadinessOptions): () => Promise<Readiness> {
  return async () => {
    const reason = await reasonNotReady(options).catch(errorMessage);
    return reason === undefined ? { ready: true } : { ready: false, reason };
  };
}

/** One sentence, or undefined when all is well. Block age is the signal that cannot deceive. */
async function reasonNotReady(options: NodeReadinessOptions): Promise<string | undefined> {
  const { network, client, clock, maxBlockAgeMs, signal } = options;
  const [chainId, isSyncing, head] = await Promise.all([
    client.chainId({ signal }),
    client.isSyncing({ signal }),
    client.getBlockHeader("latest", { signal }),
  ]);
  if (chainId !== network.evmChainId) {
    return `the node is on chain ${chainId}, not ${network.evmChainId}`;
  }
  if (isSyncing) return "the node is behind the chain";
  if (head === undefined) return "the node has no block";
  const ageMs = clock.nowMs() - head.timestampSeconds * 1_000;
  if (ageMs > maxBlockAgeMs) {
    return `the newest block (${head.height}) is ${Math.round(ageMs / 1_000)} s old`;
  }
  return undefined;
}
