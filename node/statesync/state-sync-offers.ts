/** Which peers have which snapshots now; asked again and again while state sync runs. */
import { errorCode } from "../../chain/errors.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { Logger } from "../../runtime/process/logger.js";
import { limitedSignal, sleep } from "../../runtime/process/task.js";
import type { NodeId } from "../p2p/node-key.js";
import type { Offence } from "../p2p/peers/peer-scores.js";
import { SNAPSHOT_FORMAT } from "./snapshot/snapshot-manifest.js";
import type { SnapshotOffer, SnapshotSource } from "./statesync-ports.js";

/** A connected peer that may have snapshots; the same object for the same connection. */
export interface SnapshotPeer {
  readonly nodeId: NodeId;
  readonly source: SnapshotSource;
  /** Fires when the peer is gone. */
  readonly signal: AbortSignal;
}

/** Where offers come from. */
export interface OfferPorts {
  /** Peers that are connected now. */
  peers(): readonly SnapshotPeer[];
  report(nodeId: NodeId, offence: Offence): void;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Who may be connected is looked at so often. */
const LOOK_INTERVAL_MS = 250;

/** A peer is asked again after so long: it writes new snapshots and deletes old ones. */
const LIST_INTERVAL_MS = 5_000;

/** Headers that may have to be read for a snapshot of the usual kind: 500 answers of a server. */
const NEAR_HEADERS = 10_000;

/** Time for a peer to list what it has. */
const LIST_TIMEOUT_MS = 5_000;

interface PeerOffers {
  offers: readonly SnapshotOffer[];
  askedAtMs: number;
  isAsked: boolean;
}

/** Offers of all connected peers. */
export class SnapshotOffers {
  private readonly known = new Map<SnapshotPeer, PeerOffers>();

  constructor(private readonly ports: OfferPorts) {}

  /** Follows who is connected, and what they have, until the signal fires. */
  async watch(signal: AbortSignal): Promise<void> {
    for (;;) {
      this.lookAround(signal);
      await sleep(LOOK_INTERVAL_MS, { signal });
    }
  }

  /**
   * What may be restored, best first: what more than one peer has (nodes that take a snapshot of a
   * height take the same), then the newest, then what most peers have. Of those far below the trusted
   * height, to which all headers between lead, the newest, after all others: a liar may be several peers.
   */
  candidates(isRejected: (id: Hash32) => boolean, trustHeight: Height): readonly SnapshotOffer[] {
    const found = new Map<string, { readonly offer: SnapshotOffer; peers: number }>();
    for (const offer of [...this.known.values()].flatMap(({ offers }) => offers)) {
      if (offer.format !== SNAPSHOT_FORMAT || isRejected(offer.id)) continue;
      const entry = found.get(keyOf(offer)) ?? { offer, peers: 0 };
      entry.peers++;
      found.set(keyOf(offer), entry);
    }
    return [...found.values()]
      .toSorted((one, other) => {
        const isNear = ({ offer }: { readonly offer: SnapshotOffer }) =>
          offer.height >= trustHeight - NEAR_HEADERS;
        const byWay = Number(isNear(other)) - Number(isNear(one));
        const byAgreement = isNear(one) ? Number(other.peers > 1) - Number(one.peers > 1) : 0;
        return (
          byWay || byAgreement || other.offer.height - one.offer.height || other.peers - one.peers
        );
      })
      .map(({ offer }) => offer);
  }

  /** Peers that have a snapshot now. */
  holders(offer: SnapshotOffer): readonly SnapshotPeer[] {
    const key = keyOf(offer);
    return [...this.known].flatMap(([peer, { offers }]) =>
      offers.some((one) => keyOf(one) === key) && !peer.signal.aborted ? [peer] : [],
    );
  }

  /** The peer has not what it said, or sent something else: it is asked again later. */
  forget(peer: SnapshotPeer): void {
    const state = this.known.get(peer);
    if (state === undefined) return;
    state.offers = [];
    state.askedAtMs = this.ports.clock.monotonicMs();
  }

  private lookAround(signal: AbortSignal): void {
    const peers = new Set(this.ports.peers());
    for (const peer of this.known.keys()) if (!peers.has(peer)) this.known.delete(peer);
    const nowMs = this.ports.clock.monotonicMs();
    for (const peer of peers) {
      const state = this.known.get(peer) ?? {
        offers: [],
        askedAtMs: Number.NEGATIVE_INFINITY,
        isAsked: false,
      };
      this.known.set(peer, state);
      if (state.isAsked || nowMs - state.askedAtMs < LIST_INTERVAL_MS) continue;
      state.isAsked = true;
      void this.ask(peer, state, signal);
    }
  }

  private async ask(peer: SnapshotPeer, state: PeerOffers, signal: AbortSignal): Promise<void> {
    const limit = limitedSignal([signal, peer.signal], LIST_TIMEOUT_MS);
    try {
      state.offers = await peer.source.list(limit);
    } catch (error) {
      if (signal.aborted || peer.signal.aborted) return;
      this.ports.log.debug({ peer: peer.nodeId, err: error }, "a peer lists no snapshots");
      state.offers = [];
      this.ports.report(peer.nodeId, offenceOf(error));
    } finally {
      state.askedAtMs = this.ports.clock.monotonicMs();
      state.isAsked = false;
    }
  }
}

/** What it costs a peer that an answer of it failed. */
export function offenceOf(error: unknown): Offence {
  return errorCode(error) === "PEER_PROTOCOL" ? "malformed" : "unanswered";
}

function keyOf({ height, format, chunks, id }: SnapshotOffer): string {
  return `${height}/${format}/${chunks}/${id}`;
}
