/** The node's place in the network: all parts of it, put together. */
import type { Hash32, Height } from "../../chain/hex.js";
import type { Clock } from "../../runtime/process/clock.js";
import { formatListenAddress, type ListenAddress } from "../../runtime/config/config-values.js";
import type { Logger } from "../../runtime/process/logger.js";
import { TaskGroup } from "../../runtime/process/task.js";
import type {
  BlockSyncTarget,
  ConsensusBroadcast,
  ConsensusInbox,
  HeightWitness,
} from "../consensus/consensus-ports.js";
import type { PendingTransaction } from "../view/event-bus.js";
import type { NetworkPool } from "../mempool/pool-port.js";
import { blockHandler, blockSource } from "./blocks/block-protocol.js";
import type { SyncPeer } from "./blocks/block-peer.js";
import { BlockSync, type CatchUpOptions } from "./blocks/block-sync.js";
import { ConsensusReactor } from "./gossip/consensus-reactor.js";
import { Discovery } from "./peers/discovery.js";
import { Gossip } from "./gossip/gossip.js";
import { Host, type ProtocolHandler } from "./host.js";
import { LagWatch } from "./blocks/lag-watch.js";
import type { NetworkPeer, NetworkStats, NetworkView } from "./network-port.js";
import { networkHeight } from "./peers/network-height.js";
import type { NodeId, NodeKey } from "./node-key.js";
import type { KnownPeerAddress, PeerAddress } from "./peers/peer-address.js";
import { PeerBook } from "./peers/peer-book.js";
import type { PeerLink } from "./peers/peer-link.js";
import type { Offence } from "./peers/peer-scores.js";
import type { Hello } from "./peers/peer-codec.js";
import { MAX_UNSENT_BYTES, type PeerSession, PeerSessions } from "./peers/peer-sessions.js";
import { keepConnected } from "./peers/persistent-dialer.js";
import { TransactionGossip } from "./gossip/transaction-gossip.js";

/** Who this node is and whom it talks to; the names are those of config.toml, section p2p. */
export interface NetworkOptions {
  readonly key: NodeKey;
  readonly listen: ListenAddress | undefined;
  /** What peers are told instead of the listen address, `host:port`; "" for that. */
  readonly externalAddress: string;
  /** Kept connected for ever. */
  readonly persistentPeers: readonly KnownPeerAddress[];
  /** Asked for addresses when nobody is connected, or nobody else is left to dial; only with `pex`. */
  readonly seeds: readonly PeerAddress[];
  /**
   * Whether peers beyond the persistent ones are looked for. Who asks for addresses gets them
   * either way: else nobody who knows one node of a network could join it.
   */
  readonly pex: boolean;
  /** Whether this node only collects and gives out addresses. */
  readonly seedMode: boolean;
  readonly maxInboundPeers: number;
  readonly maxOutboundPeers: number;
  /** Beside the persistent peers, those for whom there is always room. */
  readonly unconditionalPeerIds: readonly NodeId[];
  /** Those whose addresses are told to nobody. */
  readonly privatePeerIds: readonly NodeId[];
  /** Where known addresses are kept. */
  readonly addressBookFile: string | undefined;
  readonly moniker: string;
  readonly version: string;
  /** Where this node's consensus RPC listens, for `net_info` of others. */
  readonly rpcAddress: string;
  readonly chainId: string;
  readonly genesisHash: Hash32;
}

/** What the network needs of the node. */
export interface NetworkPorts {
  readonly blocks: BlockSyncTarget;
  readonly pool: NetworkPool;
  readonly clock: Clock;
  readonly log: Logger;
  /** Uniform in [0, 1). */
  random(): number;
  /** Further protocols that peers may speak with this node. */
  readonly handlers?: readonly ProtocolHandler[];
  /** Told of a loop that died: the node cannot go on. */
  onFault(error: unknown): void;
}

interface Parts {
  readonly host: Host;
  readonly sessions: PeerSessions;
  readonly gossip: Gossip;
  readonly reactor: ConsensusReactor;
  readonly transactions: TransactionGossip;
}

