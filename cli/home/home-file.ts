/** Small files of a home: written durably, and a fault told as a sentence about the home. */
import { readFile, rm } from "node:fs/promises";
import { breathe } from "../../runtime/process/main-thread.js";
import * as durable from "../../runtime/files/durable-file.js";
import { cannotWrite, systemCode } from "../errors.js";

export { PLAIN_MODE, SECRET_MODE } from "../../runtime/files/durable-file.js";

/**
 * Writes the file whole: a crash leaves the former content or the new one, never a part.
 * @throws HOME_UNUSABLE naming folder and cause
 */
export async function replaceFile(path: string, content: string, mode: number): Promise<void> {
  try {
    await durable.replaceFile(path, content, mode);
  } catch (cause) {
    throw cannotWrite(path, cause);
  }
}

/**
 * Creates the file whole if the name is free; an existing file is never touched.
 * @param options as `durable-file.ts` has them
 * @returns false where a file was there already
 * @throws HOME_UNUSABLE naming folder and cause
 */
export async function createFileOnce(
  path: string,
  content: string | Iterable<string>,
  mode: number,
  options: { readonly isMakers?: boolean } = {},
): Promise<boolean> {
  try {
    return durable.createFileOnce(path, content, mode, options);
  } catch (cause) {
    throw cannotWrite(path, cause);
  }
}

/** Likewise a file that a person has named, as with `--out`: it is that person's, whoever has the folder. */
export function createNamedFile(path: string, content: string, mode: number): Promise<boolean> {
  return createFileOnce(path, content, mode, { isMakers: true });
}

/** A file that is created with others. */
export interface NewFile {
  readonly path: string;
  readonly mode: number;
  /** Made when its turn comes: of many files no more than one is held, of a long one a piece. */
  readonly content: () => string | Iterable<string>;
}

/** Who waits for files. */
export interface CreateOptions {
  readonly signal: AbortSignal;
  /** Told after each file. */
  readonly onProgress?: (done: number, of: number) => void;
}

/**
 * Creates files together, in their order: all of them or none. There may be one for each customer: the event
 * loop turns between them.
 * @returns where a file was there already; undefined where all are created
 * @throws HOME_UNUSABLE naming folder and cause; the signal's reason, as long as one is missing
 */
export async function createFilesOnce(
  files: readonly NewFile[],
  { signal, onProgress }: CreateOptions,
): Promise<string | undefined> {
  const written: string[] = [];
  let taken: string | undefined;
  let areAll = false;
  try {
    for (const { path, mode, content } of files) {
      const pause = breathe(signal);
      if (pause !== undefined) await pause;
      if (!(await createFileOnce(path, content(), mode))) {
        taken = path;
        break;
      }
      written.push(path);
      onProgress?.(written.length, files.length);
    }
    areAll = taken === undefined;
    return taken;
  } finally {
    if (!areAll) for (const path of written) await rm(path, { force: true }).catch(() => undefined);
  }
}

/** Content of a text file. Throws the system's fault, which has the path also where it is a folder's. */
export async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    // A folder can be opened, and it is the reading that fails, of which the system names no path.
    if (error instanceof Error && !("path" in error)) throw Object.assign(error, { path });
    throw error;
  }
}

/** Content of a text file; undefined where there is none. Other faults are thrown as they are. */
export async function readTextIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readText(path);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}
