/** Work that several wait for: it is wanted as long as one of them is there. */
import { inheritOwner } from "../process/work-owner.js";

/** Those who wait for one piece of work. */
export class Wanted {
  private readonly ending = new AbortController();
  private readonly signals = new Set<AbortSignal>();

  /**
   * @param signals each fires when somebody does not wait any more; the work is of the first of these that
   * has an owner
   */
  constructor(signals: readonly AbortSignal[]) {
    inheritOwner(this.ending.signal, signals);
    for (const signal of signals) this.add(signal);
    this.look();
  }

  /** Fires when nobody is left, with the reason of who came first. */
  get signal(): AbortSignal {
    return this.ending.signal;
  }

  /** Somebody more; too late once the signal has fired. */
  add(signal: AbortSignal): void {
    this.signals.add(signal);
    signal.addEventListener("abort", this.look);
  }

  /** The work is over. */
  release(): void {
    for (const signal of this.signals) signal.removeEventListener("abort", this.look);
  }

  private readonly look = () => {
    const [first] = this.signals;
    if ([...this.signals].every(({ aborted }) => aborted)) this.ending.abort(first?.reason);
  };
}
