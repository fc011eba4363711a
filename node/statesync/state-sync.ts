/**
 * State sync: instead of executing all blocks a node without any takes the newest snapshot that
 * peers have, and proves it by headers that the light client verified. Nothing is believed because
 * of who sent it.
 */
import { LRUCache } from "lru-cache";
import { errorCode, errorMessage } from "../../chain/errors.js";
import type { Hash32, Height } from "../../chain/hex.js";
import { limitedSignal, sleep } from "../../runtime/process/task.js";
import type { NodeId } from "../p2p/node-key.js";
import type { ExecutedBlock } from "../store/block-commit.js";
import { type EvidenceWindow, fetchBackfill } from "./backfill.js";
import { LightClient, type LightClientOptions } from "./light/light-client.js";
import { proveState } from "./light/light-state.js";
import {
  decodeManifest,
  type SnapshotManifest,
  snapshotIdOf,
} from "./snapshot/snapshot-manifest.js";
import { SnapshotGuard } from "./snapshot/snapshot-guard.js";
import { CHUNK_BYTES } from "./snapshot/snapshot-records.js";
import { restoreSnapshot } from "./snapshot/snapshot-restore.js";
import { ChunkFetch, ChunkFolder } from "./state-sync-chunks.js";
import type { StateSyncSettings } from "../settings/state-sync-config.js";
import { StateSyncError } from "./state-sync-error.js";
import type { StateSyncFolders } from "./state-sync-folders.js";
import {
  offenceOf,
  type OfferPorts,
  SnapshotOffers,
  type SnapshotPeer,
} from "./state-sync-offers.js";
import type { Backfill, ProvenHeight, SnapshotOffer } from "./statesync-ports.js";

/** What state sync is made of. */
export interface StateSyncParts extends OfferPorts {
  readonly settings: StateSyncSettings;
  readonly folders: StateSyncFolders;
  readonly providers: LightClientOptions["providers"];
  readonly verifySignature: LightClientOptions["verifySignature"];
  /** Name of the chain in headers. */
  readonly chainId: string;
  readonly genesisBlock: ExecutedBlock;
  readonly window: EvidenceWindow;
}

/** Codes of faults that pass: they are logged, and all is tried again. */
const PASSING_CODES: readonly string[] = [
  "SERVER_UNAVAILABLE",
  "SERVER_ANSWER_INVALID",
  "SNAPSHOT_UNAVAILABLE",
  "LIGHT_FUTURE",
];

/**
 * More snapshots, false or incomplete, than peers bring up before they are banned; and more peers than a
 * node has.
 */
const MAX_REMEMBERED = 1_000;

/** Pause before all is looked at again. */
const RETRY_MS = 1_000;

/** How often it is logged that there is nothing to restore. */
const LOG_INTERVAL_MS = 10_000;

/** Chunks, the restored store, and what is sorted for it lie on disk beside each other. */
const ROOM_PER_BYTE = 3;

/** Digits of a snapshot's id that tell its folder from others of the same height. */
const ID_DIGITS = 16;

