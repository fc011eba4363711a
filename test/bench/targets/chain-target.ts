/** A chain under test, ours or a peer's. */
import type { BenchProcess } from "../processes.js";

/** A running chain that answers JSON-RPC. */
export interface ChainTarget {
  readonly name: string;
  /** JSON-RPC over HTTP; of a network, the node whose blocks are watched. */
  readonly url: string;
  /** Every node of a network: transactions are spread over them. `url` alone when absent. */
  readonly urls?: readonly string[];
  readonly process: BenchProcess;
  /** Where it shows its metrics, ours only. */
  readonly metricsUrl?: string;
  /** Rules of the chain that bound what a block can hold; undefined: no bound worth naming. */
  readonly limits:
    | {
        readonly blockGas: bigint;
        /** Compute units of a block. */
        readonly computeNs: number;
        readonly blockIntervalMs: number;
      }
    | undefined;
  stop(): Promise<void>;
}
