/**
 * The libp2p node: TCP, noise, yamux, identify, gossipsub. It dials exactly the addresses that it
 * is told to, knows peers by the hash of their key, and keeps one connection with each.
 */
import { generateKeyPairFromSeed } from "@libp2p/crypto/keys";
import type { GossipSub } from "@libp2p/gossipsub";
import { identify } from "@libp2p/identify";
import type { Connection, Libp2p, MultiaddrConnection, PeerId } from "@libp2p/interface";
import { noise } from "@libp2p/noise";
import { tcp } from "@libp2p/tcp";
import { multiaddr } from "@multiformats/multiaddr";
import { createLibp2p } from "libp2p";
import { errorMessage } from "../../chain/errors.js";
import type { Clock } from "../../runtime/process/clock.js";
import { formatListenAddress, type ListenAddress } from "../../runtime/config/config-values.js";
import type { Logger } from "../../runtime/process/logger.js";
import { withTimeout } from "../../runtime/process/task.js";
import { Channel } from "./channel.js";
import { AddressStrikes } from "./peers/address-strikes.js";
import { ConnectionGate, nodeIdOfPeer } from "./peers/connection-gate.js";
import { gossipService } from "./gossip/gossip-service.js";
import { boundedMuxer } from "./muxer.js";
import { type NodeId, type NodeKey } from "./node-key.js";
import { P2pError } from "./p2p-error.js";
import { multiaddrTextOf, type PeerAddress } from "./peers/peer-address.js";
import { placeFor } from "./peers/inbound-places.js";
import { mostConnections } from "./peers/peer-connections.js";
import { mostPending } from "./peers/pending-inbound.js";
import { PeerLink } from "./peers/peer-link.js";
import { type LoadLimits, MS_PER_ASKED_BYTE, MS_PER_BYTE, PeerLoad } from "./peers/peer-load.js";
import { PeerScores } from "./peers/peer-scores.js";
import { providePromiseWithResolvers } from "./promise-with-resolvers.js";
import { TrafficMeter } from "./peers/traffic-meter.js";

/** What a host is made of. */
export interface HostOptions {
  readonly key: NodeKey;
  /** Undefined: this node only dials. */
  readonly listen: ListenAddress | undefined;
  readonly maxInboundPeers: number;
  readonly maxOutboundPeers: number;
  /** Ids for which there is always room: persistent and unconditional peers. */
  readonly reservedIds: ReadonlySet<NodeId>;
  /** Topics that peers may speak about. */
  readonly topics: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
  /** Other limits of what peers may cost than the usual ones. */
  readonly loadLimits?: Partial<LoadLimits>;
}

/** How a request/response protocol is served. */
export interface ProtocolHandler {
  readonly protocol: string;
  readonly maxMessageBytes: number;
  /** Streams that one peer may have open at once. */
  readonly maxInboundStreams: number;
  /** Gets each stream that a peer opens; a rejection aborts the stream. */
  readonly serve: (link: PeerLink, channel: Channel) => Promise<void>;
}

/** Time for a connection to come up: TCP, noise and multiplexer on a slow line. */
const CONNECT_TIMEOUT_MS = 10_000;

/** Time for a peer to agree on a stream's protocol. */
const NEGOTIATION_TIMEOUT_MS = 10_000;

/**
 * Connections that one IP address may open in a second. Many nodes may live behind one address
 * (a test network on one machine, an office); each handshake costs some milliseconds.
 */
const INBOUND_PER_SECOND = 20;

/** What a stream costs that a peer opens: it is negotiated. */
const STREAM_MS = 0.3;

/** A connection before it is a link. */
interface MeasuredTransport {
  readonly meter: TrafficMeter;
  readonly transport: MultiaddrConnection;
}

type Services = { identify: unknown; gossip: GossipSub };

/** The node's end of all connections. */
export class Host {
  readonly scores: PeerScores;
  /** What peers cost this node in time. */
  readonly load: PeerLoad;
  private readonly strikes: AddressStrikes;
  private readonly links = new Map<NodeId, PeerLink>();
  /** What is under the connection that comes up next for a peer. */
  private readonly fresh = new Map<NodeId, MeasuredTransport>();
  private readonly linkListeners = new Set<(link: PeerLink) => void>();
  private readonly gate: ConnectionGate;
  private libp2p: Libp2p<Services> | undefined;
  /** What connections carried that are over. */
  private readonly past = { receivedBytes: 0, sentBytes: 0 };

