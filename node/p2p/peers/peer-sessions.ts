/**
 * The conversation with each peer: one stream beside gossip for what is meant for that peer alone.
 * A peer counts as connected once both sides have said hello and are of the same chain; one that
 * falls silent is let go.
 */
import type { Clock } from "../../../runtime/process/clock.js";
import type { Logger } from "../../../runtime/process/logger.js";
import { limitedSignal, sleep, withTimeout } from "../../../runtime/process/task.js";
import type { Channel } from "../channel.js";
import type { Host } from "../host.js";
import type { NodeId } from "../node-key.js";
import { P2pError } from "../p2p-error.js";
import { decodeFrame, encodeFrame, type Hello, type PeerFrame } from "./peer-codec.js";
import type { PeerLink } from "./peer-link.js";
import { TokenBucket } from "./traffic-meter.js";

/** What sessions need. */
export interface SessionOptions {
  readonly host: Host;
  /** What this node says of itself. */
  readonly hello: Hello;
  readonly clock: Clock;
  readonly log: Logger;
  /** Other limits than the usual ones. */
  readonly limits?: Partial<SessionLimits>;
}

/** Limits of a conversation; times in milliseconds. */
export interface SessionLimits {
  /** Time for a new connection to come to its hello. */
  readonly helloMs: number;
  /** Silence after which a peer is taken for dead; pings come far more often. */
  readonly silenceMs: number;
  /** Time for the gossip router's streams to come up beside the session. */
  readonly gossipMs: number;
  /** Frames that a peer may send, mean and burst; statuses come twenty times a second. */
  readonly framesPerSecond: number;
  readonly frameBurst: number;
}

const USUAL_LIMITS: SessionLimits = {
  helloMs: 10_000,
  silenceMs: 10_000,
  gossipMs: 10_000,
  framesPerSecond: 1_000,
  frameBurst: 10_000,
};

/** The protocol's name for libp2p. */
const PROTOCOL = "/causeway/peer/1";

/** Largest frame: the largest transaction, or a block part with its proof, with room to spare. */
const MAX_FRAME_BYTES = 192 * 1024;

/** A peer hears something at least this often. */
const PING_INTERVAL_MS = 1_000;

/** How often connections are looked at. */
const WATCH_INTERVAL_MS = 250;

/** Bytes that may wait for a peer that reads slowly; beyond that it is let go. */
export const MAX_UNSENT_BYTES = 16 * 1024 * 1024;

/** A peer that has said hello. */
export class PeerSession {
  heardAtMs: number;
  spokenAtMs: number;

  constructor(
    readonly link: PeerLink,
    readonly hello: Hello,
    private readonly channel: Channel,
    private readonly clock: Clock,
  ) {
    this.heardAtMs = clock.monotonicMs();
    this.spokenAtMs = this.heardAtMs;
  }

  /** The peer's id. */
  get nodeId(): NodeId {
    return this.link.nodeId;
  }

  /** Bytes that the peer has not taken yet. */
  get unsentBytes(): number {
    return this.channel.unsentBytes;
  }

  /** Sends a frame without waiting; look at `unsentBytes` before sending much. */
  send(frame: PeerFrame): void {
    this.spokenAtMs = this.clock.monotonicMs();
    this.channel.send(encodeFrame(frame));
    if (this.channel.unsentBytes > MAX_UNSENT_BYTES) this.link.close("does not read");
  }
}

/** What a session can hear beside hello and ping. */
export type SessionFrame = Extract<PeerFrame, { type: "consensus" | "transactions" }>;

/** All sessions of a host. */
export class PeerSessions {
  private readonly sessions = new Map<NodeId, PeerSession>();
  private readonly readyListeners = new Set<(session: PeerSession) => void>();
  private readonly goneListeners = new Set<(session: PeerSession) => void>();
  private readonly frameListeners = new Set<(frame: SessionFrame, from: PeerSession) => void>();

  private readonly limits: SessionLimits;

  private constructor(private readonly options: SessionOptions) {
    this.limits = { ...USUAL_LIMITS, ...options.limits };
  }

  /** Begins to talk to the host's peers, present ones included. */
  static async start(options: SessionOptions): Promise<PeerSessions> {
    const sessions = new PeerSessions(options);
    await options.host.handle({
      protocol: PROTOCOL,
      maxMessageBytes: MAX_FRAME_BYTES,
      maxInboundStreams: 1,
      serve: (link, channel) => sessions.talk(link, channel),
    });
    options.host.onLink((link) => {
      // Who dialled opens the stream; the other one is given a while to do so by `watch`.
      if (link.direction === "outbound") void sessions.begin(link);
    });
    return sessions;
  }

  /** Peers that have said hello. */
  all(): readonly PeerSession[] {
    return [...this.sessions.values()];
  }

  /** The session with a peer. */
  get(nodeId: NodeId): PeerSession | undefined {
    return this.sessions.get(nodeId);
  }

