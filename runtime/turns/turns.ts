/**
 * Turns for work that takes much memory: so many at a time. Clients that are told apart have theirs one after
 * the other, however many each of them waits for; what is one's own comes in order.
 */
import { ClientLines, type OfClient } from "./client-lines.js";
import { ClientPlaces } from "./client-places.js";

/** How many there are, and what is thrown where too many wait. */
export interface TurnBounds {
  readonly maxRunning: number;
  readonly maxWaiting: number;
  /** Longest wait for a turn; whoever waits longer is refused as where too many wait. Default none. */
  readonly maxWaitMs?: number;
  readonly full: () => Error;
  /** Of all turns, the part that one client of another machine has at a time; default all. */
  readonly share?: number;
}

/** Somebody who waits. */
interface Waiting extends OfClient {
  /** @param giveBack gives back what it has taken of the turns */
  readonly begin: (giveBack: () => void) => void;
  readonly refuse: (error: Error) => void;
}

/** The lines of all who want the same. */
export class Turns {
  private readonly running: ClientPlaces;
  private readonly lines = new ClientLines<Waiting>();

  constructor(private readonly bounds: TurnBounds) {
    const { maxRunning: most, share = 1 } = bounds;
    this.running = new ClientPlaces({ most, share });
  }

  /** Those who have a turn or wait for one, for tests and metrics. */
  get counts(): { readonly running: number; readonly waiting: number } {
    return { running: this.running.size, waiting: this.lines.size };
  }

  /** How many turns a client waits for. */
  waitingOf(client: string): number {
    return this.lines.sizeOf(client);
  }

  /**
   * Waits for a turn. @returns gives it back; to be called once
   * @param client whose turn it is; who is not told apart is one with all others of whom nothing is known
   * @param maxWaitMs how long it waits at most; default as the bounds say
   * @throws the signal's reason; what the bounds say where too many wait, and this is the last in the
   * longest line, and where it has waited for too long
   */
  async enter(
    signal: AbortSignal,
    client = "",
    maxWaitMs = this.bounds.maxWaitMs,
  ): Promise<() => void> {
    signal.throwIfAborted();
    const isFree = this.running.hasRoom(client);
    const giveBack = isFree
      ? this.running.take(client)
      : await this.turn(signal, client, maxWaitMs);
    return () => {
      giveBack();
      this.beginNext();
    };
  }

  /**
   * Runs the work in its turn.
   * @param client and the longest wait as of `enter`
   * @throws as `enter`, and what the work throws
   */
  async run<Result>(
    signal: AbortSignal,
    work: () => Promise<Result>,
    client?: string,
    maxWaitMs?: number,
  ): Promise<Result> {
    const leave = await this.enter(signal, client, maxWaitMs);
    try {
      return await work();
    } finally {
      leave();
    }
  }

  private turn(
    signal: AbortSignal,
    client: string,
    maxWaitMs: number | undefined,
  ): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const end = () => {
        signal.removeEventListener("abort", onAbort);
        clearTimeout(timer);
      };
      const one: Waiting = {
        client,
        begin: (giveBack) => {
          end();
          resolve(giveBack);
        },
        refuse: (error) => {
          end();
          reject(error);
        },
      };
      const giveUp = (reason: unknown) => {
        this.lines.remove(one);
        end();
        reject(reason);
      };
      const onAbort = () => giveUp(signal.reason);
      const timer =
        maxWaitMs === undefined
          ? undefined
          : setTimeout(() => giveUp(this.bounds.full()), maxWaitMs);
      signal.addEventListener("abort", onAbort, { once: true });
      this.lines.add(one);
      if (this.lines.size <= this.bounds.maxWaiting) return;
      this.lines.refuseOne(one).refuse(this.bounds.full());
    });
  }

  private beginNext(): void {
    // The turn goes straight to the next in line, so that nobody overtakes it.
    const next = this.lines.next((client) => this.running.hasRoom(client));
    next?.begin(this.running.take(next.client));
  }
}
