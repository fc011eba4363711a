/**
 * State of the modules in the storage of system accounts (D25), so that it is covered by the state
 * root and inherits reverts, history, proofs and snapshots. The layout is Solidity's with every
 * value a `uint256`: `mapping` at slot p has key k at keccak256(k . p), members of a struct follow
 * each other, an array at p has its length there and its items from keccak256(p), a text is a
 * `bytes`. Each account has stub code, so that it is never removed as empty and its storage never
 * leaves the root.
 */
import type { Address } from "../../chain/address.js";
import { keccak256, keccak256Hex } from "../../chain/hashes.js";
import {
  bigintToBytes,
  bigintToWord,
  bytesToBigint,
  bytesToHash32,
  type Hash32,
  hexToBytes,
} from "../../chain/hex.js";
import type { JournaledState } from "../state/journaled-state.js";

/** Accounts whose storage is the state of a module. */
export const MODULE_ACCOUNTS = {
  staking: "0x0000000000000000000000000000000000000800" as Address,
  distribution: "0x0000000000000000000000000000000000000801" as Address,
  vesting: "0x0000000000000000000000000000000000000803" as Address,
  gov: "0x0000000000000000000000000000000000000805" as Address,
  slashing: "0x0000000000000000000000000000000000000806" as Address,
  upgrade: "0x0000000000000000000000000000000000000810" as Address,
} as const;

/** A module with state. */
export type ModuleName = keyof typeof MODULE_ACCOUNTS;

/** Contracts of the chain without state, which have code so that other contracts see one there. */
export const STATELESS_ACCOUNTS: readonly Address[] = [
  "0x0000000000000000000000000000000000000400" as Address,
  "0x0000000000000000000000000000000000000804" as Address,
];

/** Runtime code of a module's account: `PUSH1 0 PUSH1 0 REVERT`, so that calls move nothing. */
export const MODULE_STUB_CODE = hexToBytes("0x60006000fd");
const STUB_CODE_HASH = keccak256Hex(MODULE_STUB_CODE);

/**
 * Whether the chain's validators have stake. Chains whose genesis names no operators have not: their
 * validators stay as they are, until one signs twice.
 */
export function hasModules(state: JournaledState): boolean {
  return state.accountNow(MODULE_ACCOUNTS.staking)?.codeHash === STUB_CODE_HASH;
}

/** Slots that were worked out, which is most of what an access takes. */
const MAX_KNOWN_SLOTS = 50_000;
const knownSlots = new Map<string, bigint>();
const WORD = 1n << 256n;

/** Slot of a key of the mapping at `slot`. */
export function mapSlot(slot: bigint, key: bigint): bigint {
  const name = `${slot.toString(36)}.${key.toString(36)}`;
  return known(name, () => Buffer.concat([bigintToWord(key), bigintToWord(slot)]));
}

/** Slot of the first item of the array, or of the first word of the text, at `slot`. */
function dataSlot(slot: bigint): bigint {
  return known(slot.toString(36), () => bigintToWord(slot));
}

function known(name: string, preimage: () => Uint8Array): bigint {
  const found = knownSlots.get(name);
  if (found !== undefined) return found;
  const made = bytesToBigint(keccak256(preimage()));
  if (knownSlots.size >= MAX_KNOWN_SLOTS) knownSlots.clear();
  knownSlots.set(name, made);
  return made;
}

/** An account as a key or a value. */
export function addressWord(address: Address): bigint {
  return BigInt(address);
}

/** The account that a word holds. */
export function wordAddress(word: bigint): Address {
  return `0x${word.toString(16).padStart(40, "0")}` as Address;
}

/** The storage of one module. */
export class SystemStorage {
  private readonly address: Address;

  constructor(
    private readonly state: JournaledState,
    module: ModuleName,
  ) {
    this.address = MODULE_ACCOUNTS[module];
  }

  /** The value of a slot. */
  word(slot: bigint): bigint {
    this.state.wordListener?.read(this.address, slot % WORD);
    const value = this.state.storageNow(this.address, slotHash(slot));
    return value.length === 0 ? 0n : bytesToBigint(value);
  }

  /** Changes a slot; the value is below 2^256 and not negative. */
  setWord(slot: bigint, value: bigint): void {
    if (value < 0n || value >= WORD) throw new RangeError("a word of a module is out of range");
    this.state.wordListener?.write(this.address, slot % WORD, value);
    const hash = slotHash(slot);
    // The overlay has to know what the slot was before.
    this.state.storageNow(this.address, hash);
    this.state.putStorage(this.address, hash, bigintToBytes(value));
  }

  /** A `bytes` at a slot: its length there, its words from `dataSlot`. */
  bytes(slot: bigint): Buffer {
    const length = Number(this.word(slot));
    const first = dataSlot(slot);
    const words = listOf(Math.ceil(length / 32), (index) =>
      bigintToWord(this.word(first + BigInt(index))),
    );
    return Buffer.concat(words).subarray(0, length);
  }

