/**
 * The signal of work that is rarely given up, made when somebody asks for it: making one and firing it
 * behind each finished request is a tenth of what a small request costs.
 */
import { setOwner, type WorkOwner } from "./work-owner.js";

/** A signal, and whose the work is that it ends. */
export class LazySignal {
  private controller: AbortController | undefined;
  private isOver = false;
  private reason: unknown;

  /** @param owner asked when the signal is made, or work waits for its turn without one */
  constructor(readonly owner?: () => WorkOwner) {}

  /** Fires with `abort`, also where that came before. */
  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.owner !== undefined) setOwner(this.controller.signal, this.owner());
      if (this.isOver) this.controller.abort(this.reason);
    }
    return this.controller.signal;
  }

  /** Whether it has fired; makes no signal. */
  get isAborted(): boolean {
    return this.isOver;
  }

  /** Fires it; the second time nothing happens. @param reason an AbortError where there is none */
  abort(reason?: unknown): void {
    if (this.isOver) return;
    this.isOver = true;
    this.reason = reason;
    this.controller?.abort(reason);
  }
}
