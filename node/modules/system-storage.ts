/**
 * State of the modules in the storage of system accounts (D25), so that it is covered by the state
 * root and inherits reverts, history, proofs and snapshots. The layout is Solidity's with every
 * value a `uint256`: `mapping` at slot p has key k at keccak256(k . p), members of a struct follow
 * each other, an array at p has its length there and its items from keccak256(p), a text is a
 * `bytes`. Each account has stub code, so that it is never removed as empty and its storage never
 * leaves the root.
 */
import type { Address } from "../../chain/address.js";
import { keccak256 } from "../../chain/hashes.js";
import {
  bigintToBytes,
  bigintToWord,
  bytesToBigint,
  bytesToHash32,
  type Hash32,
} from "../../chain/hex.js";
import type { JournaledState } from "../state/journaled-state.js";

/** Accounts whose storage is the state of a module. */
export const MODULE_ACCOUNTS = {
  staking: "0x0000000000000000000000000000000000000800" as Address,
  distribution: "0x0000000000000000000000000000000000000801" as Address,
  gov: "0x0000000000000000000000000000000000000805" as Address,
  slashing: "0x0000000000000000000000000000000000000806" as Address,
} as const;

/** A module with state. */
export type ModuleName = keyof typeof MODULE_ACCOUNTS;

/** Runtime code of a module's account: `PUSH1 0 PUSH1 0 REVERT`, so that calls move nothing. */
export const MODULE_STUB_CODE = "0x60006000fd";

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
export function dataSlot(slot: bigint): bigint {
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
    const value = this.state.storageNow(this.address, slotHash(slot));
    return value.length === 0 ? 0n : bytesToBigint(value);
  }

  /** Changes a slot; the value is below 2^256 and not negative. */
  setWord(slot: bigint, value: bigint): void {
    if (value < 0n || value >= WORD) throw new RangeError("a word of a module is out of range");
    const hash = slotHash(slot);
    // The overlay has to know what the slot was before.
    this.state.storageNow(this.address, hash);
    this.state.putStorage(this.address, hash, bigintToBytes(value));
  }

  /** UTF-8 text of a `bytes` at a slot: its length there, its words from `dataSlot`. */
  text(slot: bigint): string {
    const length = Number(this.word(slot));
    const first = dataSlot(slot);
    const words = Array.from({ length: Math.ceil(length / 32) }, (_, index) =>
      bigintToWord(this.word(first + BigInt(index))),
    );
    return Buffer.concat(words).subarray(0, length).toString("utf8");
  }

  /** Changes a text; words that it no longer needs are cleared. */
  setText(slot: bigint, text: string): void {
    const bytes = Buffer.from(text, "utf8");
    const first = dataSlot(slot);
    const wordsBefore = Math.ceil(Number(this.word(slot)) / 32);
    const words = Math.ceil(bytes.length / 32);
    for (let index = 0; index < Math.max(words, wordsBefore); index++) {
      const part = Buffer.alloc(32);
      bytes.copy(part, 0, index * 32, Math.min(bytes.length, (index + 1) * 32));
      this.setWord(first + BigInt(index), bytesToBigint(part));
    }
    this.setWord(slot, BigInt(bytes.length));
  }
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
    const first = dataSlot(this.slot);
    return Array.from({ length: this.size }, (_, index) =>
      this.storage.word(first + BigInt(index)),
    );
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

  private placeOf(member: bigint): bigint {
    return this.storage.word(mapSlot(this.slot + 1n, member));
  }
}

/** A slot as the state has it. */
export function slotHash(slot: bigint): Hash32 {
  return bytesToHash32(bigintToWord(slot % WORD));
}
