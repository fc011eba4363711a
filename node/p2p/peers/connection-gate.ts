/**
 * Decides which connections come up: what may be dialled, who may answer, and which of two
 * connections between the same nodes stays. Every check is made before a byte of ours is spoken
 * beyond the handshake.
 */
import type { ConnectionGater, MultiaddrConnection, PeerId } from "@libp2p/interface";
import { P2pError, type P2pErrorCode } from "../p2p-error.js";
import { type NodeId, nodeIdOf } from "../node-key.js";
import { PendingInbound } from "./pending-inbound.js";

/** A connection that is up, as far as the gate is concerned. */
export interface GateLink {
  readonly direction: "inbound" | "outbound";
  close(reason: string): void;
}

/** What the gate asks the host. */
export interface GatePorts {
  readonly ownId: NodeId;
  linkTo(nodeId: NodeId): GateLink | undefined;
  isBanned(nodeId: NodeId): boolean;
  /** Whether there is room for one more that dialled in; may make it. @param ip "" for none */
  hasInboundRoom(nodeId: NodeId, ip: string): boolean;
  /** The last step of every connection that comes up. */
  onUpgraded(nodeId: NodeId, connection: MultiaddrConnection): void;
}

interface PendingDial {
  readonly expectedId: NodeId | undefined;
  refusal: P2pError | undefined;
}

/** libp2p's gater, plus the list of the dials that we make ourselves. */
export class ConnectionGate implements ConnectionGater {
  private readonly dials = new Map<string, PendingDial>();
  private readonly pending = new PendingInbound();

  constructor(private readonly ports: GatePorts) {}

  /**
   * Lets `dial` connect to exactly this address, if the answering key hashes to `expectedId`.
   * @throws PEER_REFUSED, WRONG_NODE_ID, or what `dial` throws
   */
  async during<T>(
    address: string,
    expectedId: NodeId | undefined,
    dial: () => Promise<T>,
  ): Promise<T> {
    if (this.dials.has(address)) {
      throw new P2pError("PEER_REFUSED", "the address is being dialled already");
    }
    const pending: PendingDial = { expectedId, refusal: undefined };
    this.dials.set(address, pending);
    try {
      return await dial();
    } catch (error) {
      throw pending.refusal ?? error;
    } finally {
      this.dials.delete(address);
    }
  }

  /** Dials by peer id are libp2p's own ideas; ours name an address. */
  denyDialPeer = (): boolean => true;

  /** Only what is being dialled on purpose, never what a peer announced. */
  denyDialMultiaddr = (address: { toString(): string }): boolean =>
    !this.dials.has(address.toString());

  /** Announced addresses are not even remembered. */
  filterMultiaddrForPeer = (): boolean => false;

  /** Somebody dials in: may he try to prove a key? */
  denyInboundConnection = (connection: MultiaddrConnection): boolean => {
    const name = connection.remoteAddr.toString();
    // Of one that has ended nobody would tell again.
    if (connection.status !== "open") return true;
    if (!this.pending.begin(name, ipOf(connection.remoteAddr))) return true;
    connection.addEventListener("close", () => this.pending.end(name), { once: true });
    return false;
  };

  /** The key is proved: is it the dialled one? */
  denyOutboundEncryptedConnection = (peer: PeerId, connection: MultiaddrConnection): boolean => {
    const pending = this.dials.get(connection.remoteAddr.toString());
    if (pending === undefined) return true;
    const refusal = this.outboundRefusal(nodeIdOfPeer(peer), pending.expectedId);
    if (refusal === undefined) return false;
    pending.refusal = new P2pError(refusal.code, refusal.message);
    return true;
  };

  /** The key is proved: may it come in? */
  denyInboundEncryptedConnection = (peer: PeerId, connection: MultiaddrConnection): boolean => {
    const nodeId = nodeIdOfPeer(peer);
    if (nodeId === undefined || this.ports.isBanned(nodeId)) return true;
    const existing = this.ports.linkTo(nodeId);
    if (existing === undefined) {
      return !this.ports.hasInboundRoom(nodeId, ipOf(connection.remoteAddr));
    }
    // Two nodes that dial each other at once keep the connection that the lower id dialled. A
    // second one in the same direction means that the peer has given up the first.
    if (existing.direction === "outbound" && this.ports.ownId < nodeId) return true;
    existing.close("replaced by a newer connection");
    return false;
  };

  /** Called last, with the transport of the connection. */
  denyInboundUpgradedConnection = (peer: PeerId, connection: MultiaddrConnection): boolean => {
    this.pending.end(connection.remoteAddr.toString());
    return this.finish(peer, connection);
  };

  /** Called last, with the transport of the connection. */
  denyOutboundUpgradedConnection = (peer: PeerId, connection: MultiaddrConnection): boolean =>
    this.finish(peer, connection);

  private finish(peer: PeerId, connection: MultiaddrConnection): boolean {
    const nodeId = nodeIdOfPeer(peer);
    if (nodeId === undefined) return true;
    this.ports.onUpgraded(nodeId, connection);
    return false;
  }

  private outboundRefusal(
    nodeId: NodeId | undefined,
    expectedId: NodeId | undefined,
  ): { code: P2pErrorCode; message: string } | undefined {
    if (nodeId === undefined || (expectedId !== undefined && nodeId !== expectedId)) {
      return { code: "WRONG_NODE_ID", message: "another node answered at the address" };
    }
    if (this.ports.isBanned(nodeId)) return { code: "PEER_REFUSED", message: "the peer is banned" };
    const existing = this.ports.linkTo(nodeId);
    if (existing === undefined) return undefined;
    if (existing.direction === "outbound" || nodeId < this.ports.ownId) {
      return { code: "PEER_REFUSED", message: "the peer is connected already" };
    }
    existing.close("replaced by the connection that this node dialled");
    return undefined;
  }
}

/** Node id of a libp2p peer; undefined unless its key is ed25519. */
export function nodeIdOfPeer(peer: PeerId): NodeId | undefined {
  return peer.type === "Ed25519" ? nodeIdOf(peer.publicKey.raw) : undefined;
}

/** IP address of the other end; "" where that has none. */
export function ipOf(address: MultiaddrConnection["remoteAddr"]): string {
  return address.getComponents().find(({ name }) => /^ip[46]$/.test(name))?.value ?? "";
}
