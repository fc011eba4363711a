/**
 * Delegations and what is on its way out, in the staking account's storage. Layout:
 *
 *  16 mapping operator -> mapping delegator -> shares (10^-18)
 *  17 mapping operator -> set of its delegators | 18 mapping delegator -> set of its operators
 *  20 number of entries made | 21 number of entries that are over | 22 completion of the newest (ms)
 *  23 mapping id -> entry | 24 mapping delegator -> set of its entries
 *  25 mapping operator -> set of the entries that leave it
 *  26 number of parts of the queue that are closed | 27 mapping place -> part: 0 number of its entries
 *  that are over, counted from the first entry of all, 1 its last id
 *
 * An entry: 0 kind, 1 delegator, 2 operator that is left, 3 operator that is gone to, 4 amount
 * left and 5 at first (atoken), 6 shares at the destination, 7 height and 8 end (ms), 9 slashes of
 * the operator that it has borne. Ids count from 1, and entries end in their order, but where the unbonding
 * time has become shorter: then the part of the queue up to there is closed, and 21 and 22 are of the part
 * that begins behind it.
 */
import type { Address } from "../../../chain/address.js";
import type { Atoken } from "../../../chain/units.js";
import { SDK_REFUSALS_VERSION } from "../../settings/app-version.js";
import type { JournaledState } from "../../state/journaled-state.js";
import {
  addressWord,
  type ListPart,
  mapSlot,
  type MemberPart,
  StoredSet,
  SystemStorage,
  wordAddress,
} from "../system-storage.js";

const SHARES = 16n;
const DELEGATORS = 17n;
const OPERATORS = 18n;
const ENTRIES_MADE = 20n;
const ENTRIES_OVER = 21n;
const NEWEST_END = 22n;
const ENTRIES = 23n;
const ENTRIES_OF_DELEGATOR = 24n;
const ENTRIES_OF_OPERATOR = 25n;
const CLOSED_PARTS = 26n;
const PARTS = 27n;