/** The running network. */
export class Network implements NetworkView {
  private readonly syncPeers = new WeakMap<PeerSession, SyncPeer>();
  private readonly sync: BlockSync;
  private readonly lag: LagWatch;
  /** Whether there is anybody to dial. */
  private knowsAnybody = false;

  private constructor(
    private readonly options: NetworkOptions,
    private readonly ports: NetworkPorts,
    private readonly parts: Parts,
    private readonly tasks: TaskGroup,
  ) {
    this.sync = new BlockSync({
      target: ports.blocks,
      peers: () => parts.sessions.all().map((session) => this.syncPeerOf(session)),
      report: (nodeId, offence) => parts.host.scores.report(nodeId, offence),
      clock: ports.clock,
      log: ports.log,
    });
    this.lag = new LagWatch({
      height: () => ports.blocks.height(),
      claims: () =>
        parts.sessions.all().map((session) => {
          const { nodeId, source } = this.syncPeerOf(session);
          return { nodeId, source, height: parts.reactor.heightOf(nodeId) };
        }),
      report: (nodeId, offence) => parts.host.scores.report(nodeId, offence),
      clock: ports.clock,
      log: ports.log,
    });
  }

  /** Listens, dials and answers until `stop` or the signal. Throws LISTEN_FAILED, PORT_TAKEN. */
  static async start(
    options: NetworkOptions,
    ports: NetworkPorts,
    signal: AbortSignal,
  ): Promise<Network> {
    const topics = topicsOf(options.genesisHash);
    const { clock, log } = ports;
    const named = options.persistentPeers.map(({ nodeId }) => nodeId);
    // A network's homes name each of its validators: a place is kept for every other one.
    const persistentIds = named.filter((nodeId) => nodeId !== options.key.nodeId);
    const reservedIds = new Set([...persistentIds, ...options.unconditionalPeerIds]);
    const host = await Host.start({
      ...options,
      reservedIds,
      topics: Object.values(topics),
      clock,
      log,
    });
    const tasks = new TaskGroup({ signal, onFault: (_name, error) => ports.onFault(error) });
    try {
      const sessions = await PeerSessions.start({ host, hello: helloOf(options), clock, log });
      const parts = connectParts({ host, sessions, topics, ports });
      const network = new Network(options, ports, parts, tasks);
      for (const handler of [blockHandler(ports.blocks), ...(ports.handlers ?? [])]) {
        await host.handle(handler);
      }
      tasks.run("peers", (inner) => sessions.watch(inner));
      tasks.run("consensus", (inner) => parts.reactor.run(inner));
      tasks.run("transactions", (inner) => parts.transactions.run(inner));
      await network.findPeers({ persistentIds: new Set(persistentIds), reservedIds });
      return network;
    } catch (error) {
      await tasks.stop();
      await host.stop();
      throw error;
    }
  }

  /** The driver's way out. */
  get broadcast(): ConsensusBroadcast {
    return this.parts.reactor;
  }

  /** The driver runs: what peers say of the height in progress goes to it. */
  attach(inbox: ConsensusInbox): void {
    this.parts.reactor.attach(inbox);
  }

  /** The driver does not run. */
  detach(): void {
    this.parts.reactor.detach();
  }

  /** The driver has halted: it hears nothing more, and peers still get what they lack of it. */
  halt(): void {
    this.parts.reactor.halt();
  }

  /** Transactions became executable here; give it the bus's `pendingTransactions`. */
  onAdmitted(transactions: readonly PendingTransaction[]): void {
    this.parts.transactions.onAdmitted(transactions);
  }

  /**
   * Brings the node to the height of its peers, while the driver does not run. A node that may be
   * the first and knows nobody who could be ahead has nothing to wait for, unless blocks are known to
   * be missing here: whoever has them may know this node.
   */
  catchUp(options: CatchUpOptions): Promise<void> {
    const { mayBeFirst, provenHeight = 0 } = options;
    const isWhole = this.ports.blocks.height() >= provenHeight;
    const isAlone = mayBeFirst && isWhole && !this.knowsAnybody && this.peers().length === 0;
    if (!isAlone) return this.sync.run(options);
    this.skipCatchUp();
    return Promise.resolve();
  }

