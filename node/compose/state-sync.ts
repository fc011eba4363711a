/**
 * A node that joins by state sync: it starts with nothing but its servers and its network, restores
 * a state, and starts again on it inside the same process.
 */
import path from "node:path";
import { systemClock } from "../../runtime/process/clock.js";
import type { Service } from "../../runtime/process/lifecycle.js";
import { consensusParamsOf } from "../settings/genesis.js";
import { verifySignature } from "../../chain/consensus/ed25519.js";
import { createGenesisBlock } from "../blocks/genesis-block.js";
import { JoiningLife } from "./joining-life.js";
import { type JoiningNode, type NodeOptions, startNode } from "./node.js";
import type { PeerLink } from "../p2p/peers/peer-link.js";
import { rpcProvider } from "../statesync/light/light-rpc.js";
import { snapshotSource } from "../statesync/snapshot/snapshot-protocol.js";
import { StateSync } from "../statesync/state-sync.js";
import { type StateSyncSettings, stateSyncSettings } from "../settings/state-sync-config.js";
import { StateSyncFolders } from "../statesync/state-sync-folders.js";
import type { SnapshotPeer } from "../statesync/state-sync-offers.js";

/** Starts a node, by state sync where its settings say so and it has no blocks. */
export async function startJoiningNode(options: NodeOptions): Promise<readonly Service[]> {
  const folders = new StateSyncFolders(path.join(options.home, "data"));
  if (await folders.adopt()) options.log.info("a restored state takes the place of the chain");
  const settings = stateSyncSettings(options.config.statesync);
  if (await folders.dropUselessChunks({ isOn: settings !== undefined })) {
    options.log.info("what state sync had fetched is deleted: it is not needed any more");
  }
  if (settings === undefined) return startNode(options);
  const life = new JoiningLife({
    startNode: (own) => startNode({ ...options, ...own }),
    restore: (node) => stateSync(options, { node, settings, folders }).run(node.signal),
    adopt: () => folders.adopt(),
    ...options,
  });
  await life.start();
  return [{ name: "node", stop: () => life.stop() }];
}

function stateSync(
  { genesis, log }: NodeOptions,
  parts: {
    readonly node: JoiningNode;
    readonly settings: StateSyncSettings;
    readonly folders: StateSyncFolders;
  },
): StateSync {
  const { network } = parts.node;
  const { evidenceMaxAgeBlocks, evidenceMaxAgeNs } = consensusParamsOf(genesis.params);
  return new StateSync({
    ...parts,
    providers: parts.settings.servers.map(rpcProvider),
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
