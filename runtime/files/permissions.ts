/**
 * What a user other than this process' may do with files, by their modes: root asks, who may do everything.
 * Further groups of that user and access lists are not looked at.
 */
import { readdirSync, type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Owner } from "./owner.js";

/** True when the user may pass through the folder and all folders above it. */
export function canEnter(folder: string, user: Owner): boolean {
  const parent = dirname(folder);
  return canPass(folder, user) && (parent === folder || canEnter(parent, user));
}

/** True when the user may pass through the folder itself. */
export function canPass(folder: string, user: Owner): boolean {
  const stats = statSync(folder);
  return (stats.mode & executeBit(stats, user)) !== 0;
}

/** True when the user may read a file, or a folder with everything below it, once the way to it is open. */
export function canRead(path: string, user: Owner): boolean {
  const stats = statSync(path);
  const bits = executeBit(stats, user);
  // The execute bit of each class stands two places below its read bit.
  if ((stats.mode & (bits << 2)) === 0) return false;
  return !stats.isDirectory() || ((stats.mode & bits) !== 0 && canReadTree(path, user));
}

/** True when the user may read everything below the folder (links are not followed). */
export function canReadTree(folder: string, user: Owner): boolean {
  return readdirSync(folder, { withFileTypes: true }).every(
    (entry) => entry.isSymbolicLink() || canRead(join(folder, entry.name), user),
  );
}

/** The execute bit of the permission class that applies to the user. */
function executeBit({ uid, gid }: Stats, user: Owner): number {
  if (uid === user.uid) return 0o100;
  return gid === user.gid ? 0o010 : 0o001;
}
