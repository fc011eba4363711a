/** Lets several measurements take turns: one step runs at a time, in the order of asking. */

/** A queue of steps; those who ask again and again alternate. */
export class Turns {
  private last: Promise<unknown> = Promise.resolve();

  /** Runs a step when all that were asked for before are done; passes its fault on. */
  take<T>(step: () => Promise<T>): Promise<T> {
    const turn = this.last.then(step);
    // The one who asked gets the fault; the next step runs all the same.
    this.last = turn.catch(() => undefined);
    return turn;
  }
}
