/** Few searches at once: each reads many blocks, and together they must not starve the node. */
import { withLimit } from "../../../../runtime/process/task.js";
import type { Asker } from "../../../../runtime/turns/resting-lane.js";
import { Turns } from "../../../../runtime/turns/turns.js";
import { busy, refused } from "../errors.js";
import { namesHash } from "./event-search.js";
import type { EventQuery } from "./query.js";

/** Searches that run at once, of a client of another machine one; each gives way every few milliseconds. */
const MAX_RUNNING = 2;
const SHARE = 1 / MAX_RUNNING;

/** Searches that wait for their turn; more are told to come back. */
const MAX_WAITING = 100;

/** Twice what a search of all that one may read takes, where the node has little else to do. */
const MAX_SEARCH_MS = 120_000;

/** The way in for all searches of a server. */
export class SearchLane {
  private readonly turns = new Turns({
    maxRunning: MAX_RUNNING,
    maxWaiting: MAX_WAITING,
    share: SHARE,
    full: () => busy("too many searches at once, try again"),
  });

  /**
   * Runs the work in its client's turn.
   * @param work ends with its signal, which fires with the asker's, or when the search takes too long
   * @throws INTERNAL for one that takes too long, and where too many wait; the signal's reason when the
   * client goes
   */
  run<Result>(
    { signal, client }: Asker,
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const limited = () =>
      withLimit([signal], MAX_SEARCH_MS, work).catch((error: unknown) => {
        const isOurs = error instanceof DOMException && error.name === "TimeoutError";
        if (!isOurs || signal.aborted) throw error;
        throw refused("the search takes too long: narrow it, as by heights");
      });
    return this.turns.run(signal, limited, client);
  }

  /** The same for transactions; the one that a query names by its hash is read at once, as `tx` does. */
  forTransactions<Result>(
    query: EventQuery,
    asker: Asker,
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    return namesHash(query) ? work(asker.signal) : this.run(asker, work);
  }
}
