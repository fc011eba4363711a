/** Who asks for a text while it is made: what waits for its turn leaves the line with the last of them. */
import { Wanted } from "../../../../runtime/turns/wanted.js";
import type { LargeLane } from "../large-lane.js";
import type { CallContext } from "../method.js";

/** Nobody's end. */
const NEVER = new AbortController().signal;

/** Somebody who asks. */
export type Asker = Pick<CallContext, "signal" | "client">;

/** The askers of one text. */
export class Askers {
  private readonly signals = new Set<AbortSignal>();
  private readonly client: string;
  private line: Wanted | undefined;

  /** @param first whose turn it is */
  constructor(first: Asker) {
    this.client = first.client;
    this.add(first);
  }

  add({ signal }: Pick<Asker, "signal">): void {
    this.signals.add(signal);
    this.line?.add(signal);
  }

  /**
   * Waits for a turn. @returns gives it back
   * @param onLeft told that nobody is there any more, before another can ask
   * @throws as `LargeLane.enter`
   */
  async enter(lane: LargeLane, onLeft: () => void): Promise<() => void> {
    const line = new Wanted([...this.signals]);
    if (line.signal.aborted) onLeft();
    line.signal.addEventListener("abort", onLeft);
    this.line = line;
    try {
      return await lane.enter(line.signal, this.client);
    } finally {
      this.line = undefined;
      line.release();
    }
  }

  /** The same, also where nobody is there any more. */
  enterAnyway(lane: LargeLane): Promise<() => void> {
    return lane.enter(NEVER, this.client);
  }
}
