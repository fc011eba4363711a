/** Finding peers: a node asks those it knows for addresses, and tells them some of its own. */
import { isIP } from "node:net";
import { LRUCache } from "lru-cache";
import { invalidMessage, ProtoReader, ProtoWriter } from "../../../chain/protobuf/wire.js";
import type { Clock } from "../../../runtime/process/clock.js";
import { isLoopbackAddress } from "../../../runtime/http/outgoing/public-address.js";
import { withTimeout } from "../../../runtime/process/task.js";
import type { ProtocolHandler } from "../host.js";
import type { NodeId } from "../node-key.js";
import { P2pError } from "../p2p-error.js";
import {
  formatPeerAddress,
  type KnownPeerAddress,
  parseKnownPeerAddress,
  parsePeerAddress,
} from "./peer-address.js";
import { isPrivateIp } from "./address-group.js";
import type { PeerBook } from "./peer-book.js";
import type { PeerLink } from "./peer-link.js";

const PROTOCOL = "/causeway/pex/1";

/** Addresses in one answer. */
const MAX_ADDRESSES = 100;

/** An id, an IPv6 address and a port, with room to spare. */
const MAX_ADDRESS_BYTES = 128;
const MAX_ANSWER_BYTES = MAX_ADDRESSES * (MAX_ADDRESS_BYTES + 4);

/** A peer that asks more often gets no answer. */
const MIN_INTERVAL_MS = 5_000;

/** Peers whose last question is remembered. */
const MAX_ASKERS = 1_000;

/** Time for a question and its answer. */
const EXCHANGE_TIMEOUT_MS = 10_000;

/** Answers peers from the book. */
export function exchangeHandler(options: {
  readonly book: PeerBook;
  readonly clock: Clock;
  /** Called when a peer has its answer. */
  readonly onServed: (link: PeerLink) => void;
}): ProtocolHandler {
  const { book, clock, onServed } = options;
  const askedAtMs = new LRUCache<NodeId, number>({ max: MAX_ASKERS });
  return {
    protocol: PROTOCOL,
    maxMessageBytes: 16,
    maxInboundStreams: 1,
    async serve(link, channel) {
      const nowMs = clock.monotonicMs();
      if (nowMs - (askedAtMs.get(link.nodeId) ?? Number.NEGATIVE_INFINITY) < MIN_INTERVAL_MS) {
        throw new P2pError("PEER_REFUSED", "asked too often");
      }
      askedAtMs.set(link.nodeId, nowMs);
      const writer = new ProtoWriter();
      for (const address of book.sample(MAX_ADDRESSES)) {
        // What is reachable only from here is nobody else's business.
        if (isPrivateIp(address.host) && !isPrivateIp(link.remoteIp)) continue;
        writer.bytes(1, formatPeerAddress(address));
      }
      const limits = { timeoutMs: EXCHANGE_TIMEOUT_MS, signal: link.signal };
      await withTimeout(async (signal) => {
        await channel.write(writer.finish(), signal);
        await channel.close(signal);
      }, limits);
      onServed(link);
    },
  };
}

/**
 * Asks a peer for addresses.
 * @throws PEER_PROTOCOL, PEER_GONE, TIMEOUT
 */
export function askForPeers(link: PeerLink): Promise<readonly KnownPeerAddress[]> {
  const ask = async (signal: AbortSignal) => {
    const channel = await link.open(PROTOCOL, { maxMessageBytes: MAX_ANSWER_BYTES, signal });
    try {
      const bytes = await channel.read(signal);
      return bytes === undefined ? [] : parseAnswer(bytes, link);
    } finally {
      channel.abort(new Error("done"));
    }
  };
  return withTimeout(ask, { timeoutMs: EXCHANGE_TIMEOUT_MS, signal: link.signal });
}

/** Where a peer takes connections, as it says itself; undefined if it does not. */
export function listenAddressOf(
  link: PeerLink,
  listenAddress: string,
): KnownPeerAddress | undefined {
  try {
    const { host, port } = parsePeerAddress(listenAddress);
    // Who takes connections of its own machine alone is dialled in vain from any other.
    if (isLoopbackAddress(host) && !isLoopbackAddress(link.remoteIp)) return undefined;
    const isOwn = isUsable(host, link) && host !== "0.0.0.0" && host !== "::";
    return { nodeId: link.nodeId, host: isOwn ? host : link.remoteIp, port };
  } catch {
    return undefined; // Peers that only dial have none.
  }
}

function parseAnswer(bytes: Uint8Array, link: PeerLink): readonly KnownPeerAddress[] {
  try {
    return new ProtoReader(bytes, [], { 1: MAX_ADDRESSES })
      .repeated(1)
      .map((text) => {
        if (text.length > MAX_ADDRESS_BYTES) throw invalidMessage("an address is too long");
        return parseKnownPeerAddress(Buffer.from(text).toString("utf8"));
      })
      .filter(({ host }) => isUsable(host, link));
  } catch (cause) {
    throw new P2pError("PEER_PROTOCOL", "unreadable addresses", { cause });
  }
}

/** Only plain IP addresses, and such of a private network only from a peer inside it. */
function isUsable(host: string, link: PeerLink): boolean {
  return isIP(host) !== 0 && (!isPrivateIp(host) || isPrivateIp(link.remoteIp));
}
