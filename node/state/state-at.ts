/**
 * The state after one block for readers that cannot wait, whether its values are at hand or have to
 * be fetched from history: what a piece of work missed is fetched, and the work runs again. A value
 * that is missing reads as zero until then, so that one run names all that can be named so far.
 */
import type { Address } from "../../chain/address.js";
import { AppError } from "../../chain/errors.js";
import type { Hash32 } from "../../chain/hex.js";
import type { AccountRecord } from "../store/account-record.js";
import { type MaybePromise, type StateReader, ZERO_VALUE } from "../store/state-reader.js";
import { JournaledState } from "./journaled-state.js";

/** Values of history that one reader fetches; a page of a thousand validators takes a third. */
const MAX_FETCHED = 100_000;

/** Values that are fetched at once. */
const FETCHED_AT_ONCE = 256;

/** Codes of faults of such readers. */
export type StateAtErrorCode = "STATE_READ_TOO_LARGE";

/** Work that asks for more of history than one reader fetches. */
export class StateAtError extends AppError<StateAtErrorCode> {}

type Fetch = () => Promise<void>;

/** Stands for a value that has to be fetched. */
const LATER = Symbol("later");

/** The state after one block; it fetches every value once. */
export class StateAt {
  private readonly accounts = new Map<Address, AccountRecord | undefined>();
  private readonly slots = new Map<string, Uint8Array>();
  private fetched = 0;
  private isPast = false;

  /** @param reader of that block */
  constructor(private readonly reader: StateReader) {}

  /**
   * Runs work that only reads, or whose writes nobody keeps. It may run several times, and end in
   * an error on a state that is not complete yet: only its last run counts.
   * @throws HISTORY_PRUNED, STATE_READ_TOO_LARGE, what the work throws, the signal's reason
   */
  async read<Result>(
    work: (state: JournaledState) => Result,
    signal: AbortSignal,
  ): Promise<Result> {
    for (;;) {
      signal.throwIfAborted();
      const missing = new Map<string, Fetch>();
      const outcome = attempt(() => work(new JournaledState(this.known(missing))));
      if (missing.size === 0) {
        if ("error" in outcome) throw outcome.error;
        return outcome.result;
      }
      await this.fetch([...missing.values()], signal);
    }
  }

  private known(missing: Map<string, Fetch>): StateReader {
    return {
      account: (address) => {
        if (this.accounts.has(address)) return this.accounts.get(address);
        const found = this.now(() => this.reader.account(address));
        if (found !== LATER) return found;
        missing.set(address, async () => {
          this.accounts.set(address, await this.reader.account(address));
        });
        return undefined;
      },
      storage: (address, slot) => this.slot(address, slot, missing),
      code: (codeHash) => this.reader.code(codeHash),
    };
  }

  private slot(address: Address, slot: Hash32, missing: Map<string, Fetch>): Uint8Array {
    const name = `${address}${slot}`;
    const value = this.slots.get(name);
    if (value !== undefined) return value;
    const found = this.now(() => this.reader.storage(address, slot));
    if (found !== LATER) return found;
    missing.set(name, async () => {
      this.slots.set(name, await this.reader.storage(address, slot));
    });
    return ZERO_VALUE;
  }

  /** A value that is at hand. A block that is not the newest any more never becomes it again. */
  private now<Value>(find: () => MaybePromise<Value>): Value | typeof LATER {
    if (this.isPast) return LATER;
    const found = find();
    if (!(found instanceof Promise)) return found;
    this.isPast = true;
    // It is asked for again with the others; what it fails with, they fail with, too.
    found.catch(() => undefined);
    return LATER;
  }

  private async fetch(all: readonly Fetch[], signal: AbortSignal): Promise<void> {
    this.fetched += all.length;
    if (this.fetched > MAX_FETCHED) {
      const text = "the answer takes more of the chain's history than one query may read";
      throw new StateAtError("STATE_READ_TOO_LARGE", text);
    }
    for (let at = 0; at < all.length; at += FETCHED_AT_ONCE) {
      signal.throwIfAborted();
      await Promise.all(all.slice(at, at + FETCHED_AT_ONCE).map((one) => one()));
    }
  }
}

function attempt<Result>(
  work: () => Result,
): { readonly result: Result } | { readonly error: unknown } {
  try {
    return { result: work() };
  } catch (error) {
    return { error };
  }
}
