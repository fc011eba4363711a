/** Few searches at once: each reads many blocks, and together they must not starve the node. */
import { Turns } from "../../../../runtime/turns/turns.js";
import { busy } from "../errors.js";
import { namesHash } from "./event-search.js";
import type { EventQuery } from "./query.js";

/** Searches that run at once; each gives way every few milliseconds. */
const MAX_RUNNING = 2;

/** Searches that wait for their turn; more are told to come back. */
const MAX_WAITING = 100;

/** The way in for all searches of a server. */
export class SearchLane {
  private readonly turns = new Turns({
    maxRunning: MAX_RUNNING,
    maxWaiting: MAX_WAITING,
    full: () => busy("too many searches at once, try again"),
  });

  /**
   * Runs the work in its turn.
   * @throws INTERNAL when too many wait already, the signal's reason when the client goes
   */
  run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    return this.turns.run(signal, work);
  }

  /** The same for transactions; the one that a query names by its hash is read at once, as `tx` does. */
  forTransactions<Result>(
    query: EventQuery,
    signal: AbortSignal,
    work: () => Promise<Result>,
  ): Promise<Result> {
    return namesHash(query) ? work() : this.run(signal, work);
  }
}
