/**
 * Turns for work that takes much memory: so many at a time. Clients that are told apart have theirs one after
 * the other, however many each of them waits for; what is one's own comes in order.
 */
import { ClientLines, type OfClient } from "./client-lines.js";

/** How many there are, and what is thrown where too many wait. */
export interface TurnBounds {
  readonly maxRunning: number;
  readonly maxWaiting: number;
  readonly full: () => Error;
}

/** Somebody who waits. */
interface Waiting extends OfClient {
  readonly begin: () => void;
  readonly refuse: (error: Error) => void;
}

/** The lines of all who want the same. */
export class Turns {
  private running = 0;
  private readonly lines = new ClientLines<Waiting>();

  constructor(private readonly bounds: TurnBounds) {}

  /** Those who have a turn or wait for one, for tests and metrics. */
  get counts(): { readonly running: number; readonly waiting: number } {
    return { running: this.running, waiting: this.lines.size };
  }

  /**
   * Waits for a turn. @returns gives it back; to be called once
   * @param client whose turn it is; who is not told apart is one with all others of whom nothing is known
   * @throws the signal's reason; what the bounds say where too many wait, and this is the last in the
   * longest line
   */
  async enter(signal: AbortSignal, client = ""): Promise<() => void> {
    signal.throwIfAborted();
    if (this.running < this.bounds.maxRunning) this.running += 1;
    else await this.turn(signal, client);
    return () => this.leave();
  }

  /** Runs the work in its turn. @param client as of `enter` @throws as `enter`, and what the work throws */
  async run<Result>(
    signal: AbortSignal,
    work: () => Promise<Result>,
    client?: string,
  ): Promise<Result> {
    const leave = await this.enter(signal, client);
    try {
      return await work();
    } finally {
      leave();
    }
  }

  private turn(signal: AbortSignal, client: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = () => signal.removeEventListener("abort", onAbort);
      const one: Waiting = {
        client,
        begin: () => {
          end();
          resolve();
        },
        refuse: (error) => {
          end();
          reject(error);
        },
      };
      const onAbort = () => {
        this.lines.remove(one);
        reject(signal.reason);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.lines.add(one);
      if (this.lines.size <= this.bounds.maxWaiting) return;
      this.lines.refuseOne(one).refuse(this.bounds.full());
    });
  }

  private leave(): void {
    // The turn goes straight to the next in line, so that nobody overtakes it.
    const next = this.lines.next();
    if (next === undefined) this.running -= 1;
    else next.begin();
  }
}
