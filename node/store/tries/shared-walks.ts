/**
 * Proofs of one block that are asked for at the same time share a way through the diffs since then: a batch
 * of hundreds costs little more than one.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Height } from "../../../chain/hex.js";
import { Wanted } from "../../../runtime/turns/wanted.js";
import type { Database } from "../database.js";
import type { StoreBase } from "../store-base.js";
import { type TrieKey, withTrieAt } from "./trie-past.js";
import type { TrieNodeReader } from "./trie-port.js";

/** Keys of a walk; one call alone may have more. */
const MAX_KEYS = 2_048;

/** Somebody who waits for the nodes on the way to some keys. */
interface Waiting {
  readonly keys: readonly TrieKey[];
  readonly signal: AbortSignal;
  /** Never rejected. */
  readonly serve: (reader: TrieNodeReader) => Promise<void>;
  readonly fail: (error: unknown) => void;
}

/** The tries of all recent blocks of a store. */
export class SharedWalks {
  /** By height, those that wait; a height with a walk under way is here, also where nobody waits. */
  private readonly waiting = new Map<Height, Waiting[]>();

  constructor(
    private readonly database: Database,
    private readonly base: StoreBase,
  ) {}

  /**
   * What `withTrieAt` does, for all that come in one turn of the event loop or during a walk of theirs.
   * @throws what `withTrieAt` and `use` throw; the signal's reason
   */
  with<Result>(
    keys: readonly TrieKey[],
    { height, signal }: { readonly height: Height; readonly signal: AbortSignal },
    use: (reader: TrieNodeReader) => Promise<Result>,
  ): Promise<Result> {
    return new Promise((resolve, reject) => {
      const serve = (reader: TrieNodeReader) => use(reader).then(resolve, reject);
      const one: Waiting = { keys, signal, serve, fail: reject };
      const others = this.waiting.get(height);
      others?.push(one);
      if (others !== undefined) return;
      this.waiting.set(height, [one]);
      void this.serveAll(height);
    });
  }

  /** Walks as long as somebody waits for this height. */
  private async serveAll(height: Height): Promise<void> {
    const waiting = this.waiting.get(height) ?? [];
    while (waiting.length > 0) {
      await nextTurn();
      await this.walk(height, waiting.splice(0, countThatFit(waiting)));
    }
    this.waiting.delete(height);
  }

  private async walk(height: Height, all: readonly Waiting[]): Promise<void> {
    const keys = all.flatMap((one) => one.keys);
    const wanted = new Wanted(all.map((one) => one.signal));
    const { signal } = wanted;
    try {
      signal.throwIfAborted();
      await withTrieAt(this.database, keys, { height, base: this.base, signal }, (reader) =>
        Promise.all(all.map(({ serve }) => serve(reader))),
      );
    } catch (error) {
      for (const { fail, signal: own } of all) fail(own.aborted ? own.reason : error);
    } finally {
      wanted.release();
    }
  }
}

/** How many of those that came first go together. */
function countThatFit(waiting: readonly Waiting[]): number {
  let count = 0;
  for (let keys = 0; count < waiting.length; count++) {
    keys += waiting[count]?.keys.length ?? 0;
    if (count > 0 && keys > MAX_KEYS) break;
  }
  return count;
}
