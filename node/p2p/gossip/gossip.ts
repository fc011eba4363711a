/** Messages to everybody: published at once, relayed only after this node has looked at them. */
import { type GossipSub, TopicValidatorResult } from "@libp2p/gossipsub";
import type { PeerId } from "@libp2p/interface";
import type { Clock } from "../../../runtime/process/clock.js";
import type { Logger } from "../../../runtime/process/logger.js";
import { startWatch } from "../../../runtime/process/thread-time.js";
import { nodeIdOfPeer } from "../peers/connection-gate.js";
import { MAX_GOSSIP_BYTES, MIN_ANNOUNCED_BYTES, onPacket, type Packet } from "./gossip-service.js";
import type { NodeId } from "../node-key.js";
import type { Offence } from "../peers/peer-scores.js";
import type { PeerLoad } from "../peers/peer-load.js";
import { TokenBucket } from "../peers/traffic-meter.js";

/**
 * What becomes of a message: passed on, dropped, or dropped and held against the sender; "used" was
 * worth its time and is passed on otherwise.
 */
export type Verdict = "relay" | "used" | "drop" | "invalid";

/** Looks at one message; called before anybody else hears of it. */
export type Validator = (bytes: Uint8Array, from: NodeId) => Promise<Verdict>;

/** Whether a message is looked at now; who is not heard is told of nothing, and others may bring the same. */
export type Hearing = (from: NodeId, bytes: Uint8Array) => boolean;

const NOTHING = new Uint8Array(0);

/** What gossip needs. */
export interface GossipOptions {
  readonly router: GossipSub;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether the peer has said hello and is of this chain. */
  isReady(nodeId: NodeId): boolean;
  /** What peers cost this node. */
  readonly load: Pick<PeerLoad, "heard" | "forgive">;
  report(nodeId: NodeId, offence: Offence): void;
}

/**
 * Messages that one peer may send, mean and burst: a hundred validators with blocks five times a
 * second come to a fifth of it.
 */
const MESSAGES_PER_SECOND = 5_000;
const MESSAGE_BURST = 20_000;

/**
 * Messages of this size are announced before they are looked at, and are relayed only after a
 * moment: a neighbour that has had them from somebody else has announced them by then, and is
 * left out. In a small network this saves two of three transmissions of each block.
 */
const RELAY_DELAY_MS = 100;

/**
 * What the router does with one message, and with one field of its own messages about messages:
 * measured on a slow core, and rounded up.
 */
const MESSAGE_MS = 0.05;
const CONTROL_MS = 0.005;

/** A message, its topic and its bytes. */
const MESSAGE_FIELDS = 3;

/** Bytes of one peer's messages that are being looked at; what comes beyond is dropped. */
const MAX_PENDING_BYTES = 16 * 1024 * 1024;

interface Sender {
  readonly budget: TokenBucket;
  pendingBytes: number;
}

/** The gossip of one host. */
export class Gossip {
  private readonly senders = new Map<NodeId, Sender>();
  /** By topic. */
  private readonly hearing = new Map<string, Hearing>();

  constructor(private readonly options: GossipOptions) {
    this.meterRouter();
  }

  /**
   * Takes part in a topic.
   * @param isHeard everybody's messages are by default
   */
  subscribe(topic: string, validate: Validator, isHeard: Hearing = () => true): void {
    const { router } = this.options;
    this.hearing.set(topic, isHeard);
    router.topicValidators.set(topic, (peer, { data }) => this.validate(peer, data, validate));
    router.subscribe(topic);
  }

  /** Sends to every peer that takes part; never fails. */
  publish(topic: string, bytes: Uint8Array): void {
    const { router, log } = this.options;
    router.publish(topic, bytes).catch((error: unknown) => {
      log.debug({ topic, err: error }, "nothing published");
    });
  }

  /** Forgets a peer that is gone. */
  remove(nodeId: NodeId): void {
    this.senders.delete(nodeId);
  }

