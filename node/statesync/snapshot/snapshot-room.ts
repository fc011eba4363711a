/**
 * Room on the disk for a snapshot. Snapshots are for others: one that would fill the disk is left out,
 * because the node itself ends where it cannot write its next block.
 */
import { readdir, stat, statfs } from "node:fs/promises";
import path from "node:path";
import { errorCode } from "../../../chain/errors.js";
import { type Database, type KeySpace, storeKey } from "../../store/database.js";
import { SnapshotError } from "./snapshot-error.js";

const GIB = 1024 ** 3;

/** Bytes that stay free for the chain, but on small disks. */
export const RESERVED_BYTES = GIB;

/** Part of a small disk that stays free. */
const RESERVED_SHARE = 0.05;

/** A disk in bytes, as those see it who are not root. */
export interface DiskRoom {
  readonly freeBytes: number;
  /** 0 where it does not tell its room, as some file systems of networks do. */
  readonly totalBytes: number;
}

/** The disk that a folder lies on. */
export async function diskRoomOf(folder: string): Promise<DiskRoom> {
  const { bavail, blocks, bsize } = await statfs(folder);
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

/**
 * Refuses what would leave less than the reserve.
 * @throws SNAPSHOT_NO_ROOM
 */
export function assertRoom(folder: string, neededBytes: number, disk: DiskRoom): void {
  const { freeBytes, totalBytes } = disk;
  if (totalBytes === 0) return;
  const reservedBytes = Math.min(RESERVED_BYTES, Math.floor(totalBytes * RESERVED_SHARE));
  if (freeBytes >= neededBytes + reservedBytes) return;
  throw new SnapshotError(
    "SNAPSHOT_NO_ROOM",
    `the disk of ${folder} has ${freeBytes} bytes free: a snapshot needs ${neededBytes}, ` +
      `and ${reservedBytes} stay free for the chain`,
    { details: { folder, freeBytes, neededBytes, reservedBytes }, retriable: true },
  );
}

/** Bytes of the files in a folder; undefined where it, or a file in it, is being deleted or gone. */
export async function folderBytes(folder: string): Promise<number | undefined> {
  try {
    let sizeBytes = 0;
    for (const name of await readdir(folder)) {
      sizeBytes += (await stat(path.join(folder, name))).size;
    }
    return sizeBytes;
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

const STATE_SPACES: readonly KeySpace[] = ["account", "storage", "code"];

/** Longer than any key of these spaces. */
const LAST_KEY = Buffer.alloc(53, 0xff);

/** What the state takes in the store, about as much as a snapshot; what was just written is not counted. */
export async function stateBytes(database: Database): Promise<number> {
  let sizeBytes = 0;
  for (const space of STATE_SPACES) {
    sizeBytes += await database.diskBytes(storeKey(space), storeKey(space, LAST_KEY));
  }
  return sizeBytes;
}
