/** Small files of a home: written durably, and a fault told as a sentence about the home. */
import { readFile } from "node:fs/promises";
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
 * @returns false where a file was there already
 * @throws HOME_UNUSABLE naming folder and cause
 */
export async function createFileOnce(
  path: string,
  content: string,
  mode: number,
): Promise<boolean> {
  try {
    return durable.createFileOnce(path, content, mode);
  } catch (cause) {
    throw cannotWrite(path, cause);
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
