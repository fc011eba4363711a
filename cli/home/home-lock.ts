/** The lock of a home: held while a kit runs on it, by `runtime/files/lock-file.ts`. */
import { type HeldLock, LockHeldError, takeLockFile } from "../../runtime/files/lock-file.js";
import { CliError } from "../errors.js";
import { inHome } from "./home.js";

/**
 * Takes the lock of a home for this process.
 * @param home named in the message of the fault
 * @throws HOME_LOCKED when a live process holds it, HOME_UNUSABLE when it cannot be written
 */
export function lockHome(path: string, home: string): Promise<HeldLock> {
  return inHome(path, async () => {
    try {
      return await takeLockFile(path, { isLong: true });
    } catch (error) {
      if (!(error instanceof LockHeldError)) throw error;
      const { pid, isElsewhere, isFar } = error.details;
      const container = isElsewhere === true ? " (in another container)" : "";
      const place = isFar === true ? " (on another machine)" : container;
      const who = typeof pid === "number" ? ` (process ${pid})` : place;
      const message = `A kit is already running on the home ${home}${who}; stop it or use --home.`;
      throw new CliError("HOME_LOCKED", message, { details: error.details });
    }
  });
}
