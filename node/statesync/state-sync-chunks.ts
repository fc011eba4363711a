/**
 * The chunks of one snapshot: fetched from all peers that have it, proven by their hashes, and kept
 * on disk, so that what was fetched before a crash is not fetched again.
 */
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { errorCode } from "../../chain/errors.js";
import { sha256Hex } from "../../chain/hashes.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { Logger } from "../../runtime/process/logger.js";
import { limitedSignal, sleep } from "../../runtime/process/task.js";
import type { NodeId } from "../p2p/node-key.js";
import type { Offence } from "../p2p/peers/peer-scores.js";
import type { SnapshotManifest } from "./snapshot/snapshot-manifest.js";
import { chunkFileName } from "./snapshot/snapshot-write.js";
import { offenceOf, type SnapshotOffers, type SnapshotPeer } from "./state-sync-offers.js";
import { StateSyncError } from "./state-sync-error.js";
import type { SnapshotOffer } from "./statesync-ports.js";

/** Time by the monotonic clock, milliseconds, for each peer that failed. */
export interface PassedOver {
  get(nodeId: NodeId): number | undefined;
  set(nodeId: NodeId, untilMs: number): unknown;
}

/** What fetching needs. */
export interface ChunkPorts {
  readonly offers: Pick<SnapshotOffers, "holders" | "forget">;
  report(nodeId: NodeId, offence: Offence): void;
  /** Looks at each chunk once, as soon as it is here; what it throws ends the fetching. */
  check(index: number, bytes: Uint8Array): void;
  /** Time for one chunk; a peer that needs longer is passed over. */
  readonly timeoutMs: number;
  /** Chunks that are fetched at once. */
  readonly fetchers: number;
  /** Until when each peer that failed is passed over; outlives one snapshot. */
  readonly passedOver: PassedOver;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Chunks of one peer at once: what it answers at once, see the protocol. */
const MAX_CHUNKS_PER_PEER = 4;

/** A peer that failed is not asked again for this long, unless nobody else is there. */
const PASSED_OVER_MS = 15_000;

/** Without any peer for this long another snapshot is looked for. */
const PATIENCE_MS = 30_000;

/**
 * So many times of a chunk longer where peers say that they have it, and give nothing: some who keep
 * silent in turns are hardly asked often enough to be banned.
 */
const SILENT_CHUNKS = 4;

/** A fetcher without a peer looks again after this. */
const IDLE_MS = 100;

/** How often progress is logged. */
const LOG_INTERVAL_MS = 10_000;

/** Chunks on disk. */
export class ChunkFolder {
  constructor(
    readonly folder: string,
    private readonly manifest: SnapshotManifest,
  ) {}

  /** Bytes of a chunk that was kept; undefined where it is missing or not what it should be. */
  async read(index: number): Promise<Uint8Array | undefined> {
    const bytes = await readFile(this.file(index)).catch(() => undefined);
    return bytes !== undefined && this.isRight(index, bytes) ? bytes : undefined;
  }

  /** Whether bytes are the chunk that the manifest names. */
  isRight(index: number, bytes: Uint8Array): boolean {
    return sha256Hex(bytes) === this.manifest.chunkHashes[index];
  }

  /**
   * Keeps a chunk. Not synced to disk: its hash is looked at whenever it is read.
   * @throws CHUNK_WRITE_FAILED
   */
  async keep(index: number, bytes: Uint8Array): Promise<void> {
    const { folder } = this;
    const temporary = `${this.file(index)}.new`;
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await writeFile(temporary, bytes);
      await rename(temporary, this.file(index));
    } catch (cause) {
      const message = `cannot keep chunks of a snapshot in ${folder} (${errorCode(cause)})`;
      throw new StateSyncError("CHUNK_WRITE_FAILED", message, { details: { folder }, cause });
    }
  }

  /** Deletes all. */
  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }

  private file(index: number): string {
    return path.join(this.folder, chunkFileName(index));
  }
}

/** Fetches what is missing of one snapshot. */
export class ChunkFetch {
  private readonly waiting: number[] = [];
  private readonly busy = new Map<NodeId, number>();
  private lastProgressMs: number;
  private fetchedBytes = 0;
  private done = 0;
  private wanted = 0;

  constructor(
    private readonly offer: SnapshotOffer,
    private readonly folder: ChunkFolder,
    private readonly ports: ChunkPorts,
  ) {
    this.lastProgressMs = ports.clock.monotonicMs();
  }

  /**
   * Resolves when the chunks of a range are on disk; to be called for each range once.
   * @param range.to the first one that is not wanted any more
   * @throws SNAPSHOT_UNAVAILABLE when no peer has given any for a while; what `check` throws;
   * CHUNK_WRITE_FAILED; or the signal's reason
   */
  async run(
    range: { readonly from: number; readonly to: number },
    signal: AbortSignal,
  ): Promise<void> {
    this.wanted += range.to - range.from;
    for (let index = range.from; index < range.to; index++) {
      signal.throwIfAborted();
      const kept = await this.folder.read(index);
      if (kept === undefined) this.waiting.push(index);
      else this.take(index, kept);
    }
    // To read what is here may take minutes.
    this.lastProgressMs = this.ports.clock.monotonicMs();
    const { height, chunks } = this.offer;
    this.ports.log.info({ height, chunks, ...range, kept: this.done }, "state sync fetches chunks");
    const ending = new AbortController();
    const inner = AbortSignal.any([signal, ending.signal]);
    const fetchers = Array.from({ length: this.ports.fetchers }, () => this.fetchAll(inner));
    const logging = this.logProgress(inner).catch(() => undefined);
    try {
      await Promise.all(fetchers);
    } finally {
      ending.abort(new Error("the fetching has ended"));
      await Promise.allSettled([...fetchers, logging]);
    }
  }

