/** Small files that must be whole or absent after a crash: keys, genesis, configuration, locks. */
import { randomUUID } from "node:crypto";
import { link, open, readFile, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { cannotWrite, systemCode } from "./errors.js";

/** Mode of every file with a secret: only the owner reads it. */
export const SECRET_MODE = 0o600;

/** Mode of files that hold no secret. */
export const PLAIN_MODE = 0o644;

/**
 * Writes the file whole: a crash leaves the former content or the new one, never a part.
 * @throws HOME_UNUSABLE naming folder and cause
 */
export async function replaceFile(path: string, content: string, mode: number): Promise<void> {
  let temporary: string | undefined;
  try {
    temporary = await writeTemporary(path, content, mode);
    await rename(temporary, path);
    await syncFolder(dirname(path));
  } catch (cause) {
    if (temporary !== undefined) await rm(temporary, { force: true });
    throw cannotWrite(path, cause);
  }
}

/**
 * Creates the file whole if the name is free; an existing file is never touched.
 * @returns false where a file was there already
 * @throws HOME_UNUSABLE naming folder and cause
 */
export async function createFileOnce(
  path: string,
  content: string,
  mode: number,
): Promise<boolean> {
  let temporary: string | undefined;
  try {
    temporary = await writeTemporary(path, content, mode);
    await link(temporary, path);
    await syncFolder(dirname(path));
    return true;
  } catch (cause) {
    if (systemCode(cause) === "EEXIST") return false;
    throw cannotWrite(path, cause);
  } finally {
    // The leftover of a failed attempt is worth less than the fault that caused it.
    if (temporary !== undefined) await rm(temporary, { force: true }).catch(() => undefined);
  }
}

/** Content of a text file; undefined where there is none. Other faults are thrown as they are. */
export async function readTextIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function writeTemporary(path: string, content: string, mode: number): Promise<string> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomUUID()}.tmp`);
  const handle = await open(temporary, "w", mode);
  try {
    await handle.chmod(mode);
    await handle.writeFile(content);
    await handle.sync();
  } finally {
    await handle.close();
  }
  return temporary;
}
