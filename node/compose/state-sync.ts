/**
 * A node that joins by state sync: it starts with nothing but its servers and its network, restores
 * a state, and starts again on it inside the same process.
 */
import { setMaxListeners } from "node:events";
import path from "node:path";
import { errorCode, errorMessage } from "../../chain/errors.js";
import { systemClock } from "../../runtime/process/clock.js";
import type { Service } from "../../runtime/process/lifecycle.js";
import { consensusParamsOf } from "../settings/genesis.js";
import { verifySignature } from "../../chain/consensus/ed25519.js";
import { createGenesisBlock } from "../blocks/genesis-block.js";
import { type JoiningNode, type NodeOptions, startNode } from "./node.js";
import type { PeerLink } from "../p2p/peers/peer-link.js";
import { rpcProvider } from "../statesync/light/light-rpc.js";
import { snapshotSource } from "../statesync/snapshot/snapshot-protocol.js";
import { StateSync } from "../statesync/state-sync.js";
import { type StateSyncSettings, stateSyncSettings } from "../settings/state-sync-config.js";
import { StateSyncFolders } from "../statesync/state-sync-folders.js";
import type { SnapshotPeer } from "../statesync/state-sync-offers.js";

/** Codes of faults that somebody must look at: trying again would mean trusting somebody less. */
const HALTING_CODES = new Set([
  "LIGHT_DIVERGENCE",
  "TRUST_HASH_MISMATCH",
  "LIGHT_EXPIRED",
  "LIGHT_INVALID",
  "LIGHT_UNTRUSTED",
]);

/** Starts a node, by state sync where its settings say so and it has no blocks. */
export async function startJoiningNode(options: NodeOptions): Promise<readonly Service[]> {
  const folders = new StateSyncFolders(path.join(options.home, "data"));
  if (await folders.adopt()) options.log.info("a restored state takes the place of the chain");
  const settings = stateSyncSettings(options.config.statesync);
  if (settings === undefined) return startNode(options);
  const life = new JoiningLife(options, settings, folders);
  await life.start();
  return [{ name: "node", stop: () => life.stop() }];
}

/** The first life of a node, without a chain, and the second, on the restored one. */
class JoiningLife {
  private readonly ending = new AbortController();
  private services: Promise<readonly Service[]> = Promise.resolve([]);
  private restarting: Promise<void> = Promise.resolve();

  constructor(
    private readonly options: NodeOptions,
    private readonly settings: StateSyncSettings,
    private readonly folders: StateSyncFolders,
  ) {}

  async start(): Promise<void> {
    const signal = AbortSignal.any([this.options.signal, this.ending.signal]);
    setMaxListeners(0, signal);
    const join = (node: JoiningNode) => this.join(node);
    this.services = startNode({ ...this.options, signal, join });
    await this.services;
  }

  async stop(): Promise<void> {
    await this.restarting;
    await stopAll(await this.services);
  }

  /** Instead of following blocks. */
  private async join(node: JoiningNode): Promise<void> {
    const { log, fatal } = this.options;
    const { signal } = node;
    try {
      const height = await this.sync(node).run(signal);
      log.info({ height }, "the node starts again on the restored state");
      // Not here: what is stopped waits for this to end.
      this.restarting = Promise.resolve().then(() => this.restart());
    } catch (error) {
      if (signal.aborted) return;
      log.error({ err: error }, "state sync failed");
      const isForPeople = HALTING_CODES.has(errorCode(error));
      if (isForPeople) node.halt(`state sync failed: ${errorMessage(error)}`);
      else fatal(error);
    }
  }

  private sync({ network }: JoiningNode): StateSync {
    const { genesis, log } = this.options;
    const { evidenceMaxAgeBlocks, evidenceMaxAgeNs } = consensusParamsOf(genesis.params);
    return new StateSync({
      settings: this.settings,
      folders: this.folders,
      providers: this.settings.servers.map(rpcProvider),
      verifySignature,
      chainId: genesis.cosmosChainId,
      genesisBlock: createGenesisBlock(genesis),
      window: { maxAgeBlocks: evidenceMaxAgeBlocks, maxAgeNs: evidenceMaxAgeNs },
      peers: peersOf(() => network.links()),
      report: (nodeId, offence) => network.report(nodeId, offence),
      clock: systemClock,
      log,
    });
  }

  private async restart(): Promise<void> {
    const { log, signal, fatal } = this.options;
    try {
      this.ending.abort(new DOMException("the node starts again", "AbortError"));
      const services = await this.services;
      this.services = Promise.resolve([]);
      await stopAll(services);
      await this.folders.adopt();
      if (signal.aborted) return;
      this.services = startNode(this.options);
      await this.services;
    } catch (error) {
      log.error({ err: error }, "the node cannot start on the restored state");
      fatal(error);
    }
  }
}

async function stopAll(services: readonly Service[]): Promise<void> {
  for (const service of services.toReversed()) await service.stop();
}

/** The same peer for the same connection. */
function peersOf(links: () => readonly PeerLink[]): () => readonly SnapshotPeer[] {
  const known = new WeakMap<PeerLink, SnapshotPeer>();
  return () =>
    links().map((link) => {
      const peer = known.get(link) ?? {
        nodeId: link.nodeId,
        source: snapshotSource(link),
        signal: link.signal,
      };
      known.set(link, peer);
      return peer;
    });
}
