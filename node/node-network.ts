/** The node's network made of its settings, and the order in which a node joins: follow, then decide. */
import path from "node:path";
import { errorMessage } from "../chain/errors.js";
import { systemClock } from "../runtime/clock.js";
import { formatListenAddress } from "../runtime/config-values.js";
import type { Logger } from "../runtime/logger.js";
import type { NodeConfig } from "./config.js";
import type { Consensus } from "./consensus/consensus.js";
import type { EventBus } from "./event-bus.js";
import type { ChainView } from "./chain-view.js";
import type { TransactionPool } from "./mempool/pool-port.js";
import { Network } from "./p2p/network.js";
import type { NodeKey } from "./p2p/node-key.js";
import { networkSettings } from "./p2p/p2p-config.js";
import { NODE_VERSION } from "./servers.js";

/** What the network of a node is made of. */
export interface NodeNetworkParts {
  readonly home: string;
  readonly config: NodeConfig;
  readonly chainId: string;
  readonly nodeKey: NodeKey;
  readonly view: ChainView;
  readonly consensus: Consensus;
  readonly pool: TransactionPool;
  readonly bus: EventBus;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Ends the process: a loop of the network died. */
  readonly fatal: (error: unknown) => void;
}

/** Listens for peers and dials them. Throws LISTEN_FAILED, PEER_ADDRESS_INVALID. */
export async function openNetwork(parts: NodeNetworkParts): Promise<Network> {
  const { home, config, view, consensus, pool, bus, log, signal } = parts;
  const network = await Network.start(
    {
      ...networkSettings(config.p2p),
      key: parts.nodeKey,
      addressBookFile: path.join(home, "config", "addrbook.json"),
      moniker: config[""].moniker,
      version: NODE_VERSION,
      rpcAddress: formatListenAddress(config.rpc.laddr, "tcp://"),
      chainId: parts.chainId,
      genesisHash: view.genesis().block.hash,
    },
    {
      blocks: consensus,
      pool,
      clock: systemClock,
      log,
      random: Math.random,
      onFault: parts.fatal,
    },
    signal,
  );
  bus.on("pendingTransactions", (transactions) => network.onAdmitted(transactions));
  return network;
}

/**
 * Follows the network to its height, then takes part in deciding until the signal fires; resolves
 * when that has ended. What must not happen halts the node or ends the process.
 */
export async function runConsensus(parts: {
  readonly network: Network;
  readonly consensus: Consensus;
  /** Whether this node may be the first of its network: it has a vote in the next height. */
  readonly mayBeFirst: () => boolean;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly halt: (reason: string) => void;
  readonly fatal: (error: unknown) => void;
}): Promise<void> {
  const { network, consensus, log, signal } = parts;
  try {
    await network.catchUp({ signal, mayBeFirst: parts.mayBeFirst() });
    network.attach(consensus);
    await consensus.start(network.broadcast, signal);
  } catch (error) {
    if (signal.aborted) return;
    log.error({ err: error }, "block production failed");
    parts.halt(errorMessage(error));
    parts.fatal(error);
  } finally {
    network.detach();
  }
}
