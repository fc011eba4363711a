/**
 * Tells peers of others, and looks for peers where the configuration asks for it: dials addresses
 * from the book until there are enough, asks peers for more, and falls back to the seeds when
 * nobody is known. A seed node does the same to fill its book, and lets everybody go again.
 */
import { errorMessage } from "../../../chain/errors.js";
import { formatListenAddress } from "../../../runtime/config/config-values.js";
import { sleep } from "../../../runtime/process/task.js";
import type { Clock } from "../../../runtime/process/clock.js";
import type { Logger } from "../../../runtime/process/logger.js";
import type { Host } from "../host.js";
import type { NodeId } from "../node-key.js";
import { groupOf } from "./address-group.js";
import type { KnownPeerAddress, PeerAddress } from "./peer-address.js";
import type { PeerBook } from "./peer-book.js";
import { askForPeers, exchangeHandler, listenAddressOf } from "./peer-exchange.js";
import type { PeerLink } from "./peer-link.js";
import type { PeerSessions } from "./peer-sessions.js";

/** What discovery needs. */
export interface DiscoveryOptions {
  readonly host: Host;
  readonly sessions: PeerSessions;
  readonly book: PeerBook;
  readonly seeds: readonly PeerAddress[];
  readonly isSeed: boolean;
  readonly maxOutboundPeers: number;
  /** Peers that are kept connected by others. */
  readonly persistentIds: ReadonlySet<NodeId>;
  /** Those, and others that count for no limit. */
  readonly reservedIds: ReadonlySet<NodeId>;
  readonly clock: Clock;
  readonly log: Logger;
  random(): number;
}

/** Pause between two looks. */
const LOOK_INTERVAL_MS = 2_000;

/** With fewer addresses than this peers are asked for more. */
const THIN_BOOK = 100;

/** How often one of the peers is asked, and when after one that gave no answer. */
const ASK_INTERVAL_MS = 30_000;
const ASK_AGAIN_MS = 6_000;

/** With fewer than this they are asked again as soon: a seed that has just met us knows nobody. */
const FEW_ADDRESSES = 8;

/** How often seeds are asked while nobody is connected, and how often one that fails is named then. */
const SEED_INTERVAL_MS = 10_000;
const SEED_WARNING_INTERVAL_MS = 60_000;

/** How often while there is room for more peers and nobody to dial, as in CometBFT. */
const SEED_AGAIN_INTERVAL_MS = 30_000;

/** How long a seed keeps a connection that asks for nothing, and one that has its answer. */
const SEED_PATIENCE_MS = 20_000;
const SERVED_PATIENCE_MS = 3_000;

/** How often the book is written. */
const SAVE_INTERVAL_MS = 60_000;

/** The part of the node that finds peers. */
export class Discovery {
  /** Nodes that answered at a seed's address: for addresses, not for company. */
  private readonly seedIds = new Set<NodeId>();
  /** Which of them did last. */
  private readonly seedAt = new Map<PeerAddress, NodeId>();
  private readonly servedAtMs = new WeakMap<PeerLink, number>();
  private askDueMs = Number.NEGATIVE_INFINITY;
  private seedsAskedAtMs = Number.NEGATIVE_INFINITY;
  private readonly seedWarnedAtMs = new Map<PeerAddress, number>();
  private savedAtMs = Number.NEGATIVE_INFINITY;

  private constructor(private readonly options: DiscoveryOptions) {}

  /** Begins to answer peers; `run` does the looking. */
  static async start(options: DiscoveryOptions): Promise<Discovery> {
    const { host, sessions, book, clock } = options;
    const discovery = new Discovery(options);
    const onServed = (link: PeerLink) => discovery.servedAtMs.set(link, clock.monotonicMs());
    await host.handle(exchangeHandler({ book, clock, onServed }));
    sessions.onReady(({ link, hello }) => {
      const address = listenAddressOf(link, hello.listenAddress);
      if (address !== undefined) book.add(address, link);
    });
    return discovery;
  }

  /** Looks for peers until the signal fires. */
  async run(signal: AbortSignal): Promise<void> {
    const { book, clock } = this.options;
    this.savedAtMs = clock.monotonicMs();
    try {
      for (;;) {
        await this.look(signal);
        if (clock.monotonicMs() - this.savedAtMs >= SAVE_INTERVAL_MS) {
          this.savedAtMs = clock.monotonicMs();
          book.save();
        }
        await sleep(LOOK_INTERVAL_MS, { signal });
      }
    } finally {
      book.save();
    }
  }

  private async look(signal: AbortSignal): Promise<void> {
    const { host, book, clock, isSeed } = this.options;
    const nowMs = clock.monotonicMs();
    if (isSeed) this.letGo(nowMs);
    if (this.needsSeeds(nowMs)) {
      this.seedsAskedAtMs = nowMs;
      for (const seed of this.options.seeds) await this.visit(seed, signal);
    }
    if (book.size < THIN_BOOK && nowMs >= this.askDueMs) {
      const links = host.peers();
      const link = links[Math.floor(this.options.random() * links.length)];
      if (link !== undefined) {
        const isAnswered = await this.ask(link, signal);
        const isContent = isAnswered && book.size >= FEW_ADDRESSES;
        this.askDueMs = nowMs + (isContent ? ASK_INTERVAL_MS : ASK_AGAIN_MS);
      }
    }
    for (let room = this.outboundRoom(); room > 0; room--) {
      const address = book.pick((nodeId) => this.isWanted(nodeId), this.dialledGroups());
      if (address === undefined) return;
      await this.connect(address, signal);
    }
  }