  private constructor(private readonly options: HostOptions) {
    this.strikes = new AddressStrikes(options.clock);
    this.scores = new PeerScores(options.clock, options.reservedIds);
    this.load = new PeerLoad({
      clock: options.clock,
      reservedIds: options.reservedIds,
      onHoldUp: (nodeId, durationMs) => this.links.get(nodeId)?.holdUp(durationMs),
      onOverload: (nodeId) => this.scores.report(nodeId, "overload"),
      limits: options.loadLimits ?? {},
    });
    this.scores.onBan((nodeId, offence) => {
      options.log.warn({ peer: nodeId, offence }, "peer banned");
      const link = this.links.get(nodeId);
      if (link !== undefined) this.strikes.strike(nodeId, link.remoteIp);
      link?.close(`banned: ${offence}`);
    });
    this.gate = new ConnectionGate({
      ownId: options.key.nodeId,
      linkTo: (nodeId) => this.links.get(nodeId),
      isBanned: (nodeId) => this.scores.isBanned(nodeId),
      hasInboundRoom: (nodeId, ip) => this.hasInboundRoom(nodeId, ip),
      onUpgraded: (nodeId, connection) => this.measure(nodeId, connection),
    });
  }

  /** Starts the node. Throws LISTEN_FAILED, PORT_TAKEN. */
  static async start(options: HostOptions): Promise<Host> {
    providePromiseWithResolvers();
    const host = new Host(options);
    await host.open();
    return host;
  }

  /** This node's id. */
  get nodeId(): NodeId {
    return this.options.key.nodeId;
  }

  /** The gossip router. */
  get gossip(): GossipSub {
    return this.node.services.gossip;
  }

  /** Peers that are connected now. */
  peers(): readonly PeerLink[] {
    return [...this.links.values()];
  }

  /** The connection with a peer. */
  linkTo(nodeId: NodeId): PeerLink | undefined {
    return this.links.get(nodeId);
  }

  /** Bytes since the start, handshakes left out. */
  traffic(): { readonly receivedBytes: number; readonly sentBytes: number } {
    let { receivedBytes, sentBytes } = this.past;
    for (const { meter } of this.links.values()) {
      receivedBytes += meter.receivedBytes;
      sentBytes += meter.sentBytes;
    }
    return { receivedBytes, sentBytes };
  }

  /** Calls the listener with every new connection, present ones included. */
  onLink(listener: (link: PeerLink) => void): void {
    this.linkListeners.add(listener);
    for (const link of this.links.values()) listener(link);
  }

  /** Serves a protocol to all peers. */
  async handle(handler: ProtocolHandler): Promise<void> {
    const { protocol, maxMessageBytes, maxInboundStreams, serve } = handler;
    await this.node.handle(
      protocol,
      (stream, connection) => {
        const link = this.linkOf(connection);
        const channel = new Channel(stream, maxMessageBytes);
        if (link !== undefined) this.load.heard(link.nodeId, STREAM_MS);
        if (link === undefined) return channel.abort(new Error("not connected"));
        serve(link, channel).catch((error: unknown) => {
          this.options.log.debug({ peer: link.nodeId, protocol, err: error }, "stream failed");
          if (error instanceof P2pError && error.code === "PEER_PROTOCOL") {
            this.scores.report(link.nodeId, "malformed");
          }
          channel.abort(error);
        });
      },
      { maxInboundStreams },
    );
  }

  /**
   * Connects to an address.
   * @throws PEER_UNREACHABLE, WRONG_NODE_ID, PEER_REFUSED
   */
  async dial(address: PeerAddress, options: { readonly signal: AbortSignal }): Promise<PeerLink> {
    const target = multiaddr(multiaddrTextOf(address));
    const connect = async () => {
      try {
        // Never an existing connection: the address may belong to somebody else by now.
        return await withTimeout((signal) => this.node.dial(target, { signal, force: true }), {
          timeoutMs: CONNECT_TIMEOUT_MS,
          signal: options.signal,
          what: "connecting",
        });
      } catch (cause) {
        options.signal.throwIfAborted();
        throw new P2pError("PEER_UNREACHABLE", errorMessage(cause), { cause, retriable: true });
      }
    };
    const connection = await this.gate.during(target.toString(), address.nodeId, connect);
    const link = this.linkOf(connection);
    if (link === undefined) {
      throw new P2pError("PEER_UNREACHABLE", "the peer closed the connection", { retriable: true });
    }
    return link;
  }

  /** Ends all connections and stops listening. */
  async stop(): Promise<void> {
    const { libp2p } = this;
    this.linkListeners.clear();
    if (libp2p === undefined) return;
    for (const link of this.links.values()) link.close("this node stops");
    await libp2p.stop();
  }

  private get node(): Libp2p<Services> {
    if (this.libp2p === undefined) throw new P2pError("LISTEN_FAILED", "the host is not started");
    return this.libp2p;
  }

