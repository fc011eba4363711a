/**
 * Takes a snapshot at every height that is a multiple of the interval: the view of the store is
 * taken at the publishing of the block, the files are written in the background. One at a time; a
 * height that comes while the last one is still being written is left out. No blocks are pruned from
 * the oldest snapshot on, so that none may stay that nobody replaces.
 */
import { errorCode, errorMessage } from "../../../chain/errors.js";
import type { Hash32, Height } from "../../../chain/hex.js";
import type { Logger } from "../../../runtime/process/logger.js";
import { TaskGroup } from "../../../runtime/process/task.js";
import type { CommittedBlock, EventBus } from "../../view/event-bus.js";
import type { BlockStore } from "../../store/blocks/block-store.js";
import type { Database, StoreSnapshot } from "../../store/database.js";
import type { SnapshotFolder } from "./snapshot-folder.js";
import type { SnapshotManifest } from "./snapshot-manifest.js";

const NOT_WRITTEN = "snapshot not written";

/** What the service is made of. */
export interface SnapshotServiceOptions {
  readonly folder: SnapshotFolder;
  readonly database: Database;
  readonly blocks: Pick<BlockStore, "supply">;
  readonly bus: EventBus;
  readonly genesisHash: Hash32;
  /** 0 writes none, and those that are there go. */
  readonly intervalBlocks: number;
  /** Newest snapshots that are kept; 0 keeps all, whatever the interval and the room. */
  readonly keepRecent: number;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Writes snapshots until it is closed. */
export class SnapshotService {
  private readonly tasks: TaskGroup;
  private readonly unsubscribe: () => void;
  private isWriting = false;
  /** Code of the fault for which the last one was left out. */
  private missedFor: string | undefined;

  constructor(private readonly options: SnapshotServiceOptions) {
    const { bus, intervalBlocks, keepRecent, log, signal } = options;
    this.tasks = new TaskGroup({
      signal,
      onFault: (fault, error) => {
        log.error({ err: error, reason: errorMessage(error) }, fault);
      },
    });
    const kept = intervalBlocks === 0 ? 0 : keepRecent;
    this.tasks.run("snapshot not deleted", () => this.keepNewest(kept));
    this.unsubscribe =
      intervalBlocks === 0 ? () => undefined : bus.on("block", (block) => this.onBlock(block));
  }

  /** Gives up what is being written; nothing of it stays. */
  async close(): Promise<void> {
    this.unsubscribe();
    await this.tasks.stop();
  }

  private onBlock({ block }: CommittedBlock): void {
    const { height } = block.header;
    if (height % this.options.intervalBlocks !== 0) return;
    if (this.isWriting) {
      this.options.log.info({ height }, "snapshot left out: the last one is still being written");
      return;
    }
    this.isWriting = true;
    // Here and now, because the next block changes the store.
    const view = this.options.database.snapshot();
    this.tasks.run(NOT_WRITTEN, (signal) => this.write(height, view, signal));
  }

  private async write(height: Height, view: StoreSnapshot, signal: AbortSignal): Promise<void> {
    const { keepRecent, log } = this.options;
    const startedAtMs = performance.now();
    let manifest: SnapshotManifest | undefined;
    try {
      manifest = await this.add(height, view, signal);
    } catch (error) {
      signal.throwIfAborted();
      await this.miss(height, error);
      return;
    }
    this.missedFor = undefined;
    if (manifest === undefined) {
      log.info({ height }, "snapshot left out: its height has one");
      return;
    }
    const durationMs = Math.round(performance.now() - startedAtMs);
    const chunks = manifest.chunkHashes.length;
    log.info({ height, chunks, ...manifest.counts, durationMs }, "snapshot written");
    await this.keepNewest(keepRecent);
  }

  /**
   * Blocks must not gather for ever behind snapshots that none follows, whatever the reason: the oldest one
   * goes, and the last one where the next cannot be written either.
   */
  private async miss(height: Height, error: unknown): Promise<void> {
    const { folder, log } = this.options;
    const [code, reason] = [errorCode(error), errorMessage(error)];
    const before = this.missedFor;
    this.missedFor = code;
    if (code !== "SNAPSHOT_NO_ROOM") log.error({ height, err: error, reason }, NOT_WRITTEN);
    // Once is enough until there is room again.
    else if (before !== code) log.warn({ height, reason }, "snapshot left out: make room");
    await this.keepNewest(Math.max(before === undefined ? 1 : 0, folder.count - 1));
  }

  private async keepNewest(count: number): Promise<void> {
    const { folder, keepRecent } = this.options;
    if (keepRecent !== 0) await folder.keepNewest(count);
  }

  private async add(
    height: Height,
    view: StoreSnapshot,
    signal: AbortSignal,
  ): Promise<SnapshotManifest | undefined> {
    const { folder, database, blocks, genesisHash } = this.options;
    try {
      const supply = blocks.supply(height);
      if (supply === undefined) throw new RangeError("the block's supply is missing");
      return await folder.add({ database, view, height, supply, genesisHash }, signal);
    } finally {
      this.isWriting = false;
      await view.close();
    }
  }
}