  /** Instead of `catchUp`, where this node takes no further block: it does not say that it catches up. */
  skipCatchUp(): void {
    this.sync.skip();
  }

  /**
   * Resolves when a peer has proved that the network is far ahead of this node, which takes part:
   * then it should stop that and catch up. Rejects with the signal's reason.
   */
  fallenBehind(witness: HeightWitness, signal: AbortSignal): Promise<void> {
    return this.lag.proved(witness, signal);
  }

  /** See `NetworkView`. */
  isCatchingUp(): boolean {
    return this.sync.isCatchingUp();
  }

  /** See `NetworkView`. */
  peerHeight(): Height {
    return this.sync.peerHeight();
  }

  /** See `NetworkView`. */
  networkHeight(): Height {
    const { sessions, reactor } = this.parts;
    return networkHeight(sessions.all().map(({ nodeId }) => reactor.heightOf(nodeId)));
  }

  /** See `NetworkView`. */
  listeners(): readonly string[] {
    const { listen, externalAddress } = this.options;
    return listen === undefined ? [] : [`Listener(@${externalAddress})`];
  }

  /** See `NetworkView`; peers that have said hello. */
  peers(): readonly NetworkPeer[] {
    const nowMs = this.ports.clock.monotonicMs();
    return this.parts.sessions.all().map(({ link, hello, unsentBytes }) => ({
      nodeId: link.nodeId,
      moniker: hello.moniker,
      network: hello.network,
      version: hello.version,
      listenAddress: hello.listenAddress,
      rpcAddress: hello.rpcAddress,
      isOutbound: link.direction === "outbound",
      remoteIp: link.remoteIp,
      connectedMs: nowMs - link.connectedAtMs,
      receivedBytes: link.meter.receivedBytes,
      sentBytes: link.meter.sentBytes,
      receiving: link.meter.receiving.status(),
      sending: link.meter.sending.status(),
      unsentBytes,
      maxUnsentBytes: MAX_UNSENT_BYTES,
      round: this.parts.reactor.roundOf(link.nodeId),
    }));
  }

  /** Connections with peers that have said hello, for other protocols. */
  links(): readonly PeerLink[] {
    return this.parts.sessions.all().map(({ link }) => link);
  }

  /** Counts what a peer did wrong in another protocol; enough of it is a ban. */
  report(nodeId: NodeId, offence: Offence): void {
    this.parts.host.scores.report(nodeId, offence);
  }

  /** See `NetworkView`. */
  stats(): NetworkStats {
    const { host, sessions } = this.parts;
    return { peers: sessions.all().length, ...host.traffic(), peersMs: host.load.totalMs };
  }

  /** Ends all connections and loops. */
  async stop(): Promise<void> {
    await this.tasks.stop();
    await this.parts.host.stop();
  }

  private async findPeers(ids: {
    readonly persistentIds: ReadonlySet<NodeId>;
    readonly reservedIds: ReadonlySet<NodeId>;
  }): Promise<void> {
    const { options, ports, tasks, parts } = this;
    const { host, sessions } = parts;
    const { clock, log } = ports;
    const random = () => ports.random();
    for (const address of options.persistentPeers) {
      if (address.nodeId === options.key.nodeId) continue;
      this.knowsAnybody = true;
      const dial = {
        clock,
        log,
        random,
        linkTo: (nodeId: NodeId) => host.linkTo(nodeId),
        dial: (to: PeerAddress, inner: { readonly signal: AbortSignal }) => host.dial(to, inner),
      };
      tasks.run(`peer ${address.nodeId}`, (inner) => keepConnected(address, dial, inner));
    }
    const { pex } = options;
    const file = pex ? options.addressBookFile : undefined;
    const unlistedIds = new Set([options.key.nodeId, ...options.privatePeerIds]);
    const book = new PeerBook({ file, unlistedIds, clock, log, random });
    const { seeds, seedMode: isSeed, maxOutboundPeers } = options;
    const discovery = await Discovery.start({
      host,
      sessions,
      book,
      seeds,
      isSeed,
      maxOutboundPeers,
      ...ids,
      clock,
      log,
      random,
    });
    if (!pex && seeds.length > 0) {
      log.warn({ seeds: seeds.length }, "p2p.seeds is not used: set p2p.pex to true for that");
    }
    if (!pex) return;
    this.knowsAnybody ||= seeds.length > 0 || book.size > 0;
    tasks.run("discovery", (inner) => discovery.run(inner));
  }