  private async open(): Promise<void> {
    const { key, listen, reservedIds, topics } = this.options;
    const listenAddresses = listen === undefined ? [] : [multiaddrTextOf(listen)];
    const libp2p = await createLibp2p<Services>({
      start: false,
      privateKey: await generateKeyPairFromSeed("Ed25519", key.seed),
      // Nothing of our own addresses goes into identify: peers are to dial what they are told.
      addresses: { listen: listenAddresses, announceFilter: () => [] },
      transports: [tcp()],
      connectionEncrypters: [noise()],
      streamMuxers: [boundedMuxer()],
      connectionGater: this.gate,
      connectionManager: {
        maxConnections: mostConnections({ ...this.options, reservedCount: reservedIds.size }),
        inboundConnectionThreshold: INBOUND_PER_SECOND,
        maxIncomingPendingConnections: mostPending(),
        inboundStreamProtocolNegotiationTimeout: NEGOTIATION_TIMEOUT_MS,
        reconnectRetries: 0,
      },
      // Sessions notice sooner that a peer has fallen silent.
      connectionMonitor: { enabled: false },
      services: { identify: identify(), gossip: gossipService(topics) },
    });
    libp2p.addEventListener("connection:open", ({ detail }) => this.onOpen(detail));
    // libp2p's own book of peers would grow with every stranger that ever came by. What it writes it may
    // write late: of who leaves while that is being judged, up to 80 KB for each key.
    const forget = (peer: PeerId) => void libp2p.peerStore.delete(peer).catch(() => undefined);
    libp2p.addEventListener("peer:disconnect", ({ detail }) => forget(detail));
    libp2p.addEventListener("peer:update", ({ detail: { peer } }) => {
      if (libp2p.getConnections(peer.id).length === 0) forget(peer.id);
    });
    this.libp2p = libp2p;
    try {
      await libp2p.start();
    } catch (cause) {
      const place = listen === undefined ? "nothing" : formatListenAddress(listen);
      // libp2p tells the faults of its listeners as one text.
      const isTaken = errorMessage(cause).includes("EADDRINUSE");
      throw isTaken
        ? new P2pError("PORT_TAKEN", `cannot listen: ${place} is taken`, { cause })
        : new P2pError("LISTEN_FAILED", `cannot listen on ${place}`, { cause });
    }
  }

  private onOpen(connection: Connection): void {
    const nodeId = nodeIdOfPeer(connection.remotePeer);
    const measured = nodeId === undefined ? undefined : this.fresh.get(nodeId);
    if (nodeId === undefined || measured === undefined) {
      return connection.abort(new Error("a connection that passed no gate"));
    }
    this.fresh.delete(nodeId);
    this.links.get(nodeId)?.close("replaced");
    const { clock } = this.options;
    const { meter } = measured;
    const link = new PeerLink({ nodeId, connection, ...measured, load: this.load, clock });
    this.links.set(nodeId, link);
    link.onClose((reason) => {
      if (this.links.get(nodeId) === link) this.links.delete(nodeId);
      this.past.receivedBytes += meter.receivedBytes;
      this.past.sentBytes += meter.sentBytes;
      // Who is banned leaves no good memory, however long it was here.
      if (!this.scores.isBanned(nodeId)) {
        this.strikes.left(nodeId, clock.monotonicMs() - link.connectedAtMs);
      }
      this.options.log.debug({ peer: nodeId, reason }, "peer disconnected");
    });
    this.options.log.debug({ peer: nodeId, direction: link.direction }, "peer connected");
    for (const listener of this.linkListeners) listener(link);
  }

  private linkOf(connection: Connection): PeerLink | undefined {
    const nodeId = nodeIdOfPeer(connection.remotePeer);
    const link = nodeId === undefined ? undefined : this.links.get(nodeId);
    return link?.isOn(connection) === true ? link : undefined;
  }

  private measure(nodeId: NodeId, connection: MultiaddrConnection): void {
    const meter = new TrafficMeter(this.options.clock, {
      onFlood: () => this.scores.report(nodeId, "flood"),
      onExpected: (sizeBytes) => this.load.forgive(nodeId, sizeBytes * MS_PER_ASKED_BYTE),
    });
    connection.addEventListener("message", ({ data }) => {
      meter.received(data.byteLength);
      this.load.heard(nodeId, data.byteLength * MS_PER_BYTE);
    });
    // Decryption and the multiplexer run inside; small frames cost more than their bytes say.
    const dispatch = connection.dispatchEvent.bind(connection);
    connection.dispatchEvent = (event) => {
      return event.type === "message"
        ? this.load.hear(nodeId, () => dispatch(event))
        : dispatch(event);
    };
    const send = connection.send.bind(connection);
    connection.send = (data) => {
      meter.sent(data.byteLength);
      // In one piece: what waits for a peer is moved by the piece, and may be thousands of small ones.
      return send(data instanceof Uint8Array ? data : data.subarray());
    };
    this.fresh.set(nodeId, { meter, transport: connection });
  }

  private hasInboundRoom(nodeId: NodeId, ip: string): boolean {
    if (this.options.reservedIds.has(nodeId)) return true;
    if (this.strikes.refuses(nodeId, ip)) return false;
    const strangers = this.peers().filter(
      ({ direction, nodeId: id }) => direction === "inbound" && !this.options.reservedIds.has(id),
    );
    if (strangers.length < this.options.maxInboundPeers) return true;
    const leaving = placeFor(ip, strangers);
    leaving?.close("made room for a peer of another network");
    return leaving !== undefined;
  }
}
