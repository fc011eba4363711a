/** Bounds the connections of the node's servers by the files that the process may have open. */
import { openFileLimit, RESERVED_FILES } from "../../runtime/files/open-file-limit.js";
import type { Logger } from "../../runtime/process/logger.js";
import { mostPeerFiles, type PeerLimits } from "../p2p/peers/peer-connections.js";
import { networkSettings } from "../p2p/network-settings.js";
import {
  type ConnectionBounds,
  connectionBounds,
  USUAL_CONNECTIONS,
} from "../rpc/connection-bounds.js";
import type { AppConfig, NodeConfig } from "../settings/config.js";
import { storeFiles } from "../store/database.js";

function peerLimits({ p2p }: NodeConfig): PeerLimits {
  const settings = networkSettings(p2p);
  const reservedCount = settings.persistentPeers.length + settings.unconditionalPeerIds.length;
  return { ...settings, reservedCount };
}

/** What decides about the bounds. */
export interface ConnectionSettings {
  readonly config: NodeConfig;
  readonly app: AppConfig;
  readonly log: Pick<Logger, "warn">;
}

/**
 * The bounds of all servers; says so where they are below the usual ones.
 * @param limit files that the process may have open
 */
export function serverConnections(
  { config, app, log }: ConnectionSettings,
  limit = openFileLimit(),
): ConnectionBounds {
  const wanted = {
    ...USUAL_CONNECTIONS,
    rest: app.api.enable ? app.api["max-open-connections"] : 0,
    grpc: app.grpc.enable ? app.grpc["max-open-connections"] : 0,
    metrics: config.instrumentation.prometheus ? USUAL_CONNECTIONS.metrics : 0,
  };
  const taken =
    storeFiles(app.store["open-files"], limit) +
    mostPeerFiles(peerLimits(config), limit) +
    RESERVED_FILES;
  const bounds = connectionBounds(wanted, limit - taken);
  if (bounds !== wanted) {
    log.warn(
      { openFileLimit: limit, connections: bounds },
      "the limit of open files is low: the servers take fewer connections (ulimit -n)",
    );
  }
  return bounds;
}
