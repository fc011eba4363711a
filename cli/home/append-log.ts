/** How logs of the home are written, in a folder that people tidy up while the kit runs. */
import { appendFileSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { errorCode } from "../../chain/errors.js";
import { SECRET_MODE } from "../../runtime/files/durable-file.js";

/** Mode of the folder of logs: they name customers and addresses. */
export const LOGS_MODE = 0o700;

/**
 * Appends to a log. Its folder is made anew where somebody has deleted it; a home that is gone is not.
 * Throws the system's fault.
 * @returns whether the folder was made anew: of what was written before nothing is left
 */
export function appendLog(path: string, data: string | Uint8Array): boolean {
  // Synchronous on purpose: order is kept and nothing piles up in memory behind a slow disk.
  const append = (): void => appendFileSync(path, data, { mode: SECRET_MODE });
  try {
    append();
    return false;
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
    mkdirSync(dirname(path), { mode: LOGS_MODE });
    append();
    return true;
  }
}
