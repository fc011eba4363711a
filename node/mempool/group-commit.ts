/**
 * Group commit: calls that arrive while a commit is running, or in the same turn of the event
 * loop, share the next one. One commit runs at a time, in order of arrival.
 */
import { setImmediate as nextTurn } from "node:timers/promises";

interface Call<Item, Result> {
  readonly items: readonly Item[];
  readonly resolve: (results: readonly Result[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Runs `commit` over groups of calls' items. A call is never split over two groups. */
export class GroupCommit<Item, Result> {
  private calls: Call<Item, Result>[] = [];
  private wanted = false;
  private running: Promise<void> | undefined;

  /**
   * @param commit gives one result per item, in order; its rejection is passed to all its callers
   * @param groupSize calls join a group until it holds this many items
   */
  constructor(
    private readonly commit: (items: readonly Item[]) => Promise<readonly Result[]>,
    private readonly groupSize: number,
  ) {}

  /** The results of the items, once their group is committed. */
  add(items: readonly Item[]): Promise<readonly Result[]> {
    return new Promise((resolve, reject) => {
      this.calls.push({ items, resolve, reject });
      this.wake();
    });
  }

  /** Makes a commit run soon, even without items. */
  wake(): void {
    this.wanted = true;
    this.running ??= this.run();
  }

  /** Resolves when nothing is under way or waiting. */
  async idle(): Promise<void> {
    while (this.running !== undefined) await this.running;
  }

  private async run(): Promise<void> {
    while (this.wanted) {
      // One turn later everything that came in the same burst is here.
      await nextTurn();
      const group = this.takeGroup();
      this.wanted = this.calls.length > 0;
      await this.commitGroup(group);
    }
    this.running = undefined;
  }

  private takeGroup(): readonly Call<Item, Result>[] {
    let itemCount = 0;
    let callCount = 0;
    for (const call of this.calls) {
      if (callCount > 0 && itemCount + call.items.length > this.groupSize) break;
      itemCount += call.items.length;
      callCount++;
    }
    const group = this.calls.slice(0, callCount);
    this.calls = this.calls.slice(callCount);
    return group;
  }

  private async commitGroup(group: readonly Call<Item, Result>[]): Promise<void> {
    try {
      const results = await this.commit(group.flatMap((call) => call.items));
      let start = 0;
      for (const call of group) {
        call.resolve(results.slice(start, start + call.items.length));
        start += call.items.length;
      }
    } catch (error) {
      for (const call of group) call.reject(error);
    }
  }
}
