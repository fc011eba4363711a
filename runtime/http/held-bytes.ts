/**
 * Bytes that are kept in memory for clients, over all connections: answers that they have not
 * taken, requests that they have not finished. A bound for each connection is none where there may
 * be thousands. Over the bound whoever has held most for the longest is let go: that is a client
 * that does not read, and not the one that came last.
 */
import type { ServerResponse } from "node:http";
import type { Clock } from "../process/clock.js";

/** What is held for one client. */
export interface Holding {
  /**
   * How much is held now. Less than before is progress; over the bound, another one or this one is
   * let go before the call returns.
   */
  update(sizeBytes: number): void;
  /** It is needed until it is released, however long that takes: nobody lets it go. */
  pin(): void;
  /** Nothing is held any more. */
  release(): void;
}

/** How much may be held, and how long. */
export interface HeldBytesLimits {
  readonly maxBytes: number;
  /** Who takes nothing for so long, and the bytes' own time, is let go. */
  readonly graceMs: number;
  readonly minBytesPerSecond: number;
}

/** Clients on slow lines take a megabit a second, after a pause of half a minute. */
export const CLIENT_PATIENCE = { graceMs: 30_000, minBytesPerSecond: 128 * 1024 };

/** Below this nothing need be counted: as much as the system keeps for each connection anyway. */
export const COUNTED_BYTES = 16 * 1024;

/** How often it is looked for who is overdue, while anything is held. */
const SWEEP_INTERVAL_MS = 5_000;

/**
 * Begins to hold what an answer needs, until that is over or the client is gone.
 * @param letGo as of `HeldBytes.hold`
 */
export function holdUntilClosed(
  bytes: HeldBytes,
  response: ServerResponse,
  letGo: () => void,
): Holding {
  const holding = bytes.hold(letGo);
  response.once("close", () => holding.release());
  return holding;
}

/**
 * Begins to hold what a request takes, until its answer is made or the client is gone. How long the client
 * then takes to read is for the bytes of the answer to pay: a few who do not read would keep all others out.
 * @param letGo as of `HeldBytes.hold`
 * @param onAnswered told when the answer is made: nothing is to keep the request any longer
 */
export function holdUntilAnswered(
  bytes: HeldBytes,
  response: ServerResponse,
  letGo: () => void,
  onAnswered?: () => void,
): Holding {
  const holding = holdUntilClosed(bytes, response, letGo);
  // No event tells it of an answer that is made behind others on its connection.
  response.end = new Proxy(response.end.bind(response), {
    apply: (end, _self, given) => {
      holding.release();
      onAnswered?.();
      return Reflect.apply(end, response, given);
    },
  });
  return holding;
}

interface Held {
  sizeBytes: number;
  /** When it was last nothing, or last became less. */
  sinceMs: number;
  isPinned: boolean;
  readonly letGo: () => void;
}

/** One bound for many connections. */
export class HeldBytes {
  private readonly holdings = new Set<Held>();
  private total = 0;
  private sweeping: NodeJS.Timeout | undefined;
  private letGoTotal = 0;

  constructor(
    private readonly limits: HeldBytesLimits,
    private readonly clock: Clock,
  ) {}

  /** Bytes that are held now. */
  get totalBytes(): number {
    return this.total;
  }

  /** How many were let go since the start. */
  get letGoCount(): number {
    return this.letGoTotal;
  }

  /** Begins to hold for a client. @param letGo frees the bytes, as a rule with the connection */
  hold(letGo: () => void): Holding {
    const held: Held = { sizeBytes: 0, sinceMs: 0, isPinned: false, letGo };
    return {
      update: (sizeBytes) => this.update(held, sizeBytes),
      pin: () => {
        held.isPinned = true;
      },
      release: () => this.update(held, 0),
    };
  }

  /** Lets go of those that have taken nothing for too long. */
  sweep(): void {
    const { graceMs, minBytesPerSecond } = this.limits;
    const nowMs = this.clock.monotonicMs();
    for (const held of this.holdings) {
      const allowedMs = graceMs + (held.sizeBytes / minBytesPerSecond) * 1_000;
      if (!held.isPinned && nowMs - held.sinceMs > allowedMs) this.end(held);
    }
  }

  private update(held: Held, sizeBytes: number): void {
    const addedBytes = sizeBytes - held.sizeBytes;
    if (held.sizeBytes === 0 || addedBytes < 0) held.sinceMs = this.clock.monotonicMs();
    this.total += addedBytes;
    held.sizeBytes = sizeBytes;
    if (sizeBytes === 0) this.holdings.delete(held);
    else this.holdings.add(held);
    if (this.holdings.size === 0) {
      clearInterval(this.sweeping);
      this.sweeping = undefined;
    } else {
      this.sweeping ??= setInterval(() => this.sweep(), SWEEP_INTERVAL_MS).unref();
    }
    if (addedBytes > 0) this.makeRoom();
  }

  private makeRoom(): void {
    const nowMs = this.clock.monotonicMs();
    while (this.total > this.limits.maxBytes) {
      let worst: Held | undefined;
      let most = 0;
      for (const held of this.holdings) {
        const heldFor = held.sizeBytes * (nowMs - held.sinceMs + 1);
        if (held.isPinned || heldFor <= most) continue;
        [worst, most] = [held, heldFor];
      }
      if (worst === undefined) return; // What is left is needed, and bounded by who pins it.
      this.end(worst);
    }
  }

  private end(held: Held): void {
    this.letGoTotal += 1;
    this.update(held, 0);
    held.letGo();
  }
}