  /**
   * Waits until the peer at the other end has said hello.
   * @throws PEER_GONE when the connection ends before, or the signal's reason
   */
  whenReady(link: PeerLink, signal: AbortSignal): Promise<PeerSession> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const session = this.sessions.get(link.nodeId);
        if (session?.link === link) settle(() => resolve(session));
      };
      const onAbort = () =>
        settle(() => reject(signal.aborted ? signal.reason : link.signal.reason));
      const settle = (end: () => void) => {
        this.readyListeners.delete(look);
        signal.removeEventListener("abort", onAbort);
        link.signal.removeEventListener("abort", onAbort);
        end();
      };
      if (signal.aborted || link.signal.aborted) return onAbort();
      this.readyListeners.add(look);
      signal.addEventListener("abort", onAbort, { once: true });
      link.signal.addEventListener("abort", onAbort, { once: true });
      look();
    });
  }

  /** Calls the listener for each peer that has said hello. */
  onReady(listener: (session: PeerSession) => void): void {
    this.readyListeners.add(listener);
  }

  /** Calls the listener when such a peer is gone. */
  onGone(listener: (session: PeerSession) => void): void {
    this.goneListeners.add(listener);
  }

  /** Calls the listener with every frame. */
  onFrame(listener: (frame: SessionFrame, from: PeerSession) => void): void {
    this.frameListeners.add(listener);
  }

  /** Pings, and lets go of the silent, until the signal fires. */
  async watch(signal: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(WATCH_INTERVAL_MS, { signal });
      const nowMs = this.options.clock.monotonicMs();
      for (const link of this.options.host.peers()) this.check(link, nowMs);
    }
  }

  private check(link: PeerLink, nowMs: number): void {
    const ageMs = nowMs - link.connectedAtMs;
    const session = this.sessions.get(link.nodeId);
    if (session === undefined) {
      if (ageMs > this.limits.helloMs) link.close("said no hello");
      return;
    }
    // What it says while it is held up is not heard.
    if (link.isHeldUp) session.heardAtMs = nowMs;
    if (nowMs - session.heardAtMs > this.limits.silenceMs) return link.close("fell silent");
    // The router never opens a stream again that it has lost; a new connection gets new ones.
    if (ageMs > this.limits.gossipMs && !link.hasGossip)
      return link.close("lost its gossip stream");
    if (nowMs - session.spokenAtMs >= PING_INTERVAL_MS) session.send({ type: "ping" });
  }

  private async begin(link: PeerLink): Promise<void> {
    try {
      const signal = limitedSignal([link.signal], this.limits.helloMs);
      await this.talk(
        link,
        await link.open(PROTOCOL, { maxMessageBytes: MAX_FRAME_BYTES, signal }),
      );
    } catch (error) {
      this.options.log.debug({ peer: link.nodeId, err: error }, "no conversation");
      if (error instanceof P2pError && error.code === "PEER_PROTOCOL") {
        this.options.host.scores.report(link.nodeId, "malformed");
      }
    } finally {
      link.close("the conversation is over");
    }
  }

  /** One conversation from hello to the end; both sides run it. */
  private async talk(link: PeerLink, channel: Channel): Promise<void> {
    const { clock, hello } = this.options;
    channel.send(encodeFrame({ type: "hello", hello }));
    const session = new PeerSession(link, await this.readHello(link, channel), channel, clock);
    this.sessions.set(link.nodeId, session);
    for (const listener of this.readyListeners) listener(session);
    try {
      await this.listen(session, channel);
    } finally {
      if (this.sessions.get(link.nodeId) === session) this.sessions.delete(link.nodeId);
      for (const listener of this.goneListeners) listener(session);
      link.close("the conversation is over");
    }
  }

  private takeFrame(frame: PeerFrame, session: PeerSession): void {
    if (frame.type === "ping") return;
    if (frame.type === "hello") throw new P2pError("PEER_PROTOCOL", "a second hello");
    for (const listener of this.frameListeners) listener(frame, session);
  }

  private async readHello(link: PeerLink, channel: Channel): Promise<Hello> {
    const bytes = await withTimeout((signal) => channel.read(signal), {
      timeoutMs: this.limits.helloMs,
      signal: link.signal,
      what: "hello",
    });
    const frame = bytes === undefined ? undefined : parseFrame(bytes);
    if (frame?.type !== "hello") throw new P2pError("PEER_PROTOCOL", "expected a hello");
    const { network, genesisHash } = this.options.hello;
    if (frame.hello.network !== network || frame.hello.genesisHash !== genesisHash) {
      link.close("is of another chain");
      throw new P2pError("WRONG_NETWORK", "the peer is of another chain", {
        details: { network: frame.hello.network },
      });
    }
    return frame.hello;
  }

  private async listen(session: PeerSession, channel: Channel): Promise<void> {
    const { clock, host } = this.options;
    const { nodeId } = session;
    const { framesPerSecond: perSecond, frameBurst: burst } = this.limits;
    const budget = new TokenBucket({ perSecond, burst, clock });
    for (;;) {
      const bytes = await channel.read(session.link.signal);
      if (bytes === undefined) return;
      session.heardAtMs = clock.monotonicMs();
      if (!budget.take(1)) host.scores.report(nodeId, "flood");
      host.load.hear(nodeId, () => this.takeFrame(parseFrame(bytes), session));
    }
  }
}

function parseFrame(bytes: Uint8Array): PeerFrame {
  try {
    return decodeFrame(bytes);
  } catch (cause) {
    throw new P2pError("PEER_PROTOCOL", "an unreadable frame", { cause });
  }
}
