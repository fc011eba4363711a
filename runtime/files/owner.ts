/**
 * Whose a file or a folder is that root makes in what is somebody else's. A command that is typed as root in
 * a home of another user must leave nothing there that this user's processes cannot read or replace.
 */
import { lchownSync, lstatSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";

/** User and group, by their numbers. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Who is to have a file that this process is about to write under a name: whoever has what it takes the
 * place of, else whoever has its folder.
 * @param former what it takes the place of, where that has another name by now
 * @returns undefined where the file is its maker's, as always but for root, or where it is root's anyway
 */
export function heirOf(file: string, former = file): Owner | undefined {
  if (process.getuid?.() !== 0) return undefined;
  // A link is replaced itself; a folder may well be one.
  return heirAfter(ownerBy(lstatSync, former) ?? ownerBy(statSync, dirname(file)));
}

/** Gives a folder that this process has just made to whoever has the one above it. */
export function giveFolder(folder: string): void {
  if (process.getuid?.() !== 0) return;
  const owner = heirAfter(ownerBy(statSync, dirname(folder)));
  give(owner, ({ uid, gid }) => lchownSync(folder, uid, gid));
}

/**
 * Gives what was just made away. Where the system does not let root do that, as in a container without the
 * right, it stays root's: that is still better than nothing written.
 */
export function give(owner: Owner | undefined, change: (owner: Owner) => void): void {
  if (owner === undefined) return;
  try {
    change(owner);
  } catch {
    // See above; a fault of the disk is told by what is written next.
  }
}

/** Undefined for root: what it makes is root's without a word. */
function heirAfter(owner: Owner | undefined): Owner | undefined {
  return owner?.uid === 0 ? undefined : owner;
}

/** Undefined where there is nothing, or it cannot be looked at: then writing it tells why. */
function ownerBy(look: (path: string) => Stats, path: string): Owner | undefined {
  try {
    const { uid, gid } = look(path);
    return { uid, gid };
  } catch {
    return undefined;
  }
}
