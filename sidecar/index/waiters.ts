/** Requests that wait for the index to come to something, each for a bounded time. */
import type { ErrorDetails } from "../../chain/errors.js";
import { SidecarError } from "../rosetta/errors.js";

interface Waiter {
  readonly isMet: () => boolean;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  readonly timer: NodeJS.Timeout;
}

/** All who wait. */
export class Waiters {
  private readonly waiting = new Set<Waiter>();

  /** @param maxWaitMs time after which a wait fails */
  constructor(private readonly maxWaitMs: number) {}

  /** Returns when the condition holds at a `check`. @throws INDEX_BEHIND, or a fault meanwhile */
  wait(isMet: () => boolean, details: ErrorDetails): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(waiter.timer);
        this.waiting.delete(waiter);
      };
      const waiter: Waiter = {
        isMet,
        resolve: () => {
          end();
          resolve();
        },
        reject: (error) => {
          end();
          reject(error);
        },
        timer: setTimeout(
          () => waiter.reject(new SidecarError("INDEX_BEHIND", details)),
          this.maxWaitMs,
        ),
      };
      this.waiting.add(waiter);
    });
  }

  /** Lets those go on whose condition holds now. */
  check(): void {
    for (const waiter of this.waiting) if (waiter.isMet()) waiter.resolve();
  }

  /** Tells everybody what is in the way. */
  rejectAll(error: unknown): void {
    for (const waiter of this.waiting) waiter.reject(error);
  }
}
