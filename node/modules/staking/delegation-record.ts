/**
 * Delegations and what is on its way out, in the staking account's storage. Layout:
 *
 *  16 mapping operator -> mapping delegator -> shares (10^-18)
 *  17 mapping operator -> set of its delegators | 18 mapping delegator -> set of its operators
 *  20 number of entries made | 21 number of entries that are over | 22 completion of the newest (ms)
 *  23 mapping id -> entry | 24 mapping delegator -> set of its entries
 *  25 mapping operator -> set of the entries that leave it
 *
 * An entry: 0 kind, 1 delegator, 2 operator that is left, 3 operator that is gone to, 4 amount
 * left and 5 at first (atoken), 6 shares at the destination, 7 height and 8 end (ms), 9 slashes of
 * the operator that it has borne. Ids count from 1; entries end in the order of their ids.
 */
import type { Address } from "../../../chain/address.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { addressWord, mapSlot, StoredSet, SystemStorage, wordAddress } from "../system-storage.js";

const SHARES = 16n;
const DELEGATORS = 17n;
const OPERATORS = 18n;
const ENTRIES_MADE = 20n;
const ENTRIES_OVER = 21n;
const NEWEST_END = 22n;
const ENTRIES = 23n;
const ENTRIES_OF_DELEGATOR = 24n;
const ENTRIES_OF_OPERATOR = 25n;

/** What ends with an entry of the queue. */
export const ENTRY_KIND = { unbonding: 1, redelegation: 2, validator: 3 } as const;

/** One of `ENTRY_KIND`. */
export type EntryKind = (typeof ENTRY_KIND)[keyof typeof ENTRY_KIND];

/** Something that ends after the unbonding time. */
export interface QueueEntry {
  readonly id: bigint;
  readonly kind: EntryKind;
  readonly delegator: Address;
  /** Validator that is left. */
  readonly source: Address;
  /** Validator that is gone to, of a redelegation; otherwise the source. */
  readonly destination: Address;
  readonly amountAtoken: bigint;
  readonly initialAtoken: bigint;
  readonly destinationShares: bigint;
  readonly height: number;
  readonly endMs: number;
  /** Slashes of the source that it has borne. */
  readonly borneSlashes: number;
}

/** Delegations and queue of a state. */
export class Delegations {
  private readonly storage: SystemStorage;

  constructor(state: JournaledState) {
    this.storage = new SystemStorage(state, "staking");
  }

  /** Shares of a delegation, 10^-18; 0 where there is none. */
  shares(operator: Address, delegator: Address): bigint {
    return this.storage.word(sharesSlot(operator, delegator));
  }

  setShares(operator: Address, delegator: Address, shares: bigint): void {
    this.storage.setWord(sharesSlot(operator, delegator), shares);
    const delegators = this.setOf(DELEGATORS, operator);
    const operators = this.setOf(OPERATORS, delegator);
    if (shares > 0n) {
      delegators.add(addressWord(delegator));
      operators.add(addressWord(operator));
    } else {
      delegators.remove(addressWord(delegator));
      operators.remove(addressWord(operator));
    }
  }

  delegatorsOf(operator: Address): Address[] {
    return this.setOf(DELEGATORS, operator).members().map(wordAddress);
  }

  operatorsOf(delegator: Address): Address[] {
    return this.setOf(OPERATORS, delegator).members().map(wordAddress);
  }

  /** Entries of an account, in no order. */
  entriesOf(delegator: Address): QueueEntry[] {
    return this.setOf(ENTRIES_OF_DELEGATOR, delegator)
      .members()
      .map((id) => this.entry(id));
  }

  /** Entries that leave a validator, in no order. */
  entriesFrom(operator: Address): QueueEntry[] {
    return this.setOf(ENTRIES_OF_OPERATOR, operator)
      .members()
      .map((id) => this.entry(id));
  }