  /**
   * Who is connected may know nobody else, or tell of nobody: where all others are gone, or came up
   * before the seeds did, only those lead back to the network.
   */
  private needsSeeds(nowMs: number): boolean {
    const { host, book } = this.options;
    const passedMs = nowMs - this.seedsAskedAtMs;
    if (host.peers().length === 0) return passedMs >= SEED_INTERVAL_MS;
    if (passedMs < SEED_AGAIN_INTERVAL_MS || this.outboundRoom() <= 0) return false;
    return book.pick((nodeId) => this.isWanted(nodeId)) === undefined;
  }

  /** Whether a stranger is worth a dial. */
  private isWanted(nodeId: NodeId): boolean {
    const { host, persistentIds } = this.options;
    const isKept = persistentIds.has(nodeId) || this.seedIds.has(nodeId);
    return !isKept && host.linkTo(nodeId) === undefined && !host.scores.isBanned(nodeId);
  }

  /** Where the peers are that this node chose: they should not all be in one place. */
  private dialledGroups(): ReadonlySet<string> {
    const chosen = this.options.host.peers().filter(({ direction }) => direction === "outbound");
    return new Set(chosen.map(({ remoteIp }) => groupOf(remoteIp)));
  }

  private outboundRoom(): number {
    const { host, maxOutboundPeers, reservedIds } = this.options;
    const outbound = host
      .peers()
      .filter(({ direction, nodeId }) => direction === "outbound" && !reservedIds.has(nodeId));
    return maxOutboundPeers - outbound.length;
  }

  private async connect(address: KnownPeerAddress, signal: AbortSignal): Promise<void> {
    const { host, sessions, book, isSeed } = this.options;
    try {
      const link = await host.dial(address, { signal });
      // Who has no room, or is of another chain, lets go only when the connection is up.
      await sessions.whenReady(link, signal);
      book.markGood(address);
      if (!isSeed) return;
      await this.ask(link, signal);
      link.close("this is a seed: addresses were taken");
    } catch {
      signal.throwIfAborted();
      // One that dialled at the same time is here.
      if (host.linkTo(address.nodeId) === undefined) book.markFailed(address.nodeId);
    }
  }

  /**
   * A seed is asked and let go: it has better things to do than to relay. One that knows nobody
   * else is kept: it may be all the network there is.
   */
  private async visit(seed: PeerAddress, signal: AbortSignal): Promise<void> {
    const { host, book, clock, persistentIds } = this.options;
    const seedId = seed.nodeId ?? this.seedAt.get(seed);
    if (seedId !== undefined && host.linkTo(seedId) !== undefined) return;
    try {
      const link = await host.dial(seed, { signal });
      this.seedIds.add(link.nodeId);
      this.seedAt.set(seed, link.nodeId);
      await this.takeAddresses(link, signal);
      this.askDueMs = clock.monotonicMs() + ASK_AGAIN_MS;
      const hasOthers = book.pick((nodeId) => this.isWanted(nodeId)) !== undefined;
      if (hasOthers && !persistentIds.has(link.nodeId)) link.close("asked for addresses");
    } catch (error) {
      signal.throwIfAborted();
      this.warnOf(seed, error);
    }
  }

  /** Names a seed that does not help, now and then: without it this node may be alone. */
  private warnOf(seed: PeerAddress, error: unknown): void {
    const { clock, host } = this.options;
    const nowMs = clock.monotonicMs();
    const warnedAtMs = this.seedWarnedAtMs.get(seed) ?? Number.NEGATIVE_INFINITY;
    if (host.peers().length > 0 || nowMs - warnedAtMs < SEED_WARNING_INTERVAL_MS) return;
    this.seedWarnedAtMs.set(seed, nowMs);
    this.options.log.warn(
      {
        seed: formatListenAddress({ host: seed.host, port: seed.port }),
        reason: errorMessage(error),
      },
      "a seed gives no addresses: check that it runs on this chain and that its p2p port can be " +
        "reached from here, or write another one into p2p.seeds",
    );
  }

  private async ask(link: PeerLink, signal: AbortSignal): Promise<boolean> {
    try {
      await this.takeAddresses(link, signal);
      return true;
    } catch (error) {
      signal.throwIfAborted();
      this.options.log.debug({ peer: link.nodeId, err: error }, "no addresses");
      return false;
    }
  }

  private async takeAddresses(link: PeerLink, signal: AbortSignal): Promise<void> {
    // The hello tells the other side where this node can be reached.
    await this.options.sessions.whenReady(link, signal);
    const addresses = await askForPeers(link);
    for (const address of addresses) this.options.book.add(address, link);
  }

  private letGo(nowMs: number): void {
    for (const link of this.options.host.peers()) {
      const servedMs = nowMs - (this.servedAtMs.get(link) ?? nowMs);
      const isOld = nowMs - link.connectedAtMs >= SEED_PATIENCE_MS;
      const isDone = isOld || servedMs >= SERVED_PATIENCE_MS;
      if (isDone && !this.options.persistentIds.has(link.nodeId)) link.close("this is a seed");
    }
  }
}
