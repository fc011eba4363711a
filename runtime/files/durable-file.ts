/**
 * The one owner of files that are whole or absent after a crash or a power cut: written beside
 * their name, forced to disk, then given the name, and that forced to disk, too.
 */
import { randomUUID } from "node:crypto";
import {
  closeSync,
  fchmodSync,
  fstatSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { type FileHandle, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { errorCode } from "../../chain/errors.js";
import { syncFolder, syncFolderSync } from "./folder.js";
import { giveFile, heirOf } from "./owner.js";

/** Mode of every file with a secret: only the owner reads it. */
export const SECRET_MODE = 0o600;

/** Mode of files that hold no secret. */
export const PLAIN_MODE = 0o644;

/** How names of drafts end, and what stands before that. */
const DRAFT_END = ".tmp";
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Pieces of a new file that are gathered before they are written. */
const WRITE_CHARACTERS = 262_144;

/**
 * Replaces a file's content, and leaves it whose it was; a crash leaves the former content or the new one,
 * never a part, and the new one is on disk when the promise resolves. Throws the system's fault, with nothing
 * left beside the file.
 */
export async function replaceFile(
  file: string,
  content: string | Uint8Array,
  mode: number,
): Promise<void> {
  const draft = draftOf(file);
  try {
    await fill(await open(draft, "wx", mode), async (handle) => {
      // The process' mask may have taken bits away.
      await handle.chmod(mode);
      await handle.writeFile(content);
      giveFile(handle.fd, heirOf(file));
    });
    await rename(draft, file);
    await syncFolder(dirname(file));
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw error;
  }
}

/**
 * Removes what processes that were killed left half written beside a file. For whoever alone writes it, by a
 * lock or otherwise: another's draft would go as well. What cannot be listed or removed stays, and harms
 * nobody.
 */
export async function removeDrafts(file: string): Promise<void> {
  const folder = dirname(file);
  const names = await readdir(folder).catch(() => []);
  for (const path of names.map((name) => join(folder, name))) {
    if (isDraft(path, file)) await rm(path, { force: true }).catch(() => undefined);
  }
}

/**
 * Writes a new file of a folder that comes to its name only later; the file's own name is not yet
 * on disk. Throws the system's fault, EEXIST where there is one.
 */
export async function writeNewFile(file: string, content: Uint8Array): Promise<void> {
  await fill(await open(file, "wx", SECRET_MODE), (handle) => handle.writeFile(content));
}

/** How a file is created. */
interface CreateOptions {
  readonly isPassing?: boolean;
  readonly former?: string;
  readonly isMakers?: boolean;
}

/**
 * Creates a file whole if the name is free, on disk when it returns; an existing file is never
 * touched, and of two processes at once one wins. What pieces throw is thrown, with nothing left. In a
 * folder that may not be listed its name cannot be forced to disk, and is there all the same.
 * @param options `isPassing`: not forced to disk, for what says nothing after a power cut, as a
 *   lock; after one it may be gone or empty. `former`: what it takes the place of, under the name that this
 *   has by now; the file is given to the same owner. `isMakers`: it stays whose process this is, whoever has
 *   the folder
 * @returns false where a file was there already; throws the system's fault otherwise
 */
export function createFileOnce(
  file: string,
  content: string | Iterable<string>,
  mode: number,
  { isPassing = false, former, isMakers = false }: CreateOptions = {},
): boolean {
  const draft = draftOf(file);
  const heir = isMakers ? undefined : heirOf(file, former);
  try {
    const handle = openSync(draft, "wx", mode);
    try {
      fchmodSync(handle, mode);
      for (const piece of typeof content === "string" ? [content] : gathered(content)) {
        writeFileSync(handle, piece);
      }
      if (!isPassing) fsyncSync(handle);
      // A hard link fails when the target exists, so two starts at once cannot overwrite a key.
      linkOnce(draft, file, handle);
      giveFile(handle, heir);
    } finally {
      closeSync(handle);
    }
    if (!isPassing) forceName(file);
    return true;
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Gives the draft that is open its name. A folder over a network may have done that and lost the answer; the
 * question is repeated then, and refused as the name is taken: by this very file (link(2), "BUGS").
 */
function linkOnce(draft: string, file: string, handle: number): void {
  try {
    linkSync(draft, file);
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
    const found = lstatSync(file, { bigint: true, throwIfNoEntry: false });
    const { dev, ino } = fstatSync(handle, { bigint: true });
    if (found?.dev !== dev || found.ino !== ino) throw error;
  }
}

/** Puts the name of a new file on disk, or takes it away again. Throws the system's fault. */
function forceName(file: string): void {
  try {
    syncFolderSync(dirname(file));
  } catch (error) {
    // Whoever is told of a fault has nothing, and a secret that nobody has must not be found later.
    rmSync(file, { force: true });
    throw error;
  }
}

/**
 * Replaces a file that is still what somebody has looked at, without a lock that others would wait for: it is
 * taken from its name, looked at there, and what another writer has given the name by then stays. For that
 * moment there is no file; where the process ends in it `giveBackTaken` finds what it had taken.
 * @param isSame whether the file at this path, or that there is none, is what was looked at
 * @returns false where it was not: nothing is changed then; throws the system's fault
 */
export async function exchangeFile(
  file: string,
  isSame: (path: string) => boolean,
  { content, mode }: { readonly content: string; readonly mode: number },
): Promise<boolean> {
  const taken = `${takenBefore(file)}${randomUUID()}`;
  try {
    await rename(file, taken);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
  }
  let isDone = false;
  try {
    isDone = isSame(taken) && createFileOnce(file, content, mode, { former: taken });
    return isDone;
  } finally {
    if (!isDone) giveBack(taken, file);
    await rm(taken, { force: true });
  }
}

/**
 * Where a file has no name, since a process that exchanged it ended in the middle, gives back what that had
 * taken. Harmless while one is at work: it finds a file then, and replaces nothing. Throws the system's
 * fault.
 * @param choose which of several, by their paths: each of as many processes took one
 */
export async function giveBackTaken(
  file: string,
  choose: (paths: readonly [string, ...string[]]) => string,
): Promise<void> {
  const folder = dirname(file);
  const left = readdirSync(folder).map((name) => join(folder, name));
  const [first, ...others] = left.filter((path) => path.startsWith(takenBefore(file)));
  if (first === undefined) return;
  giveBack(choose([first, ...others]), file);
  await syncFolder(folder);
  for (const path of [first, ...others]) await rm(path, { force: true });
}

/** Unless the name has another file by now, or nothing was taken. */
function giveBack(taken: string, file: string): void {
  try {
    linkSync(taken, file);
  } catch (error) {
    if (errorCode(error) !== "EEXIST" && errorCode(error) !== "ENOENT") throw error;
  }
}

/** How names begin under which files are looked at that were taken from this one. */
function takenBefore(file: string): string {
  return join(dirname(file), `.${basename(file)}.taken-`);
}

/** Small pieces together: each write is a call of the system. */
function* gathered(pieces: Iterable<string>): Generator<string> {
  let waiting = "";
  for (const piece of pieces) {
    waiting += piece;
    if (waiting.length < WRITE_CHARACTERS) continue;
    yield waiting;
    waiting = "";
  }
  yield waiting;
}

/** A name that no other writer of the file takes. */
function draftOf(file: string): string {
  return `${draftsBefore(file)}${randomUUID()}${DRAFT_END}`;
}

/** Whether a path is one of `draftOf`. */
function isDraft(path: string, file: string): boolean {
  const before = draftsBefore(file);
  if (!path.startsWith(before) || !path.endsWith(DRAFT_END)) return false;
  return UUID.test(path.slice(before.length, -DRAFT_END.length));
}

/** How paths of drafts of a file begin. */
function draftsBefore(file: string): string {
  return join(dirname(file), `.${basename(file)}.`);
}

async function fill(
  handle: FileHandle,
  write: (handle: FileHandle) => Promise<void>,
): Promise<void> {
  try {
    await write(handle);
    await handle.sync();
  } finally {
    await handle.close();
  }
}
