/**
 * Where a state is restored, and how it takes the place of the chain's folder; every step may be
 * the last one before a crash.
 */
import { existsSync } from "node:fs";
import { readdir, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { readHeight } from "../../chain/encoding/height-bytes.js";
import { syncFolder } from "../../runtime/files/folder.js";
import { openDatabase, StoreError, storeKey } from "../store/database.js";
import { restoredHeight } from "./snapshot/snapshot-restore.js";
import { type DiskRoom, diskRoomOf } from "./snapshot/snapshot-room.js";

/** Names in the node's `data` folder. */
const NAMES = {
  /** What the node works on. */
  chain: "chain",
  /** A store that is being restored; complete when it says so itself. */
  restoring: "chain.restoring",
  /** The chain that it takes the place of: height 0, to be deleted. */
  replaced: "chain.replaced",
  /** Fetched chunks, a folder for each snapshot. */
  chunks: "statesync",
} as const;

/** The folders of a node that state sync touches. */
export class StateSyncFolders {
  /** @param disk room on the folder's disk; the system's word by default */
  constructor(
    private readonly data: string,
    private readonly disk: (folder: string) => Promise<DiskRoom> = diskRoomOf,
  ) {}

  /** Where a store is restored. */
  get restoring(): string {
    return path.join(this.data, NAMES.restoring);
  }

  /** Where the chunks of a snapshot are kept. */
  chunksOf(name: string): string {
    return path.join(this.data, NAMES.chunks, name);
  }

  /**
   * Whether a snapshot may take so many bytes: those that are free, and those of chunks that are here,
   * which it goes on with or deletes. Else one that was cut off would lack the room that it has taken. A disk
   * that does not tell its room is taken to have it.
   */
  async hasRoom(neededBytes: number): Promise<boolean> {
    const { freeBytes, totalBytes } = await this.disk(this.data);
    if (totalBytes === 0) return true;
    return neededBytes <= freeBytes || neededBytes <= freeBytes + (await this.chunkBytes());
  }

  private async chunkBytes(): Promise<number> {
    const folder = this.at("chunks");
    let sizeBytes = 0;
    for (const name of await readdir(folder, { recursive: true }).catch(() => [])) {
      const stats = await stat(path.join(folder, name)).catch(() => undefined);
      if (stats?.isFile() === true) sizeBytes += stats.size;
    }
    return sizeBytes;
  }

  /** Deletes the chunks of all snapshots but one. */
  async keepOnlyChunks(name: string | undefined): Promise<void> {
    const folder = path.join(this.data, NAMES.chunks);
    for (const other of await readdir(folder).catch(() => [])) {
      if (other !== name) await rm(path.join(folder, other), { recursive: true, force: true });
    }
    if (name === undefined) await rm(folder, { recursive: true, force: true });
  }

  /**
   * With no store open: deletes the chunks that nobody will restore, as those of a state sync that was given
   * up: it is off, or the chain has blocks.
   * @returns whether there were any
   */
  async dropUselessChunks({ isOn }: { readonly isOn: boolean }): Promise<boolean> {
    if (!existsSync(this.at("chunks"))) return false;
    if (isOn && !(await hasBlocks(this.at("chain")))) return false;
    await this.keepOnlyChunks(undefined);
    return true;
  }

  /**
   * With no store open: a complete restored store takes the place of a chain without blocks, a part of
   * one is deleted. A chain with blocks was put there since, and is nothing to be thrown away.
   * @returns whether one took its place
   */
  async adopt(): Promise<boolean> {
    const isComplete = (await restoredHeight(this.restoring)) !== undefined;
    const isWanted = isComplete && !(await hasBlocks(this.at("chain")));
    if (isWanted) await this.replaceChain();
    else await rm(this.restoring, { recursive: true, force: true });
    if (existsSync(this.at("chain"))) {
      await rm(this.at("replaced"), { recursive: true, force: true });
    }
    return isWanted;
  }

  private async replaceChain(): Promise<void> {
    if (existsSync(this.at("chain"))) {
      await rm(this.at("replaced"), { recursive: true, force: true });
      await rename(this.at("chain"), this.at("replaced"));
    }
    await rename(this.restoring, this.at("chain"));
    await syncFolder(this.data);
    await this.keepOnlyChunks(undefined);
  }

  private at(name: keyof typeof NAMES): string {
    return path.join(this.data, NAMES[name]);
  }
}

/** Whether a store is further than block 0; false where there is none that can be read. */
async function hasBlocks(folder: string): Promise<boolean> {
  if (!existsSync(path.join(folder, "CURRENT"))) return false;
  try {
    const database = await openDatabase(folder);
    try {
      const tip = database.get(storeKey("tip"));
      return tip !== undefined && readHeight(tip, 0) > 0;
    } finally {
      await database.close();
    }
  } catch (error) {
    if (error instanceof StoreError && error.code === "STORE_CORRUPT") return false;
    throw error;
  }
}
