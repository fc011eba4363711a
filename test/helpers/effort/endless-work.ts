/** Sliced work without end: what others wait beside, in turns of the event loop. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { breathe } from "../../../runtime/process/main-thread.js";
import { endlessSignal, type WorkOwner } from "../../../runtime/process/work-owner.js";

/** How long a step takes. */
const STEP_MS = 1;

/** Keeps the thread for so long. */
export function spin(forMs: number): void {
  const endMs = performance.now() + forMs;
  while (performance.now() < endMs);
}

/** Works that go on until `end`, a step and a breath at a time; counts the turns of the event loop. */
export class EndlessWork {
  turns = 0;
  private isOver = false;
  private readonly ends: Promise<void>[] = [];
  private readonly counted = this.countTurns();

  /** Starts so many works of an owner. */
  start(count: number, owner: WorkOwner): void {
    for (let started = 0; started < count; started++) this.ends.push(this.work(owner));
  }

  /** Resolves when all that was started has come to its first wait. */
  async begun(): Promise<void> {
    for (const from = this.turns; this.turns < from + 3; ) await nextTurn();
  }

  /** Turns of the event loop until something is done. */
  async during(work: () => unknown): Promise<number> {
    const from = this.turns;
    await work();
    return this.turns - from;
  }

  async end(): Promise<void> {
    this.isOver = true;
    await Promise.all([...this.ends, this.counted]);
  }

  private async countTurns(): Promise<void> {
    for (; !this.isOver; this.turns++) await nextTurn();
  }

  private async work(owner: WorkOwner): Promise<void> {
    const signal = endlessSignal(owner);
    await nextTurn();
    while (!this.isOver) {
      spin(STEP_MS);
      await breathe(signal);
    }
  }
}