  /** The router reads by itself: what a packet makes it do is counted before it does it. */
  private meterRouter(): void {
    onPacket(this.options.router, (from, { packet, fields }) => {
      const nodeId = nodeIdOfPeer(from);
      if (nodeId === undefined) return this.heardOf(nodeId, packet);
      if (fields === undefined) this.options.report(nodeId, "malformed");
      else this.options.load.heard(nodeId, packetMs(packet, fields));
      return this.heardOf(nodeId, packet);
    });
  }

  /**
   * What the router is to know of a packet. A message that it has seen it takes from nobody else, and
   * it tells others not to send it: who is not heard would keep a node from whatever he is first with.
   */
  private heardOf(nodeId: NodeId | undefined, packet: Packet): Packet {
    const isReady = nodeId !== undefined && this.options.isReady(nodeId);
    const messages = packet.messages.filter(({ topic, data = NOTHING }) => {
      return isReady && this.hearing.get(topic)?.(nodeId, data) === true;
    });
    return messages.length === packet.messages.length ? packet : { ...packet, messages };
  }

  private async validate(
    peer: PeerId,
    bytes: Uint8Array,
    validate: Validator,
  ): Promise<TopicValidatorResult> {
    const nodeId = nodeIdOfPeer(peer);
    if (nodeId === undefined || !this.options.isReady(nodeId)) return TopicValidatorResult.Ignore;
    const sender = this.senderOf(nodeId);
    if (!sender.budget.take(1)) {
      this.options.report(nodeId, "flood");
      return TopicValidatorResult.Ignore;
    }
    if (bytes.length > MAX_GOSSIP_BYTES) {
      this.options.report(nodeId, "malformed");
      return TopicValidatorResult.Reject;
    }
    if (sender.pendingBytes + bytes.length > MAX_PENDING_BYTES) return TopicValidatorResult.Ignore;
    sender.pendingBytes += bytes.length;
    try {
      const watch = startWatch();
      const judged = validate(bytes, nodeId);
      const spentMs = watch();
      this.options.load.heard(nodeId, spentMs);
      const verdict = await judged;
      const isOfUse = verdict === "relay" || verdict === "used";
      if (isOfUse) this.options.load.forgive(nodeId, spentMs + MESSAGE_MS);
      if (verdict === "relay" && bytes.length >= MIN_ANNOUNCED_BYTES) await relayDelay();
      return this.resultOf(verdict, nodeId);
    } finally {
      sender.pendingBytes -= bytes.length;
    }
  }

  private resultOf(verdict: Verdict, nodeId: NodeId): TopicValidatorResult {
    if (verdict === "relay") return TopicValidatorResult.Accept;
    if (verdict !== "invalid") return TopicValidatorResult.Ignore;
    this.options.report(nodeId, "invalidMessage");
    return TopicValidatorResult.Reject;
  }

  private senderOf(nodeId: NodeId): Sender {
    const known = this.senders.get(nodeId);
    if (known !== undefined) return known;
    const [perSecond, burst] = [MESSAGES_PER_SECOND, MESSAGE_BURST];
    const budget = new TokenBucket({ perSecond, burst, clock: this.options.clock });
    const sender = { budget, pendingBytes: 0 };
    this.senders.set(nodeId, sender);
    return sender;
  }
}

function relayDelay(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, RELAY_DELAY_MS));
}

/** What a packet costs before anything of it has been judged. @param fields all that were read */
function packetMs({ messages, control }: Packet, fields: number): number {
  const items = Math.max(0, fields - messages.length * MESSAGE_FIELDS);
  // Each id that is wanted is a message that is sent.
  const wanted = (control?.iwant ?? []).reduce((sum, { messageIDs }) => {
    return sum + (messageIDs?.length ?? 0);
  }, 0);
  return items * CONTROL_MS + (messages.length + wanted) * MESSAGE_MS;
}