  /** Changes a `bytes`; words that it no longer needs are cleared. */
  setBytes(slot: bigint, bytes: Uint8Array): void {
    const first = dataSlot(slot);
    const wordsBefore = Math.ceil(Number(this.word(slot)) / 32);
    const words = Math.ceil(bytes.length / 32);
    for (let index = 0; index < Math.max(words, wordsBefore); index++) {
      const part = Buffer.alloc(32);
      part.set(bytes.subarray(index * 32, (index + 1) * 32));
      this.setWord(first + BigInt(index), bytesToBigint(part));
    }
    this.setWord(slot, BigInt(bytes.length));
  }

  /** UTF-8 text of a `bytes`. */
  text(slot: bigint): string {
    return this.bytes(slot).toString("utf8");
  }

  /** Changes a text. */
  setText(slot: bigint, text: string): void {
    this.setBytes(slot, Buffer.from(text, "utf8"));
  }
}

/**
 * A list whose items are read from storage, in order; empty for a count below 1. Room is made as items are
 * read and not before: whoever is told of words may end it at the first one, because nobody pays for it,
 * and room for a million items would have been made for nothing each time.
 */
export function listOf<Item>(count: number, itemAt: (index: number) => Item): Item[] {
  const items: Item[] = [];
  for (let index = 0; index < count; index++) items.push(itemAt(index));
  return items;
}

/** Which members of a list are wanted. */
export interface ListPart {
  /** The member to begin with; undefined: by the offset. */
  readonly from: bigint | undefined;
  readonly offset: number;
  readonly limit: number;
  readonly isReverse: boolean;
}

/** Some members of a list. */
export interface MemberPart {
  readonly members: readonly bigint[];
  /** The member after them. */
  readonly next: bigint | undefined;
  /** Members of the whole list. */
  readonly size: number;
}

/**
 * A set of words that can be listed: the array of its members at `slot`, the mapping of each to its
 * place counted from 1 in the slot after. What is removed is replaced by the last one.
 */
export class StoredSet {
  constructor(
    private readonly storage: SystemStorage,
    private readonly slot: bigint,
  ) {}

  get size(): number {
    return Number(this.storage.word(this.slot));
  }

  has(member: bigint): boolean {
    return this.placeOf(member) > 0n;
  }

  /** Members in the order of their places. */
  members(): bigint[] {
    return this.slice(0, Number.MAX_SAFE_INTEGER);
  }

  /** At most so many members, from a place on. */
  slice(from: number, most: number): bigint[] {
    const first = dataSlot(this.slot) + BigInt(from);
    const count = Math.min(most, this.size - from);
    return listOf(count, (index) => this.storage.word(first + BigInt(index)));
  }

  /** Removes all. */
  clear(): void {
    const first = dataSlot(this.slot);
    for (const [index, member] of this.members().entries()) {
      this.storage.setWord(first + BigInt(index), 0n);
      this.storage.setWord(mapSlot(this.slot + 1n, member), 0n);
    }
    this.storage.setWord(this.slot, 0n);
  }

  /** Some of the members; undefined where the one to begin with is not in it. */
  part({ from, offset, limit, isReverse }: ListPart): MemberPart | undefined {
    const { size } = this;
    const place = from === undefined ? 0n : this.placeOf(from);
    if (from !== undefined && place === 0n) return undefined;
    const at = Number(place) - 1;
    const start = from === undefined ? offset : isReverse ? size - 1 - at : at;
    const first = dataSlot(this.slot);
    const memberAt = (index: number) => {
      const inOrder = isReverse ? size - 1 - index : index;
      return this.storage.word(first + BigInt(inOrder));
    };
    const end = Math.min(size, start + limit);
    const count = Math.max(0, end - start);
    const members = listOf(count, (index) => memberAt(start + index));
    return { members, next: end < size && count > 0 ? memberAt(end) : undefined, size };
  }

  /** Adds a member that is not in it yet. */
  add(member: bigint): void {
    if (this.has(member)) return;
    const size = this.storage.word(this.slot);
    this.storage.setWord(dataSlot(this.slot) + size, member);
    this.storage.setWord(mapSlot(this.slot + 1n, member), size + 1n);
    this.storage.setWord(this.slot, size + 1n);
  }

  /** Removes a member that is in it. */
  remove(member: bigint): void {
    const place = this.placeOf(member);
    if (place === 0n) return;
    const size = this.storage.word(this.slot);
    const first = dataSlot(this.slot);
    const last = this.storage.word(first + size - 1n);
    if (last !== member) {
      this.storage.setWord(first + place - 1n, last);
      this.storage.setWord(mapSlot(this.slot + 1n, last), place);
    }
    this.storage.setWord(first + size - 1n, 0n);
    this.storage.setWord(mapSlot(this.slot + 1n, member), 0n);
    this.storage.setWord(this.slot, size - 1n);
  }

  /** Place of a member, counted from 1; 0 for one that is not in it. */
  placeOf(member: bigint): bigint {
    return this.storage.word(mapSlot(this.slot + 1n, member));
  }
}

/** A slot as the state has it. */
export function slotHash(slot: bigint): Hash32 {
  return bytesToHash32(bigintToWord(slot % WORD));
}
