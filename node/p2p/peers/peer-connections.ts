/** How many connections the network of peers has at most. */
import { mostPending } from "./pending-inbound.js";

/** Handshakes and replaced connections for a moment exist beside the peers. */
const CONNECTION_SLACK = 32;

/** Who may be connected. */
export interface PeerLimits {
  readonly maxInboundPeers: number;
  readonly maxOutboundPeers: number;
  /** Persistent and unconditional peers, who come in beyond the limits. */
  readonly reservedCount: number;
}

/** Connections whose other end has proved a key. */
export function mostConnections(limits: PeerLimits): number {
  return limits.maxInboundPeers + limits.maxOutboundPeers + limits.reservedCount + CONNECTION_SLACK;
}

/**
 * Files that all of them and the handshakes of strangers take.
 * @param openFiles that the process may have open
 */
export function mostPeerFiles(limits: PeerLimits, openFiles: number): number {
  return mostConnections(limits) + mostPending(openFiles);
}
