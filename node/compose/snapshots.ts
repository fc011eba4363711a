/** The node's snapshots made of its settings: written at intervals, served to peers. */
import path from "node:path";
import type { Logger } from "../../runtime/process/logger.js";
import type { AppConfig } from "../settings/config.js";
import type { CommittedView } from "../blocks/committed-view.js";
import type { EventBus } from "../view/event-bus.js";
import type { ProtocolHandler } from "../p2p/host.js";
import { SnapshotFolder } from "../statesync/snapshot/snapshot-folder.js";
import { snapshotHandler } from "../statesync/snapshot/snapshot-protocol.js";
import { SnapshotService } from "../statesync/snapshot/snapshot-service.js";
import type { OpenStores } from "../store/open-store.js";

/** What the node does with snapshots. */
export interface NodeSnapshots {
  readonly folder: SnapshotFolder;
  readonly handler: ProtocolHandler;
  /** Gives up what is being written. */
  readonly close: () => Promise<void>;
}

/** Opens the snapshots on disk, and writes further ones where the settings say so. */
export async function openSnapshots(parts: {
  readonly home: string;
  readonly app: AppConfig;
  readonly stores: OpenStores;
  readonly view: CommittedView;
  readonly bus: EventBus;
  readonly log: Logger;
  readonly signal: AbortSignal;
}): Promise<NodeSnapshots> {
  const { home, app, stores, view, bus, log, signal } = parts;
  const genesisHash = view.genesis().block.hash;
  const folder = await SnapshotFolder.open({
    folder: path.join(home, "data", "snapshots"),
    genesisHash,
    headHeight: view.head().height,
    oldestBlock: stores.base.get().base,
    log,
  });
  const service = new SnapshotService({
    folder,
    database: stores.database,
    blocks: stores.blocks,
    bus,
    genesisHash,
    intervalBlocks: app["state-sync"]["snapshot-interval"],
    keepRecent: app["state-sync"]["snapshot-keep-recent"],
    log,
    signal,
  });
  return { folder, handler: snapshotHandler(folder), close: () => service.close() };
}
