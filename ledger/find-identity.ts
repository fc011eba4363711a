/** Which chain a process keeps books for, also while its node is down. */
import { errorMessage } from "../chain/errors.js";
import type { Logger } from "../runtime/process/logger.js";
import { retry } from "../runtime/process/task.js";
import { type ChainIdentity, readStoredIdentity } from "./database.js";

/** Waits between two questions. */
const MIN_DELAY_MS = 200;
const MAX_DELAY_MS = 2_000;

/** How the chain is found. */
export interface FindIdentityOptions {
  /** Asks the node; the ledger itself reaches no chain. */
  readonly ask: () => Promise<ChainIdentity>;
  /** Faults that end it, such as a node of another network, also where the ledger knows its chain. */
  readonly isFinal: (error: unknown) => boolean;
  /** Faults for which an empty ledger does not wait either, of node or database; default: none. */
  readonly isHopeless?: (error: unknown) => boolean;
  /** Told each time that an empty ledger is to wait, why the node tells nothing. */
  readonly onWait?: (error: unknown) => void;
  /** The ledger's database. */
  readonly url: string;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/**
 * What the node says; where it does not answer, what the ledger was opened for, so that an API
 * serves while the node is down. With neither it asks until the signal fires.
 * @throws the final faults of `ask`; with neither, hopeless ones
 */
export function findIdentity(options: FindIdentityOptions): Promise<ChainIdentity> {
  const { ask, isFinal, isHopeless = () => false, url, log, signal } = options;
  let stored: ChainIdentity | undefined;
  return retry(
    async () => {
      if (stored !== undefined) return stored;
      try {
        return await ask();
      } catch (error) {
        // At every attempt: the ledger may be lost for a moment, or be made by another process.
        if (!isFinal(error)) {
          stored = await readStoredIdentity({ url, log, signal });
          if (stored === undefined && !isHopeless(error)) options.onWait?.(error);
        }
        throw error;
      }
    },
    {
      signal,
      minDelayMs: MIN_DELAY_MS,
      maxDelayMs: MAX_DELAY_MS,
      isRetriable: (error) => !isFinal(error) && (stored !== undefined || !isHopeless(error)),
      onRetry: (error) => log.warn({ reason: errorMessage(error) }, "the node does not answer yet"),
    },
  );
}