  private syncPeerOf(session: PeerSession): SyncPeer {
    const known = this.syncPeers.get(session);
    if (known !== undefined) return known;
    const { nodeId, link } = session;
    const { signal } = link;
    const peer = { nodeId, source: blockSource(link), signal, isHeldUp: () => link.isHeldUp };
    this.syncPeers.set(session, peer);
    return peer;
  }
}

interface Topics {
  readonly consensus: string;
  readonly transactions: string;
}

/** Chains do not hear each other, even where their nodes are connected. */
function topicsOf(genesisHash: Hash32): Topics {
  const prefix = `/causeway/${genesisHash.slice(2, 18)}`;
  return { consensus: `${prefix}/consensus/1`, transactions: `${prefix}/transactions/1` };
}

function helloOf(options: NetworkOptions): Hello {
  const { listen, externalAddress } = options;
  const own = listen === undefined ? "" : formatListenAddress(listen, "tcp://");
  return {
    network: options.chainId,
    genesisHash: options.genesisHash,
    moniker: options.moniker,
    version: options.version,
    listenAddress: externalAddress === "" ? own : externalAddress,
    rpcAddress: options.rpcAddress,
  };
}

/** Makes the parts and tells each what the others hear. */
function connectParts(made: {
  readonly host: Host;
  readonly sessions: PeerSessions;
  readonly topics: Topics;
  readonly ports: NetworkPorts;
}): Parts {
  const { host, sessions, topics, ports } = made;
  const { clock, log, pool } = ports;
  const report = host.scores.report.bind(host.scores);
  const isReady = (nodeId: NodeId) => sessions.get(nodeId) !== undefined;
  const { gossip: router, load } = host;
  const gossip = new Gossip({ router, clock, log, isReady, report, load });
  const publishTo = (topic: string) => (bytes: Uint8Array) => gossip.publish(topic, bytes);
  const reactor = new ConsensusReactor({
    publish: publishTo(topics.consensus),
    report,
    load,
    clock,
    log,
  });
  const publish = publishTo(topics.transactions);
  const transactions = new TransactionGossip({ pool, publish, report, load, clock });
  gossip.subscribe(topics.consensus, (bytes, from) => reactor.onGossip(bytes, from));
  gossip.subscribe(
    topics.transactions,
    (bytes, from) => transactions.onGossip(bytes, from),
    (from, bytes) => transactions.isHeard(from, bytes),
  );
  host.scores.onBan((nodeId) => {
    reactor.forget(nodeId);
    transactions.forget(nodeId);
  });
  sessions.onReady((session) => {
    reactor.add(session);
    transactions.add(session);
  });
  sessions.onGone((session) => {
    reactor.remove(session);
    transactions.remove(session);
    gossip.remove(session.nodeId);
  });
  sessions.onFrame((frame, from) => {
    const heard =
      frame.type === "consensus"
        ? reactor.onDirect(frame.message, from.nodeId)
        : transactions.onDirect(frame.raws, from.nodeId);
    // The driver and the pool answer faults of messages; whatever else fails is theirs to report.
    heard.catch((error: unknown) => log.debug({ peer: from.nodeId, err: error }, "frame failed"));
  });
  return { host, sessions, gossip, reactor, transactions };
}
