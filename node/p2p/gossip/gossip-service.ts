/** How the gossip router is set up; the reasons are beside each setting. */
import { createHash } from "node:crypto";
import { type GossipSub, gossipsub, StrictNoSign } from "@libp2p/gossipsub";
import type { GossipSubComponents } from "@libp2p/gossipsub";
import type { PeerId } from "@libp2p/interface";
import { countFields } from "./packet-fields.js";

/** Largest message that is published: the largest transaction (128 KiB) with room to spare. */
export const MAX_GOSSIP_BYTES = 192 * 1024;

/** A router tells its neighbours at once that it has a message of this size. */
export const MIN_ANNOUNCED_BYTES = 512;

/** Announcements that one peer may make in a second: five blocks of 4 MiB have 320 parts. */
const MAX_ANNOUNCED = 2_048;

/** Bytes that wait for a peer that does not read; beyond that its stream is given up. */
const MAX_OUTBOUND_BUFFER_BYTES = 16 * 1024 * 1024;

/** Largest packet between routers: an answer to IWANT holds several messages. */
const MAX_PACKET_BYTES = 8 * 1024 * 1024;

/**
 * Counts inside one packet, far above what a second of traffic needs and far below what would
 * occupy a node.
 */
const PACKET_LIMITS = {
  maxSubscriptions: 16,
  maxMessages: 1_000,
  maxIhaveMessageIDs: 5_000,
  maxIwantMessageIDs: 1_000,
  maxControlMessages: 64,
  maxIdontwantMessageIDs: 512,
  maxPeerInfos: 0,
} as const;

/**
 * Fields of one packet in all. The limits above count what a field holds in the end; the same field may
 * come again and again, each one read whole, and eight megabytes of them stop the thread for seconds.
 * Honest ones have ten thousand announcements and a thousand messages of three fields each at most.
 */
const MAX_PACKET_FIELDS = 32_768;

/** Time for which a message is recognised as a duplicate. */
const SEEN_TTL_MS = 60_000;

/** gossipsub as a libp2p service. */
export function gossipService(
  topics: readonly string[],
): (components: GossipSubComponents) => GossipSub {
  return gossipsub({
    // Messages carry their authors' signatures inside; the router's would be a second one.
    globalSignaturePolicy: StrictNoSign,
    msgIdFn: (message) =>
      createHash("sha256").update(message.topic).update("\0").update(message.data).digest(),
    msgIdToStrFn: (id) => Buffer.from(id.buffer, id.byteOffset, id.byteLength).toString("latin1"),
    fallbackToFloodsub: false,
    // An own message goes to every peer at once: a proposal must not wait for a mesh.
    floodPublish: true,
    batchPublish: true,
    allowPublishToZeroTopicPeers: true,
    ignoreDuplicatePublishError: true,
    doPX: false,
    tagMeshPeers: false,
    allowedTopics: [...topics],
    seenTTL: SEEN_TTL_MS,
    maxOutboundBufferSize: MAX_OUTBOUND_BUFFER_BYTES,
    maxInboundDataLength: MAX_PACKET_BYTES,
    maxInboundStreams: 2,
    maxOutboundStreams: 2,
    decodeRpcLimits: PACKET_LIMITS,
    idontwantMinDataSize: MIN_ANNOUNCED_BYTES,
    idontwantMaxMessages: MAX_ANNOUNCED,
    // Peers are judged by PeerScores, which knows what a message meant. The router's own score
    // would punish neighbours behind one address and nodes that were paused.
    scoreParams: {
      topics: {},
      topicScoreCap: 0,
      appSpecificScore: () => 0,
      appSpecificWeight: 0,
      IPColocationFactorWeight: 0,
      behaviourPenaltyWeight: 0,
      // By default it remembers each key that ever came by for an hour.
      retainScore: 0,
    },
  });
}

/** What routers say to each other in one packet, as far as its cost goes. */
export interface Packet {
  readonly messages: readonly { readonly topic: string; readonly data?: Uint8Array }[];
  readonly subscriptions: readonly unknown[];
  readonly control?: {
    readonly ihave?: readonly MessageIds[];
    readonly iwant?: readonly MessageIds[];
    readonly idontwant?: readonly MessageIds[];
    readonly graft?: readonly unknown[];
    readonly prune?: readonly unknown[];
  };
}

interface MessageIds {
  readonly messageIDs?: readonly unknown[];
}

/** A packet as the router reads it, and what it was on the wire. */
interface ReadPacket {
  readonly packet: Packet;
  /** Fields of it, those that are in it twice included; undefined for more than any may have. */
  readonly fields: number | undefined;
}

/** The methods of the router's class through which every packet goes. */
interface PacketRouter {
  decodeRpc(bytes: Uint8Array): Packet;
  handleReceivedRpc(from: PeerId, packet: Packet): Promise<void>;
}

const NOTHING: Packet = { messages: [], subscriptions: [] };

/**
 * Calls the listener with every packet before the router looks at it; the router gets what it returns.
 * What has more fields than any packet may is not read at all, and what the router does not read comes
 * as a packet without content: both took time.
 * @throws RangeError where this version of the router has another way for packets
 */
export function onPacket(
  router: GossipSub,
  listener: (from: PeerId, read: ReadPacket) => Packet,
): void {
  if (!takesPackets(router)) throw new RangeError("the gossip router does not show its packets");
  const [decode, handle] = [router.decodeRpc.bind(router), router.handleReceivedRpc.bind(router)];
  const fieldsOf = new WeakMap<Packet, number>();
  router.decodeRpc = (bytes) => {
    const fields = countFields(bytes, MAX_PACKET_FIELDS);
    const packet = (fields === undefined ? undefined : attempt(() => decode(bytes))) ?? {
      ...NOTHING,
    };
    if (fields !== undefined) fieldsOf.set(packet, fields);
    return packet;
  };
  router.handleReceivedRpc = (from, packet) =>
    handle(from, listener(from, { packet, fields: fieldsOf.get(packet) }));
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined; // A newer router may say more at once than this one reads.
  }
}

function takesPackets(router: object): router is PacketRouter {
  return ["decodeRpc", "handleReceivedRpc"].every(
    (name) => name in router && typeof Reflect.get(router, name) === "function",
  );
}