/** One run of state sync. */
export class StateSync {
  private readonly light: LightClient;
  private readonly offers: SnapshotOffers;
  private readonly rejected = new LRUCache<Hash32, true>({ max: MAX_REMEMBERED });
  /** How often a snapshot was begun with and nobody had all of it. */
  private readonly failures = new LRUCache<Hash32, number>({ max: MAX_REMEMBERED });
  /** Until when peers that gave no chunk are passed over, in the next snapshot as well. */
  private readonly passedOver = new LRUCache<NodeId, number>({ max: MAX_REMEMBERED });
  /** The newest height that was proven. */
  private proven: ProvenHeight | undefined;
  /** What was before a height of which all chunks came: its headers are not fetched twice. */
  private past: { readonly height: Height; readonly backfill: Backfill } | undefined;
  private loggedAtMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly parts: StateSyncParts) {
    const { settings } = parts;
    this.light = new LightClient({
      ...parts,
      trust: {
        height: settings.trustHeight,
        hash: settings.trustHash,
        periodNs: BigInt(Math.ceil(settings.trustPeriodMs)) * 1_000_000n,
      },
    });
    this.offers = new SnapshotOffers(parts);
  }

  /**
   * Resolves with the height when a complete store lies in the folder for it; looks for snapshots
   * until then.
   * @throws LIGHT_DIVERGENCE, TRUST_HASH_MISMATCH, LIGHT_EXPIRED, LIGHT_INVALID, LIGHT_UNTRUSTED:
   * somebody must look; faults of the disk; or the signal's reason
   */
  async run(signal: AbortSignal): Promise<Height> {
    const { settings, log, clock } = this.parts;
    const ending = new AbortController();
    const inner = AbortSignal.any([signal, ending.signal]);
    const watching = this.offers.watch(inner).catch(() => undefined);
    const startedAtMs = clock.monotonicMs();
    try {
      log.info({ discoveryMs: settings.discoveryMs }, "state sync looks for snapshots");
      await this.untilPassed(() => this.light.verify(settings.trustHeight, inner), inner);
      await sleep(settings.discoveryMs - (clock.monotonicMs() - startedAtMs), { signal: inner });
      for (;;) {
        const height = await this.tryBest(inner);
        if (height !== undefined) return height;
        await sleep(RETRY_MS, { signal: inner });
      }
    } finally {
      ending.abort(new Error("state sync has ended"));
      await watching;
    }
  }

  /** Repeats what fails in a way that passes. */
  private async untilPassed<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        this.reportPassing(error, signal);
        await sleep(RETRY_MS, { signal });
      }
    }
  }

  /** Rethrows what does not pass; logs the rest, but not every second. */
  private reportPassing(error: unknown, signal: AbortSignal): void {
    signal.throwIfAborted();
    if (!PASSING_CODES.includes(errorCode(error))) throw error;
    this.logSeldom(errorMessage(error));
  }

  private logSeldom(reason: string): void {
    const nowMs = this.parts.clock.monotonicMs();
    if (nowMs - this.loggedAtMs < LOG_INTERVAL_MS) return;
    this.loggedAtMs = nowMs;
    this.parts.log.info({ reason }, "state sync waits");
  }

  /** The newest snapshot whose height can be proven; undefined when none was restored. */
  private async tryBest(signal: AbortSignal): Promise<Height | undefined> {
    // What failed goes behind what did not: else peers whose best snapshot is damaged are asked
    // for that one for ever, whatever else they have.
    const candidates = this.offers
      .candidates((id) => this.rejected.has(id), this.parts.settings.trustHeight)
      .toSorted((one, other) => this.failuresOf(one) - this.failuresOf(other));
    if (candidates.length === 0) this.logSeldom("no peer has a snapshot");
    for (const offer of candidates) {
      // Its holders were forgotten for another one of theirs: they are asked again in a moment.
      if (this.offers.holders(offer).length === 0) continue;
      const refusal = await this.refusalOf(offer);
      if (refusal !== undefined) {
        this.logSeldom(refusal);
        continue;
      }
      try {
        const proven = await this.prove(offer.height, signal);
        await this.restore(offer, proven, signal);
        return offer.height;
      } catch (error) {
        if (errorCode(error) === "SNAPSHOT_INVALID") {
          await this.reject(offer, error);
          continue;
        }
        if (errorCode(error) === "SNAPSHOT_UNAVAILABLE") {
          this.failures.set(offer.id, this.failuresOf(offer) + 1);
        }
        this.reportPassing(error, signal);
      }
    }
    return undefined;
  }

  private failuresOf({ id }: SnapshotOffer): number {
    return this.failures.get(id) ?? 0;
  }

  /** Why a snapshot is not even begun with: the number of its chunks is only what peers say. */
  private async refusalOf({ height, chunks }: SnapshotOffer): Promise<string | undefined> {
    const { settings, folders } = this.parts;
    const sizeBytes = chunks * CHUNK_BYTES;
    if (sizeBytes > settings.maxSnapshotBytes) {
      return `the snapshot of height ${height} is larger than statesync.max_snapshot_bytes`;
    }
    const neededBytes = sizeBytes * ROOM_PER_BYTE;
    if (await folders.hasRoom(neededBytes)) return undefined;
    return `the snapshot of height ${height} may need ${neededBytes} bytes of disk`;
  }

  private async prove(height: Height, signal: AbortSignal): Promise<ProvenHeight> {
    if (this.proven?.header.height !== height) {
      this.proven = await proveState(height, { ...this.parts, light: this.light }, signal);
    }
    return this.proven;
  }

  /**
   * What was before a proven height. It may take hours, and so comes after the chunks: a snapshot that nobody
   * has costs none of it, and one that its peers delete meanwhile is here.
   */
  private async lookBack({ header }: ProvenHeight, signal: AbortSignal): Promise<Backfill> {
    const { height } = header;
    let { past } = this;
    if (past?.height !== height) {
      const backfill = await this.untilPassed(
        () => fetchBackfill(header, this.parts, signal),
        signal,
      );
      past = { height, backfill };
      this.past = past;
    }
    return past.backfill;
  }

  private async restore(
    offer: SnapshotOffer,
    proven: ProvenHeight,
    signal: AbortSignal,
  ): Promise<void> {
    const { parts, offers } = this;
    const { settings, folders, clock, log } = parts;
    const manifest = await this.fetchManifest(offer, signal);
    const name = `${offer.height}-${offer.id.slice(2, 2 + ID_DIGITS)}`;
    await folders.keepOnlyChunks(name);
    const chunks = new ChunkFolder(folders.chunksOf(name), manifest);
    const startedAtMs = clock.monotonicMs();
    const guard = new SnapshotGuard({ manifest, trusted: proven });
    const fetching = new ChunkFetch(offer, chunks, {
      offers,
      report: (nodeId, offence) => parts.report(nodeId, offence),
      check: (index, bytes) => guard.check(index, bytes),
      timeoutMs: settings.chunkTimeoutMs,
      fetchers: settings.chunkFetchers,
      passedOver: this.passedOver,
      clock,
      log,
    });
    const read = async (index: number) =>
      (await chunks.read(index)) ?? (await this.lostChunk(offer.height));
    let first = 0;
    for (let isProven = false; !isProven; first++) {
      await fetching.run({ from: first, to: first + 1 }, signal);
      isProven = guard.takeFirst(first, await read(first));
    }
    await fetching.run({ from: first, to: offer.chunks }, signal);
    const fetchMs = Math.round(clock.monotonicMs() - startedAtMs);
    const { height } = offer;
    log.info({ height, chunks: offer.chunks, fetchMs }, "state sync has all chunks");
    const trusted = { ...proven, backfill: await this.lookBack(proven, signal) };
    log.info({ height, chunks: offer.chunks }, "state sync restores the state");
    let loggedAtMs = clock.monotonicMs();
    await restoreSnapshot({
      folder: folders.restoring,
      manifest,
      trusted,
      genesisBlock: parts.genesisBlock,
      cosmosChainId: parts.chainId,
      signal,
      readChunk: read,
      onChunk: (index) => {
        if (clock.monotonicMs() - loggedAtMs < LOG_INTERVAL_MS) return;
        loggedAtMs = clock.monotonicMs();
        log.info({ height, chunks: offer.chunks, done: index + 1 }, "state sync restores");
      },
    });
    const totalMs = Math.round(clock.monotonicMs() - startedAtMs);
    log.info({ height, ...manifest.counts, totalMs }, "state sync has restored the state");
  }

  /** A chunk that was there a moment ago: it is fetched again. */
  private lostChunk(height: Height): Promise<never> {
    const fault = new StateSyncError("SNAPSHOT_UNAVAILABLE", "a chunk on disk was damaged", {
      retriable: true,
      details: { height },
    });
    return Promise.reject(fault);
  }

  /** The manifest that hashes to the offer's id, from whichever peer gives it. */
  private async fetchManifest(
    offer: SnapshotOffer,
    signal: AbortSignal,
  ): Promise<SnapshotManifest> {
    for (const peer of this.offers.holders(offer)) {
      const bytes = await this.manifestFrom(peer, offer, signal);
      if (bytes === undefined) continue;
      const manifest = decodeManifest(bytes);
      const isAsOffered =
        manifest.height === offer.height && manifest.chunkHashes.length === offer.chunks;
      if (isAsOffered) return manifest;
      this.accuse(peer);
    }
    throw new StateSyncError("SNAPSHOT_UNAVAILABLE", "no peer gives the snapshot's manifest", {
      retriable: true,
      details: { height: offer.height },
    });
  }

  private async manifestFrom(
    peer: SnapshotPeer,
    offer: SnapshotOffer,
    signal: AbortSignal,
  ): Promise<Uint8Array | undefined> {
    const limit = limitedSignal([signal, peer.signal], this.parts.settings.chunkTimeoutMs);
    try {
      const bytes = await peer.source.manifest(offer, limit);
      if (bytes === undefined || snapshotIdOf(bytes) === offer.id) return bytes;
      this.accuse(peer);
    } catch (error) {
      signal.throwIfAborted();
      this.offers.forget(peer);
      if (!peer.signal.aborted) this.parts.report(peer.nodeId, offenceOf(error));
    }
    return undefined;
  }

  /** Never again, and not from those who offered it. */
  private async reject(offer: SnapshotOffer, error: unknown): Promise<void> {
    const peers = this.offers.holders(offer);
    this.parts.log.warn(
      { height: offer.height, id: offer.id, peers: peers.length, err: error },
      "a snapshot is not what was decided",
    );
    this.rejected.set(offer.id, true);
    for (const peer of peers) this.accuse(peer);
    await this.parts.folders.keepOnlyChunks(undefined);
  }

  private accuse(peer: SnapshotPeer): void {
    this.offers.forget(peer);
    this.parts.report(peer.nodeId, "falseSnapshot");
  }
}
