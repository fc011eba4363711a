/** Whether the node behind the explorer is the right one, reachable and moving. */
import type { Network } from "../../chain/networks.js";
import {
  createReadiness,
  oldBlockReason,
  otherChainReason,
} from "../../rpc-client/readiness/node-readiness.js";
import type { Readiness } from "../../runtime/http/http-server.js";
import type { Clock } from "../../runtime/process/clock.js";
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

/** The check behind /ready. */
export function createNodeReadiness(options: NodeReadinessOptions): () => Promise<Readiness> {
  const { chain, network, signal } = options;
  return createReadiness(async () => {
    const [chainId, head] = await Promise.all([
      chain.evm.chainId({ signal }),
      chain.head({ signal }),
    ]);
    return otherChainReason(chainId, network) ?? oldBlockReason(head, options);
  });
}