  private async fetchAll(signal: AbortSignal): Promise<void> {
    while (this.done < this.wanted) {
      signal.throwIfAborted();
      this.assertHope();
      const peer = this.waiting.length === 0 ? undefined : this.choosePeer();
      const index = peer === undefined ? undefined : this.waiting.shift();
      if (peer === undefined || index === undefined) {
        await sleep(IDLE_MS, { signal });
        continue;
      }
      if (!(await this.fetchFrom(peer, index, signal))) this.waiting.push(index);
    }
  }

  /**
   * The least busy peer that has the snapshot; those that failed lately only where all did. Of equals the one
   * whose failure is the oldest: else some that keep silent in turns would hide one that answers.
   */
  private choosePeer(): SnapshotPeer | undefined {
    const nowMs = this.ports.clock.monotonicMs();
    const load = ({ nodeId }: SnapshotPeer) => this.busy.get(nodeId) ?? 0;
    const untilMs = ({ nodeId }: SnapshotPeer) => this.ports.passedOver.get(nodeId) ?? 0;
    const free = this.ports.offers
      .holders(this.offer)
      .filter((peer) => load(peer) < MAX_CHUNKS_PER_PEER);
    const good = free.filter((peer) => nowMs >= untilMs(peer));
    return (good.length > 0 ? good : free).toSorted(
      (one, other) => load(one) - load(other) || untilMs(one) - untilMs(other),
    )[0];
  }

  private async fetchFrom(
    peer: SnapshotPeer,
    index: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { nodeId, source } = peer;
    const limit = limitedSignal([signal, peer.signal], this.ports.timeoutMs);
    this.busy.set(nodeId, (this.busy.get(nodeId) ?? 0) + 1);
    let bytes: Uint8Array | undefined;
    try {
      bytes = await source.chunk(this.offer, index, limit);
    } catch (error) {
      signal.throwIfAborted();
      this.passOver(peer);
      if (!peer.signal.aborted) this.ports.report(nodeId, offenceOf(error));
      this.ports.log.debug({ peer: nodeId, index, err: error }, "a peer sent no chunk");
      return false;
    } finally {
      this.busy.set(nodeId, (this.busy.get(nodeId) ?? 1) - 1);
    }
    if (bytes === undefined) {
      // Deleted, or damaged on its disk: both may happen to an honest peer.
      this.ports.log.info({ peer: nodeId, index }, "a peer has not the chunk that it offered");
      this.passOver(peer);
      this.ports.offers.forget(peer);
      return false;
    }
    if (!this.folder.isRight(index, bytes)) {
      this.ports.log.warn({ peer: nodeId, index }, "a peer sent a false chunk");
      this.passOver(peer);
      this.ports.offers.forget(peer);
      this.ports.report(nodeId, "falseSnapshot");
      return false;
    }
    await this.folder.keep(index, bytes);
    this.take(index, bytes);
    this.fetchedBytes += bytes.length;
    this.lastProgressMs = this.ports.clock.monotonicMs();
    return true;
  }

  private take(index: number, bytes: Uint8Array): void {
    this.ports.check(index, bytes);
    this.done++;
  }

  private passOver({ nodeId }: SnapshotPeer): void {
    this.ports.passedOver.set(nodeId, this.ports.clock.monotonicMs() + PASSED_OVER_MS);
  }

  private assertHope(): void {
    const isAlone = this.ports.offers.holders(this.offer).length === 0;
    const waitedMs = this.ports.clock.monotonicMs() - this.lastProgressMs;
    const patienceMs = PATIENCE_MS + (isAlone ? 0 : SILENT_CHUNKS * this.ports.timeoutMs);
    if (waitedMs < patienceMs) return;
    const reason = isAlone ? "no peer has the snapshot any more" : "no peer gives the snapshot";
    throw new StateSyncError("SNAPSHOT_UNAVAILABLE", reason, {
      retriable: true,
      details: { height: this.offer.height },
    });
  }

  private async logProgress(signal: AbortSignal): Promise<void> {
    for (let lastBytes = 0; ; lastBytes = this.fetchedBytes) {
      await sleep(LOG_INTERVAL_MS, { signal });
      const bytesPerSecond = Math.round(
        ((this.fetchedBytes - lastBytes) * 1_000) / LOG_INTERVAL_MS,
      );
      const { height, chunks } = this.offer;
      const peers = this.ports.offers.holders(this.offer).length;
      this.ports.log.info(
        { height, chunks, done: this.done, bytesPerSecond, peers },
        "state sync goes on fetching",
      );
    }
  }
}
