/** The lock of a home: held while a kit runs on it, by `runtime/files/lock-file.ts`. */
import { type HeldLock, LockHeldError, takeLockFile } from "../../runtime/files/lock-file.js";
import { CliError } from "../errors.js";
import { inHome } from "./home.js";

/** Why nothing is started on a home whose lock is lost. */
export const HOME_ELSEWHERE = "another kit has the home";

/** What a person is told whose kit has lost the lock of its home. */
export function homeLost(home: string): CliError {
  const message =
    `This kit has lost the home ${home}: another one took it over while this one stood still, or kit.lock ` +
    "was deleted. All of this one is ended at once, as two may not work on one home.";
  return new CliError("HOME_LOST", message);
}

/**
 * Takes the lock of a home for this process. Where it is lost, nothing of this process may touch the home
 * any more.
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
