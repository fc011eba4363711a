/** The node's network made of its settings, and the order in which a node joins: follow, then decide. */
import path from "node:path";
import { errorCode, errorMessage } from "../../chain/errors.js";
import { systemClock } from "../../runtime/process/clock.js";
import { formatListenAddress } from "../../runtime/config/config-values.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { NodeConfig } from "../settings/config.js";
import type { Consensus } from "../consensus/consensus.js";
import type { ConsensusEnd } from "../consensus/consensus-ports.js";
import type { EventBus } from "../view/event-bus.js";
import type { ChainView } from "../view/chain-view.js";
import type { NetworkPool } from "../mempool/pool-port.js";
import type { ProtocolHandler } from "../p2p/host.js";
import { Network } from "../p2p/network.js";
import type { NodeKey } from "../p2p/node-key.js";
import { networkSettings } from "../p2p/network-settings.js";
import { COMET_VERSION } from "../rpc/comet/routes/status.js";

/** What the network of a node is made of. */
export interface NodeNetworkParts {
  readonly home: string;
  readonly config: NodeConfig;
  readonly chainId: string;
  readonly nodeKey: NodeKey;
  readonly view: ChainView;
  readonly consensus: Consensus;
  readonly pool: NetworkPool;
  readonly bus: EventBus;
  /** Further protocols that peers may speak with this node. */
  readonly handlers?: readonly ProtocolHandler[];
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Ends the process: a loop of the network died. */
  readonly fatal: (error: unknown) => void;
}

/** Listens for peers and dials them. Throws LISTEN_FAILED, PEER_ADDRESS_INVALID. */
export async function openNetwork(parts: NodeNetworkParts): Promise<Network> {
  const { home, config, view, consensus, pool, bus, handlers = [], log, signal } = parts;
  const network = await Network.start(
    {
      ...networkSettings(config.p2p),
      key: parts.nodeKey,
      addressBookFile: path.join(home, "config", "addrbook.json"),
      moniker: config[""].moniker,
      version: COMET_VERSION,
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
      handlers,
      onFault: parts.fatal,
    },
    signal,
  );
  bus.on("pendingTransactions", (transactions) => network.onAdmitted(transactions));
  return network;
}

/** Halts as consensus' own: what is stored can still be read, and peers are helped with it. */
const READABLE_CODES: ReadonlySet<string> = new Set([
  "DECIDED_BLOCK_REFUSED",
  "UPGRADE_NEEDED",
  "VERSION_UNKNOWN",
]);

/** What consensus is run with. */
export interface ConsensusRunParts {
  readonly network: Pick<
    Network,
    "attach" | "broadcast" | "catchUp" | "detach" | "fallenBehind" | "halt" | "skipCatchUp"
  >;
  readonly consensus: Consensus;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly halt: (reason: string) => void;
  readonly fatal: (error: unknown) => void;
}

/**
 * Follows the network to its height, then takes part in deciding, and follows again when the
 * network has gone on without this node; until the signal fires. Resolves when all has ended. What
 * must not happen halts the node or, where it cannot write or a loop died, ends the process.
 */
export async function runConsensus(parts: ConsensusRunParts): Promise<void> {
  const { network, consensus, log, signal } = parts;
  try {
    do {
      // At an upgrade that this program does not know no peer has a block that it could take, and none
      // need be there for consensus to say so and halt.
      if (consensus.mayGoOn()) {
        const [mayBeFirst, provenHeight] = [consensus.decidesAlone(), consensus.provenHeight()];
        await network.catchUp({ signal, mayBeFirst, provenHeight });
      } else {
        network.skipCatchUp();
      }
    } while (await takePart(parts));
  } catch (error) {
    if (signal.aborted) return;
    log.error({ err: error }, "block production halted");
    parts.halt(errorMessage(error));
    if (!READABLE_CODES.has(errorCode(error))) parts.fatal(error);
  }
}

/** Takes part; true when that ended because the network is far ahead. */
async function takePart({ network, consensus, signal }: ConsensusRunParts): Promise<boolean> {
  const ending = new AbortController();
  const inner = AbortSignal.any([signal, ending.signal]);
  const watching = fallsBehind(network, consensus, inner);
  // Its result is awaited below, when consensus has ended in whatever way.
  void watching
    .catch(() => undefined)
    .finally(() => ending.abort(new Error("the watch has ended")));
  network.attach(consensus);
  let end: ConsensusEnd | undefined;
  try {
    end = await consensus.start(network.broadcast, inner);
    ending.abort(new Error("consensus has ended"));
    return (await watching) && end === "stopped" && !signal.aborted;
  } finally {
    // Who has halted is still of use to peers that lack its last blocks.
    if (end === "halted") network.halt();
    else network.detach();
    ending.abort(new Error("consensus has failed"));
  }
}

/** True when the node fell behind, false when the signal fired before. */
async function fallsBehind(
  network: Pick<Network, "fallenBehind">,
  consensus: Consensus,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await network.fallenBehind(consensus, signal);
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}