  /**
   * Puts an entry at the end of the queue.
   * @param endMs when it is to end; it ends no sooner than those before it
   */
  add(entry: Omit<QueueEntry, "id">): QueueEntry {
    const id = this.storage.word(ENTRIES_MADE) + 1n;
    this.storage.setWord(ENTRIES_MADE, id);
    const newestEndMs = Number(this.storage.word(NEWEST_END));
    const endMs = Math.max(entry.endMs, newestEndMs);
    this.storage.setWord(NEWEST_END, BigInt(endMs));
    const added = { ...entry, id, endMs };
    this.write(added);
    if (entry.kind !== ENTRY_KIND.validator) {
      this.setOf(ENTRIES_OF_DELEGATOR, entry.delegator).add(id);
      this.setOf(ENTRIES_OF_OPERATOR, entry.source).add(id);
    }
    return added;
  }

  /** What is left of an entry, and the slashes that it has borne. */
  update(entry: QueueEntry, next: Pick<QueueEntry, "amountAtoken" | "borneSlashes">): void {
    const base = mapSlot(ENTRIES, entry.id);
    this.storage.setWord(base + 4n, next.amountAtoken);
    this.storage.setWord(base + 9n, BigInt(next.borneSlashes));
  }

  /** Forgets an entry; its place in the queue is passed over. */
  remove(entry: QueueEntry): void {
    const base = mapSlot(ENTRIES, entry.id);
    for (let place = 0n; place < 10n; place++) this.storage.setWord(base + place, 0n);
    this.setOf(ENTRIES_OF_DELEGATOR, entry.delegator).remove(entry.id);
    this.setOf(ENTRIES_OF_OPERATOR, entry.source).remove(entry.id);
  }

  /**
   * The next entry that is over; places of removed ones are passed over.
   * @param left places that may still be looked at, at least 1
   * @returns the entry and how many places were passed; undefined entry when none is over
   */
  nextOver(timeMs: number, left: number): { entry: QueueEntry | undefined; passed: number } {
    const made = this.storage.word(ENTRIES_MADE);
    const first = this.storage.word(ENTRIES_OVER);
    let over = first;
    let entry: QueueEntry | undefined;
    while (over < made && over - first < BigInt(left)) {
      const next = this.entry(over + 1n);
      const isRemoved = next.initialAtoken === 0n && next.endMs === 0;
      if (!isRemoved && next.endMs > timeMs) break;
      over += 1n;
      if (isRemoved) continue;
      entry = next;
      break;
    }
    if (over !== first) this.storage.setWord(ENTRIES_OVER, over);
    return { entry, passed: Number(over - first) };
  }

  /** An entry by its id. */
  entry(id: bigint): QueueEntry {
    const base = mapSlot(ENTRIES, id);
    const word = (place: bigint) => this.storage.word(base + place);
    return {
      id,
      kind: Number(word(0n)) as EntryKind,
      delegator: wordAddress(word(1n)),
      source: wordAddress(word(2n)),
      destination: wordAddress(word(3n)),
      amountAtoken: word(4n),
      initialAtoken: word(5n),
      destinationShares: word(6n),
      height: Number(word(7n)),
      endMs: Number(word(8n)),
      borneSlashes: Number(word(9n)),
    };
  }

  private write(entry: QueueEntry): void {
    const base = mapSlot(ENTRIES, entry.id);
    const words = [
      BigInt(entry.kind),
      addressWord(entry.delegator),
      addressWord(entry.source),
      addressWord(entry.destination),
      entry.amountAtoken,
      entry.initialAtoken,
      entry.destinationShares,
      BigInt(entry.height),
      BigInt(entry.endMs),
      BigInt(entry.borneSlashes),
    ];
    for (const [place, word] of words.entries()) this.storage.setWord(base + BigInt(place), word);
  }

  private setOf(slot: bigint, address: Address): StoredSet {
    return new StoredSet(this.storage, mapSlot(slot, addressWord(address)));
  }
}

function sharesSlot(operator: Address, delegator: Address): bigint {
  return mapSlot(mapSlot(SHARES, addressWord(operator)), addressWord(delegator));
}