/** Each is looked at in every block; one is made by a vote alone, and goes when its last entry does. */
const MAX_CLOSED_PARTS = 32n;

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
  readonly amountAtoken: Atoken;
  readonly initialAtoken: Atoken;
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

  /** Some of a validator's delegators, as words; undefined for a beginning that is none of them. */
  delegatorsPart(operator: Address, part: ListPart): MemberPart | undefined {
    return this.setOf(DELEGATORS, operator).part(part);
  }

  /** Ids of some of the entries that leave a validator; undefined for a beginning that is none. */
  entriesPart(operator: Address, part: ListPart): MemberPart | undefined {
    return this.setOf(ENTRIES_OF_OPERATOR, operator).part(part);
  }

  /** @param most where only the first ones are wanted */
  operatorsOf(delegator: Address, most = Number.MAX_SAFE_INTEGER): Address[] {
    return this.setOf(OPERATORS, delegator).slice(0, most).map(wordAddress);
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

  /** Whether anything leaves a validator. */
  hasEntriesFrom(operator: Address): boolean {
    return this.setOf(ENTRIES_OF_OPERATOR, operator).size > 0;
  }

  /**
   * Puts an entry at the end of the queue. By the first rules it ends no sooner than those before it:
   * an unbonding time that was shortened counted for nobody until the last old entry was over.
   */
  add(entry: Omit<QueueEntry, "id">, appVersion: number): QueueEntry {
    const made = this.storage.word(ENTRIES_MADE);
    const id = made + 1n;
    this.storage.setWord(ENTRIES_MADE, id);
    const newestEndMs = Number(this.storage.word(NEWEST_END));
    const isSooner = entry.endMs < newestEndMs && appVersion >= SDK_REFUSALS_VERSION;
    const endMs =
      isSooner && this.closePart(made) ? entry.endMs : Math.max(entry.endMs, newestEndMs);
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

  /**
   * Takes a part of an unbonding back, less than all of it. A slash asks for its part of what an entry
   * began with: what came back answers as stake again, and by the first rules here as well.
   */
  takeBack(entry: QueueEntry, backAtoken: Atoken, appVersion: number): void {
    const { amountAtoken, initialAtoken, borneSlashes } = entry;
    this.update(entry, { amountAtoken: amountAtoken - backAtoken, borneSlashes });
    if (appVersion < SDK_REFUSALS_VERSION) return;
    this.storage.setWord(mapSlot(ENTRIES, entry.id) + 5n, initialAtoken - backAtoken);
  }

  /** Forgets an entry; its place in the queue is passed over. */
  remove(entry: QueueEntry): void {
    const base = mapSlot(ENTRIES, entry.id);
    for (let place = 0n; place < 10n; place++) this.storage.setWord(base + place, 0n);
    this.setOf(ENTRIES_OF_DELEGATOR, entry.delegator).remove(entry.id);
    this.setOf(ENTRIES_OF_OPERATOR, entry.source).remove(entry.id);
  }

  /** Closes the queue up to an entry. @returns false where there are too many parts already */
  private closePart(last: bigint): boolean {
    const count = this.storage.word(CLOSED_PARTS);
    const over = this.storage.word(ENTRIES_OVER);
    if (over < last) {
      if (count >= MAX_CLOSED_PARTS) return false;
      const part = mapSlot(PARTS, count);
      this.storage.setWord(part, over);
      this.storage.setWord(part + 1n, last);
      this.storage.setWord(CLOSED_PARTS, count + 1n);
    }
    this.storage.setWord(ENTRIES_OVER, last);
    return true;
  }

  /** Forgets a closed part; the last one takes its place. */
  private removePart(place: bigint): void {
    const newest = this.storage.word(CLOSED_PARTS) - 1n;
    const [part, other] = [mapSlot(PARTS, place), mapSlot(PARTS, newest)];
    for (const member of [0n, 1n]) {
      this.storage.setWord(part + member, this.storage.word(other + member));
      this.storage.setWord(other + member, 0n);
    }
    this.storage.setWord(CLOSED_PARTS, newest);
  }

  /**
   * The next entry that is over; places of removed ones are passed over.
   * @param left places that may still be looked at, at least 1
   * @returns the entry and how many places were passed; undefined entry when none is over
   */
  nextOver(timeMs: number, left: number): { entry: QueueEntry | undefined; passed: number } {
    let passed = 0;
    for (let place = this.storage.word(CLOSED_PARTS); place > 0n && passed < left; place--) {
      const part = mapSlot(PARTS, place - 1n);
      const last = this.storage.word(part + 1n);
      const found = this.walk(part, last, { timeMs, left: left - passed });
      passed += found.passed;
      if (this.storage.word(part) === last) this.removePart(place - 1n);
      if (found.entry !== undefined) return { entry: found.entry, passed };
    }
    if (passed >= left) return { entry: undefined, passed };
    const last = this.storage.word(ENTRIES_MADE);
    const found = this.walk(ENTRIES_OVER, last, { timeMs, left: left - passed });
    return { entry: found.entry, passed: passed + found.passed };
  }

  /** Looks at one part of the queue; `overSlot` has how far it has come, and gets it. */
  private walk(
    overSlot: bigint,
    last: bigint,
    { timeMs, left }: { readonly timeMs: number; readonly left: number },
  ): { entry: QueueEntry | undefined; passed: number } {
    const first = this.storage.word(overSlot);
    let over = first;
    let entry: QueueEntry | undefined;
    while (over < last && over - first < BigInt(left)) {
      const next = this.entry(over + 1n);
      const isRemoved = next.initialAtoken === 0n && next.endMs === 0;
      if (!isRemoved && next.endMs > timeMs) break;
      over += 1n;
      if (isRemoved) continue;
      entry = next;
      break;
    }
    if (over !== first) this.storage.setWord(overSlot, over);
    return { entry, passed: Number(over - first) };
  }

  /** Whether entries may end before older ones: the unbonding time has become shorter. */
  get hasClosedParts(): boolean {
    return this.storage.word(CLOSED_PARTS) > 0n;
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
