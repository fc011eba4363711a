/**
 * The snapshots on disk: `<height>/` with `manifest` and chunks. A folder comes to its name whole,
 * and leaves it before it is deleted; what a crash left between is removed at the next start.
 */
import { type FileHandle, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import { sha256Hex } from "../../../chain/hashes.js";
import { errorCode, errorMessage } from "../../../chain/errors.js";
import type { Hash32, Height } from "../../../chain/hex.js";
import { ensureFolder, syncFolder } from "../../../runtime/files/folder.js";
import { failpoint } from "../../../runtime/process/failpoint.js";
import type { Logger } from "../../../runtime/process/logger.js";
import { SnapshotError } from "./snapshot-error.js";
import {
  decodeManifest,
  MAX_CHUNK_BYTES,
  MAX_MANIFEST_BYTES,
  SNAPSHOT_FORMAT,
  type SnapshotManifest,
  snapshotIdOf,
} from "./snapshot-manifest.js";
import {
  chunkFileName,
  MANIFEST_FILE,
  type SnapshotInput,
  writeSnapshot,
} from "./snapshot-write.js";
import { assertRoom, type DiskRoom, diskRoomOf, folderBytes, stateBytes } from "./snapshot-room.js";
import type { Database } from "../../store/database.js";
import type { SnapshotOffer } from "../statesync-ports.js";

/** Named crash points, for the fault tests. */
export const SNAPSHOT_FAILPOINTS = [
  "snapshot.after-folder",
  "snapshot.after-files",
  "snapshot.after-rename",
  "snapshot.after-retire",
] as const;

/** Most snapshots in one list, the newest ones. */
export const MAX_LISTED_SNAPSHOTS = 10;

/** Prefix of a folder that is being written or deleted. */
const WRITING = "writing-";
const RETIRED = "retired-";

const HEIGHT_NAME = /^[1-9][0-9]{0,14}$/;

interface KeptSnapshot {
  readonly manifest: SnapshotManifest;
  readonly id: Hash32;
}

interface SnapshotFile {
  readonly name: string;
  readonly maxBytes: number;
  isRight(bytes: Uint8Array): boolean;
}

/** What peers may ask for. */
export interface SnapshotLibrary {
  /** The newest snapshots, newest first; at most 10. */
  list(): readonly SnapshotOffer[];
  /** Undefined for a snapshot that is not here, or damaged on disk. */
  manifest(height: Height, id: Hash32): Promise<Uint8Array | undefined>;
  /** The same of a chunk. */
  chunk(height: Height, id: Hash32, index: number): Promise<Uint8Array | undefined>;
}

/** What a folder of snapshots is opened with. */
export interface SnapshotFolderOptions {
  readonly folder: string;
  /** Block 0 of this node's chain. */
  readonly genesisHash: Hash32;
  /** Newest block of it when the folder is opened. */
  readonly headHeight: Height;
  /** Oldest block that is still there, then. */
  readonly oldestBlock: Height;
  readonly log: Logger;
  /** Crash points; the runtime's own by default. */
  readonly failpoint?: (name: (typeof SNAPSHOT_FAILPOINTS)[number]) => void;
  /** Room on the folder's disk; the system's word by default. */
  readonly disk?: (folder: string) => Promise<DiskRoom>;
}

/** Snapshots in `data/snapshots`. */
export class SnapshotFolder implements SnapshotLibrary {
  /** One for each folder, by height. */
  private readonly kept = new Map<Height, KeptSnapshot>();

  private constructor(private readonly options: SnapshotFolderOptions) {}

  /**
   * Opens the folder, which may be missing: removes what is half there, damaged, of another chain, above the
   * head, or too far below the oldest block. What cannot be read or removed now stays where it is, and is not
   * offered: a node does without.
   */
  static async open(options: SnapshotFolderOptions): Promise<SnapshotFolder> {
    const opened = new SnapshotFolder(options);
    for (const name of await opened.names()) {
      const isHalf = name.startsWith(WRITING) || name.startsWith(RETIRED);
      if (isHalf) await opened.isLetGo(name, () => removeWhole(path.join(options.folder, name)));
      else if (HEIGHT_NAME.test(name)) await opened.loadKnown(Number(name));
    }
    return opened;
  }

  /** Names in the folder; none where it cannot be listed now. */
  private async names(): Promise<readonly string[]> {
    const { folder, log } = this.options;
    try {
      return await namesIn(folder);
    } catch (err) {
      const reason = errorMessage(err);
      log.warn(
        { folder, reason, err },
        "the folder of snapshots cannot be read now: none is offered",
      );
      return [];
    }
  }

  private get folder(): string {
    return this.options.folder;
  }

  /** Height of the oldest snapshot; undefined without any. */
  get oldestHeight(): Height | undefined {
    return this.heights()[0];
  }

  /** How many there are, on disk and offered. */
  get count(): number {
    return this.kept.size;
  }

  list(): readonly SnapshotOffer[] {
    const newest = this.heights().slice(-MAX_LISTED_SNAPSHOTS).toReversed();
    return newest.flatMap((height) => {
      const snapshot = this.kept.get(height);
      if (snapshot === undefined) return [];
      const { id, manifest } = snapshot;
      return [{ height, format: SNAPSHOT_FORMAT, chunks: manifest.chunkHashes.length, id }];
    });
  }

  async manifest(height: Height, id: Hash32): Promise<Uint8Array | undefined> {
    const isRight = (bytes: Uint8Array) => snapshotIdOf(bytes) === id;
    const file = { name: MANIFEST_FILE, maxBytes: MAX_MANIFEST_BYTES, isRight };
    const snapshot = this.kept.get(height);
    return snapshot?.id === id ? this.fileOf(snapshot, file) : undefined;
  }

  async chunk(height: Height, id: Hash32, index: number): Promise<Uint8Array | undefined> {
    const snapshot = this.kept.get(height);
    const expected = snapshot?.manifest.chunkHashes[index];
    if (snapshot?.id !== id || expected === undefined) return undefined;
    const isRight = (bytes: Uint8Array) => sha256Hex(bytes) === expected;
    const file = { name: chunkFileName(index), maxBytes: MAX_CHUNK_BYTES, isRight };
    return this.fileOf(snapshot, file);
  }

  /**
   * A file for a peer; undefined where it cannot be read now. One that is lost or not what it should be ends
   * the offer: whoever hands out a false one is taken for an attacker, and who has none is asked again and
   * again by peers that cannot do without it.
   */
  private async fileOf(
    snapshot: KeptSnapshot,
    file: SnapshotFile,
  ): Promise<Uint8Array | undefined> {
    const { height } = snapshot.manifest;
    const { name } = file;
    let bytes: Uint8Array | undefined;
    try {
      bytes = await this.read(path.join(`${height}`, name), file.maxBytes);
    } catch (err) {
      this.options.log.debug({ height, name, err }, "a file of a snapshot cannot be read now");
      return undefined;
    }
    if (bytes !== undefined && file.isRight(bytes)) return bytes;
    // Deleted meanwhile, as an old one.
    if (this.kept.get(height) !== snapshot) return undefined;
    this.options.log.error(
      { folder: path.join(this.folder, `${height}`), name },
      "a snapshot's file is lost or damaged: the snapshot is offered no more; delete its folder",
    );
    this.kept.delete(height);
    return undefined;
  }

  /**
   * Writes a snapshot, unless its height has one.
   * @throws SNAPSHOT_WRITE_FAILED or SNAPSHOT_NO_ROOM with nothing left behind, or the signal's reason
   */
  async add(input: SnapshotInput, signal: AbortSignal): Promise<SnapshotManifest | undefined> {
    const { height } = input;
    if (this.kept.has(height)) return undefined;
    const draft = path.join(this.folder, `${WRITING}${height}`);
    try {
      await removeWhole(draft);
      ensureFolder(this.folder);
      await this.needRoom(await this.expectedBytes(input.database));
      await mkdir(draft, { mode: 0o700 });
      this.reached("snapshot.after-folder");
      const manifest = await writeSnapshot(input, {
        folder: draft,
        signal,
        needRoom: (sizeBytes) => this.needRoom(sizeBytes),
      });
      await syncFolder(draft);
      this.reached("snapshot.after-files");
      await rename(draft, path.join(this.folder, `${height}`));
      await syncFolder(this.folder);
      this.reached("snapshot.after-rename");
      await this.load(height);
      return manifest;
    } catch (cause) {
      await removeWhole(draft).catch(() => undefined);
      signal.throwIfAborted();
      if (errorCode(cause) === "SNAPSHOT_NO_ROOM") throw cause;
      const reason = errorMessage(cause);
      throw new SnapshotError(
        "SNAPSHOT_WRITE_FAILED",
        `the snapshot of height ${height} cannot be written to ${this.folder}: ${reason}`,
        { details: { folder: this.folder, height, reason }, retriable: true, cause },
      );
    }
  }

  /** Throws SNAPSHOT_NO_ROOM. */
  private async needRoom(sizeBytes: number): Promise<void> {
    const { disk = diskRoomOf } = this.options;
    assertRoom(this.folder, sizeBytes, await disk(this.folder));
  }

  /**
   * What the next snapshot will take: as much as the last one, else as the state in the store. Those that
   * somebody has deleted meanwhile are offered no more.
   */
  private async expectedBytes(database: Database): Promise<number> {
    for (const height of this.heights().toReversed()) {
      const sizeBytes = await folderBytes(path.join(this.folder, `${height}`));
      if (sizeBytes !== undefined) return sizeBytes;
      if (this.kept.delete(height)) this.options.log.warn({ height }, "a snapshot was deleted");
    }
    return stateBytes(database);
  }

  /** Deletes all but the newest `count` snapshots; one that cannot be deleted is offered no more. */
  async keepNewest(count: number): Promise<void> {
    const heights = this.heights();
    for (const height of heights.slice(0, Math.max(0, heights.length - count))) {
      // Another call may have come to it meanwhile.
      if (!this.kept.delete(height)) continue;
      if (await this.isLetGo(`${height}`, () => this.remove(height))) {
        this.options.log.info({ height }, "a snapshot is deleted");
      }
    }
  }

  /** Whether what is not offered went; what the system does not let be removed now stays on disk. */
  private async isLetGo(name: string, removal: () => Promise<void>): Promise<boolean> {
    try {
      await removal();
      return true;
    } catch (err) {
      const file = path.join(this.folder, name);
      const reason = errorMessage(err);
      this.options.log.warn(
        { file, reason, err },
        "a snapshot cannot be removed now: it stays, and is not offered",
      );
      return false;
    }
  }

  private async remove(height: Height): Promise<void> {
    const retired = path.join(this.folder, `${RETIRED}${height}`);
    try {
      await rename(path.join(this.folder, `${height}`), retired);
    } catch (error) {
      // Somebody else has deleted it.
      if (errorCode(error) === "ENOENT") return;
      throw error;
    }
    this.reached("snapshot.after-retire");
    await removeWhole(retired);
  }

  /**
   * What lies above the head was written before the chain was put back older, and may be of blocks that will
   * never be: who offers such a one is taken for an attacker, and the right one would not be written. Who
   * joined by one whose next block is pruned, because it could once not be read or removed, would be stuck.
   */
  private async loadKnown(height: Height): Promise<void> {
    const { headHeight, oldestBlock } = this.options;
    if (height > headHeight) await this.removeUseless(height, "above the newest block");
    else if (height + 1 >= oldestBlock) await this.load(height);
    else await this.removeUseless(height, "the blocks behind it are pruned");
  }

  private async load(height: Height): Promise<void> {
    const { genesisHash, log } = this.options;
    let bytes: Uint8Array | undefined;
    let names: ReadonlySet<string>;
    try {
      bytes = await this.read(path.join(`${height}`, MANIFEST_FILE), MAX_MANIFEST_BYTES);
      names = new Set(await namesIn(path.join(this.folder, `${height}`)));
    } catch (err) {
      log.warn({ height, err }, "a snapshot cannot be read now: it stays, and is not offered");
      return;
    }
    try {
      const manifest = bytes === undefined ? undefined : decodeManifest(bytes);
      const isOurs = manifest?.height === height && manifest.genesisHash === genesisHash;
      const isWhole = manifest?.chunkHashes.every((_, index) => names.has(chunkFileName(index)));
      if (isOurs && isWhole === true && bytes !== undefined) {
        this.kept.set(height, { manifest, id: snapshotIdOf(bytes) });
        return;
      }
    } catch (err) {
      log.warn({ height, err }, "a snapshot on disk is damaged");
    }
    await this.removeUseless(height, "damaged, or of another chain");
  }

  private async removeUseless(height: Height, reason: string): Promise<void> {
    this.options.log.warn({ height, reason }, "a snapshot of no use is removed");
    await this.isLetGo(`${height}`, () => this.remove(height));
  }

  private reached(name: (typeof SNAPSHOT_FAILPOINTS)[number]): void {
    (this.options.failpoint ?? failpoint)(name);
  }

  private heights(): Height[] {
    return [...this.kept.keys()].toSorted((left, right) => left - right);
  }

  /**
   * A file's bytes; undefined when it is not there (any more) or longer than it may be. Throws the
   * system's fault.
   */
  private async read(name: string, maxBytes: number): Promise<Uint8Array | undefined> {
    let handle: FileHandle;
    try {
      handle = await open(path.join(this.folder, name), "r");
    } catch (error) {
      if (errorCode(error) === "ENOENT") return undefined;
      throw error;
    }
    try {
      const { size: sizeBytes } = await handle.stat();
      return sizeBytes > maxBytes ? undefined : await handle.readFile();
    } finally {
      await handle.close();
    }
  }
}

/** Removes a folder with all that is in it, if it is there. */
async function removeWhole(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}

/** Names in a folder; none where it is missing. */
async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [];
    throw error;
  }
}
