/** What every balance must be, from the operations alone; all that the walk keeps of the past. */
import assert from "node:assert/strict";
import { balanceKey, type BlockDelta } from "./block-check.js";
import { MeshCheckError } from "./errors.js";
import type { CurrencyIdentity, Identity } from "./identity.js";

/** One account's balance in one currency. */
export interface BalanceEntry {
  readonly account: Identity;
  readonly currency: CurrencyIdentity;
  /** Sum of all operations up to the block that was applied last. */
  sum: bigint;
  /** Highest block whose balance was, or is being, asked for. */
  askedIndex: number;
  /** Highest block at which the answer agreed with everything reported so far. */
  agreedIndex: number;
  /** Answered balance less the sum, as already reported: a fault is told once, not in each block. */
  offset: bigint;
}

/** What a block does to one balance, or that it is looked at although nothing happened to it. */
export interface BalanceCheck {
  readonly entry: BalanceEntry;
  readonly index: number;
  /** Sum before the block; undefined when the balance of the block before is known already. */
  readonly before: bigint | undefined;
  /** Sum after the block. */
  readonly after: bigint;
  /** No operation of the block names it. */
  readonly isIdle: boolean;
}

/** Balances kept: about 500 bytes each, so half a gigabyte at most. */
const MAX_BALANCES = 1_000_000;

/** Sums per account and currency. */
export class BalanceBook {
  readonly #entries = new Map<string, BalanceEntry>();
  /** The same entries in order of appearance, to pick from. */
  readonly #list: BalanceEntry[] = [];

  /** @param firstIndex first block that is walked; sums before it are given to `open` */
  constructor(private readonly firstIndex: number) {}

  get size(): number {
    return this.#list.length;
  }

  /** The entry at a position below `size`. */
  at(position: number): BalanceEntry | undefined {
    return this.#list[position];
  }

  has(account: Identity, currency: Identity): boolean {
    return this.#entries.has(balanceKey(account, currency));
  }

  /**
   * Starts a balance with what it was before the first block.
   * @throws TOO_MANY_BALANCES
   */
  open(account: Identity, currency: CurrencyIdentity, sum: bigint): BalanceEntry {
    if (this.#list.length >= MAX_BALANCES) {
      const message = `More than ${MAX_BALANCES} balances; check the chain in parts with --from.`;
      throw new MeshCheckError("TOO_MANY_BALANCES", message);
    }
    const start = this.firstIndex - 1;
    const entry: BalanceEntry = {
      account,
      currency,
      sum,
      askedIndex: start,
      agreedIndex: start,
      offset: 0n,
    };
    this.#entries.set(balanceKey(account, currency), entry);
    this.#list.push(entry);
    return entry;
  }

  /** Applies a block's change of an open balance. */
  apply(index: number, { account, currency, delta }: BlockDelta): BalanceCheck {
    const entry = this.#entries.get(balanceKey(account, currency));
    assert(entry !== undefined, "a balance is opened before a change of it is applied");
    const before = entry.askedIndex < index - 1 ? entry.sum : undefined;
    entry.sum += delta;
    entry.askedIndex = index;
    return { entry, index, before, after: entry.sum, isIdle: false };
  }

  /** A look at a balance at a block; undefined when it is looked at there anyway. */
  idle(entry: BalanceEntry, index: number): BalanceCheck | undefined {
    if (entry.askedIndex >= index) return undefined;
    entry.askedIndex = index;
    return { entry, index, before: undefined, after: entry.sum, isIdle: true };
  }
}
