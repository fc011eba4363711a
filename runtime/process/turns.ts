/**
 * Turns for work that takes much memory: so many at a time. Clients that are told apart have theirs one after
 * the other, however many each of them waits for; what is one's own comes in order.
 */

/** How many there are, and what is thrown where too many wait. */
export interface TurnBounds {
  readonly maxRunning: number;
  readonly maxWaiting: number;
  readonly full: () => Error;
}

/** Somebody who waits. */
interface Waiting {
  readonly client: string;
  readonly begin: () => void;
  readonly refuse: (error: Error) => void;
}

/** The lines of all who want the same. */
export class Turns {
  private running = 0;
  private waiting = 0;
  /** By client, in the order of their turns; no line is empty. */
  private readonly lines = new Map<string, Waiting[]>();

  constructor(private readonly bounds: TurnBounds) {}

  /** Those who have a turn or wait for one, for tests and metrics. */
  get counts(): { readonly running: number; readonly waiting: number } {
    return { running: this.running, waiting: this.waiting };
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
        this.remove(one);
        reject(signal.reason);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.add(one);
    });
  }

  private add(one: Waiting): void {
    const own = this.lines.get(one.client) ?? [];
    own.push(one);
    this.lines.set(one.client, own);
    this.waiting += 1;
    if (this.waiting <= this.bounds.maxWaiting) return;
    let longest = own;
    for (const line of this.lines.values()) if (line.length > longest.length) longest = line;
    const last = longest.at(-1);
    if (last === undefined) return;
    this.remove(last);
    last.refuse(this.bounds.full());
  }

  private remove(one: Waiting): void {
    const line = this.lines.get(one.client) ?? [];
    line.splice(line.indexOf(one), 1);
    if (line.length === 0) this.lines.delete(one.client);
    this.waiting -= 1;
  }

  private leave(): void {
    // The turn goes straight to the next in line, so that nobody overtakes it.
    const [line] = this.lines.values();
    const next = line?.[0];
    if (line === undefined || next === undefined) {
      this.running -= 1;
      return;
    }
    this.remove(next);
    // The client goes behind all others.
    if (this.lines.delete(next.client)) this.lines.set(next.client, line);
    next.begin();
  }
}
