/** Folders that a process needs: there, and on disk with the names in them. */
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { AppError, errorCode, errorMessage } from "../../chain/errors.js";
import { giveFolder } from "./owner.js";

/** A folder is not there and cannot be made; the message names it and the cause. */
export class FolderError extends AppError<"FOLDER_UNUSABLE"> {}

/**
 * Makes a folder, and those above it, where they are missing, as `makeFolders` does.
 * @throws FOLDER_UNUSABLE
 */
export function ensureFolder(folder: string): void {
  try {
    makeFolders(folder);
  } catch (cause) {
    const message = `cannot create the folder ${folder}: ${errorMessage(cause)}`;
    throw new FolderError("FOLDER_UNUSABLE", message, { cause, details: { folder } });
  }
}

/**
 * Makes a folder, and those above it, where they are missing; only the owner may enter, who is that of the
 * folder above where root makes them, and they are on disk afterwards. Step by step, because Node's
 * recursive mkdir calls a read-only file system ENOENT, and never returns where a file system itself refuses
 * with ENOENT, such as /proc. Throws the system's fault.
 */
export function makeFolders(folder: string): void {
  if (existsSync(folder)) return;
  if (dirname(folder) !== folder) makeFolders(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (errorCode(error) === "EEXIST") return;
    throw error;
  }
  giveFolder(folder);
  syncFolderSync(dirname(folder));
}

/**
 * Puts the names in a folder on disk: a file that was made, renamed or removed there is so after a
 * power cut, too. File systems that cannot do that for folders need no help. Throws the system's
 * fault.
 */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } catch (error) {
    if (!NEEDLESS_CODES.has(errorCode(error))) throw error;
  } finally {
    await handle.close();
  }
}

/** The same at once, where nobody can wait; a folder that may not be listed stays unforced. */
export function syncFolderSync(folder: string): void {
  const handle = openIfListable(folder);
  if (handle === undefined) return;
  try {
    fsyncSync(handle);
  } catch (error) {
    if (!NEEDLESS_CODES.has(errorCode(error))) throw error;
  } finally {
    closeSync(handle);
  }
}

/** Undefined for a folder that may be entered but not read: it cannot be opened, and so not be forced. */
function openIfListable(folder: string): number | undefined {
  try {
    return openSync(folder, "r");
  } catch (error) {
    if (errorCode(error) === "EACCES") return undefined;
    throw error;
  }
}

/** What file systems say that know no syncing of folders. */
const NEEDLESS_CODES: ReadonlySet<string> = new Set(["EINVAL", "EPERM", "ENOTSUP"]);
