/**
 * Whose a file or a folder is that root makes in what is somebody else's. A command that is typed as root in
 * a home of another user must leave nothing there that this user's processes cannot read or replace.
 */
import {
  accessSync,
  closeSync,
  constants,
  fchownSync,
  lstatSync,
  openSync,
  type Stats,
  statSync,
} from "node:fs";
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

/**
 * Gives a file away, the last that is done with it: a root without all of root's rights may do nothing more
 * with what is another's. Where it may not even give, the file stays its own, which is better than none.
 * @param handle of the open file: its name may be another's by now
 */
export function giveFile(handle: number, owner: Owner | undefined): void {
  if (owner === undefined) return;
  try {
    fchownSync(handle, owner.uid, owner.gid);
  } catch {
    // See above.
  }
}

/**
 * Gives a folder that this process has just made to whoever has the one above it; not where this process
 * could not use it any more then.
 */
export function giveFolder(folder: string): void {
  const owner =
    process.getuid?.() === 0 ? heirAfter(ownerBy(statSync, dirname(folder))) : undefined;
  if (owner === undefined) return;
  let handle: number | undefined;
  try {
    // What has taken its name since, such as a link, is not given away.
    const { O_DIRECTORY, O_NOFOLLOW, R_OK, W_OK, X_OK } = constants;
    handle = openSync(folder, O_DIRECTORY | O_NOFOLLOW);
    fchownSync(handle, owner.uid, owner.gid);
    if (!isOpenTo(folder, R_OK | W_OK | X_OK)) fchownSync(handle, 0, process.getgid?.() ?? 0);
  } catch {
    // It stays root's, as files do; a fault of the disk is told by what is written next.
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}

function isOpenTo(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
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
