/**
 * A block's (or a call's) view of the accounts: reads through to committed state, keeps changes in
 * memory with an undo journal, and never touches the store. Checkpoints nest; a revert undoes
 * everything that happened since, whoever did it.
 */
import type { Address } from "../../chain/address.js";
import { keccak256Hex } from "../../chain/hashes.js";
import { EMPTY_CODE_HASH, type Hash32, MAX_WORD } from "../../chain/hex.js";
import { allAtOnce, eachInSteps, type Steps } from "../../chain/steps/steps.js";
import type { Atoken } from "../../chain/units.js";
import { type AccountRecord, EMPTY_ACCOUNT, isEmptyAccount } from "../store/account-record.js";
import type { BalanceLocks } from "./balance-locks.js";
import { type MaybePromise, type StateReader, ZERO_VALUE } from "../store/state-reader.js";

type Undo = () => void;

/** Called for every balance that changes, in order, with its difference. */
export type BalanceListener = (address: Address, deltaAtoken: Atoken) => void;

/** Told of the words of modules' state, before they are read or written. */
export interface WordListener {
  read(address: Address, slot: bigint): void;
  /** `value` is what the slot will hold. */
  write(address: Address, slot: bigint, value: bigint): void;
}

/** An account before and after. */
export interface AccountChange {
  readonly before: AccountRecord | undefined;
  readonly after: AccountRecord | undefined;
}

/** The overlay. One executor owns it; it is not shared. */
export class JournaledState {
  private readonly accounts = new Map<Address, AccountRecord | undefined>();
  private readonly originals = new Map<Address, AccountRecord | undefined>();
  private readonly slots = new Map<Address, Map<Hash32, Uint8Array>>();
  private readonly originalSlots = new Map<Address, Map<Hash32, Uint8Array>>();
  private readonly codes = new Map<Hash32, Uint8Array>();
  private readonly codeSizes = new Map<Hash32, number>();
  /** Accounts whose committed storage must not be seen any more (created over, destroyed). */
  private readonly wiped = new Set<Address>();
  private readonly undo: Undo[] = [];
  private readonly marks: number[] = [];
  private transactionSlots = new Map<Address, Map<Hash32, Uint8Array>>();
  /** Set while the EVM runs, to turn raw differences into journal entries. */
  balanceListener: BalanceListener | undefined;
  /** Set while code calls a module, which pays for the words that the module needs. */
  wordListener: WordListener | undefined;
  /** Coins that may not leave; undefined where no account has a schedule, and for reads alone. */
  locks: BalanceLocks | undefined;
  private ignoresLocks = false;

  constructor(private readonly reader: StateReader) {}

  /** The account, or undefined where there is none. */
  account(address: Address): MaybePromise<AccountRecord | undefined> {
    if (this.accounts.has(address)) return this.accounts.get(address);
    const found = this.reader.account(address);
    return found instanceof Promise
      ? found.then((account) => this.remember(address, account))
      : this.remember(address, found);
  }

  /** As `account`, for readers that answer at once. */
  accountNow(address: Address): AccountRecord | undefined {
    return now(this.account(address));
  }

  private remember(
    address: Address,
    account: AccountRecord | undefined,
  ): AccountRecord | undefined {
    if (!this.accounts.has(address)) {
      this.accounts.set(address, account);
      this.originals.set(address, account);
    }
    return this.accounts.get(address);
  }

  /** Replaces an account that was read before; undefined removes it. */
  putAccount(address: Address, account: AccountRecord | undefined): void {
    const before = this.accounts.get(address);
    this.accounts.set(address, account);
    this.undo.push(() => {
      this.accounts.set(address, before);
    });
    if (this.balanceListener !== undefined) {
      const delta = (account?.balanceAtoken ?? 0n) - (before?.balanceAtoken ?? 0n);
      if (delta !== 0n) this.balanceListener(address, delta);
    }
  }

  /** Whether coins of an account are bound to a schedule: no contract may come to be there. */
  isLocking(address: Address): boolean {
    return this.locks?.isLocking(address) === true;
  }

  /** What of a balance may leave the account, atoken. */
  spendableNow(address: Address): bigint {
    const balanceAtoken = this.accountNow(address)?.balanceAtoken ?? 0n;
    const lockedAtoken = this.lockedNow(address);
    return balanceAtoken > lockedAtoken ? balanceAtoken - lockedAtoken : 0n;
  }

  /** Runs what may move locked coins, too: delegating them. */
  withLocked<Result>(work: () => Result): Result {
    const before = this.ignoresLocks;
    this.ignoresLocks = true;
    try {
      return work();
    } finally {
      this.ignoresLocks = before;
    }
  }

  private lockedNow(address: Address): bigint {
    if (this.locks === undefined || this.ignoresLocks) return 0n;
    return this.locks.lockedAtoken(address);
  }

  /**
   * Adds to (or takes from) a balance. Returns false, and changes nothing, if it would go below 0 or
   * below what is locked. Past a word, where only calls with a balance of their own come, it begins
   * anew at 0, as go-ethereum's.
   */
  moveBalance(address: Address, deltaAtoken: Atoken): boolean {
    const account = this.accountNow(address) ?? EMPTY_ACCOUNT;
    const sumAtoken = account.balanceAtoken + deltaAtoken;
    if (sumAtoken < 0n) return false;
    if (deltaAtoken < 0n && sumAtoken < this.lockedNow(address)) return false;
    const balanceAtoken = sumAtoken > MAX_WORD ? BigInt.asUintN(256, sumAtoken) : sumAtoken;
    const next = { ...account, balanceAtoken };
    this.putAccount(address, isEmptyAccount(next) ? undefined : next);
    return true;
  }

  /** Code of an account; no bytes where there is none. */
  code(codeHash: Hash32): MaybePromise<Uint8Array> {
    if (codeHash === EMPTY_CODE_HASH) return ZERO_VALUE;
    return this.codes.get(codeHash) ?? this.reader.code(codeHash);
  }

  /** As `code`, for readers that answer at once. */
  codeNow(codeHash: Hash32): Uint8Array {
    return now(this.code(codeHash));
  }

  /**
   * Bytes of code, for readers that answer at once. Each code is read for it once: who only asks for
   * sizes would have whole codes read from the disk for the price of an opcode.
   */
  codeSizeNow(codeHash: Hash32): number {
    const known = this.codeSizes.get(codeHash);
    if (known !== undefined) return known;
    const sizeBytes = this.codeNow(codeHash).length;
    this.codeSizes.set(codeHash, sizeBytes);
    return sizeBytes;
  }

  /** Stores code and returns its hash; the account must be updated by the caller. */
  putCode(code: Uint8Array): Hash32 {
    if (code.length === 0) return EMPTY_CODE_HASH;
    const codeHash = keccak256Hex(code);
    this.codes.set(codeHash, code);
    return codeHash;
  }

  /** Storage slot, without leading zeros. */
  storage(address: Address, slot: Hash32): MaybePromise<Uint8Array> {
    const known = this.slots.get(address)?.get(slot);
    if (known !== undefined) return known;
    if (this.wiped.has(address)) return ZERO_VALUE;
    const found = this.reader.storage(address, slot);
    return found instanceof Promise
      ? found.then((value) => this.rememberSlot(address, slot, value))
      : this.rememberSlot(address, slot, found);
  }

  private rememberSlot(address: Address, slot: Hash32, value: Uint8Array): Uint8Array {
    const known = this.slots.get(address)?.get(slot);
    if (known !== undefined) return known;
    slotMap(this.slots, address).set(slot, value);
    const originals = slotMap(this.originalSlots, address);
    if (!originals.has(slot)) originals.set(slot, value);
    return value;
  }

  /** As `storage`, for readers that answer at once. */
  storageNow(address: Address, slot: Hash32): Uint8Array {
    return now(this.storage(address, slot));
  }

  /** Writes a slot that was read before; the value has no leading zeros. */
  putStorage(address: Address, slot: Hash32, value: Uint8Array): void {
    const map = slotMap(this.slots, address);
    const before = map.get(slot);
    const originals = slotMap(this.transactionSlots, address);
    if (!originals.has(slot)) originals.set(slot, before ?? ZERO_VALUE);
    map.set(slot, value);
    this.undo.push(() => {
      if (before === undefined) map.delete(slot);
      else map.set(slot, before);
    });
  }

  /** Value of a slot before the transaction that runs (EIP-2200, EIP-3529). */
  transactionStorage(address: Address, slot: Hash32): MaybePromise<Uint8Array> {
    return this.transactionSlots.get(address)?.get(slot) ?? this.storage(address, slot);
  }

  /** As `transactionStorage`, for readers that answer at once. */
  transactionStorageNow(address: Address, slot: Hash32): Uint8Array {
    return now(this.transactionStorage(address, slot));
  }

  /**
   * Whether an earlier transaction of the block left a slot, which was read, with another value than
   * the block found. By values alone: who proposes has read slots for transactions that are in no block.
   */
  wasChangedBefore(address: Address, slot: Hash32): boolean {
    const before =
      this.transactionSlots.get(address)?.get(slot) ?? this.slots.get(address)?.get(slot);
    const original = this.originalSlots.get(address)?.get(slot);
    if (before === original) return false;
    return Buffer.compare(before ?? ZERO_VALUE, original ?? ZERO_VALUE) !== 0;
  }

  /** Forgets all storage of an account, committed storage included. */
  wipeStorage(address: Address): void {
    const before = this.slots.get(address);
    const wasWiped = this.wiped.has(address);
    this.slots.delete(address);
    this.wiped.add(address);
    this.undo.push(() => {
      if (before === undefined) this.slots.delete(address);
      else this.slots.set(address, before);
      if (!wasWiped) this.wiped.delete(address);
    });
  }

  /** Starts a transaction: what SSTORE calls "original" is the state now. */
  beginTransaction(): void {
    this.transactionSlots = new Map();
  }

  /** Open checkpoints. */
  depth(): number {
    return this.marks.length;
  }

  /** Opens a checkpoint. */
  checkpoint(): void {
    this.marks.push(this.undo.length);
  }

  /** Keeps the changes since the last checkpoint (an outer revert can still undo them). */
  commit(): void {
    this.closeCheckpoint();
    if (this.marks.length === 0) this.undo.length = 0;
  }

  /** Undoes the changes since the last checkpoint; the balance listener does not hear of it. */
  revert(): void {
    const mark = this.closeCheckpoint();
    while (this.undo.length > mark) this.undo.pop()?.();
  }

  private closeCheckpoint(): number {
    const mark = this.marks.pop();
    if (mark === undefined) throw new RangeError("no checkpoint is open");
    return mark;
  }

  /** Accounts that differ from committed state, with both versions. */
  changedAccounts(): Map<Address, AccountChange> {
    return allAtOnce(this.changedAccountSteps());
  }

  /** The same in steps; nothing may change between them. */
  *changedAccountSteps(): Steps<Map<Address, AccountChange>> {
    const changed = new Map<Address, AccountChange>();
    yield* eachInSteps(this.accounts, ([address, after]) => {
      const before = this.originals.get(address);
      if (before !== after && !sameAccount(before, after)) changed.set(address, { before, after });
    });
    return changed;
  }

  /** Storage slots that differ from committed state, by account. */
  changedStorage(): Map<Address, Map<Hash32, Uint8Array>> {
    return allAtOnce(this.changedStorageSteps());
  }

  /** The same in steps; nothing may change between them. */
  *changedStorageSteps(): Steps<Map<Address, Map<Hash32, Uint8Array>>> {
    const changed = new Map<Address, Map<Hash32, Uint8Array>>();
    for (const [address, map] of this.slots) {
      const originals = this.originalSlots.get(address);
      yield* eachInSteps(map, ([slot, value]) => {
        const before = originals?.get(slot) ?? ZERO_VALUE;
        if (Buffer.compare(before, value) !== 0) slotMap(changed, address).set(slot, value);
      });
      // Most contracts have fewer slots than a step.
      yield;
    }
    return changed;
  }

  /** The account as it was before, if there was one; of one that was never asked for nobody knows. */
  accountBefore(address: Address): AccountRecord | undefined {
    return this.originals.get(address);
  }

  /** The value before of a slot that was read, without leading zeros. */
  slotBefore(address: Address, slot: Hash32): Uint8Array {
    return this.originalSlots.get(address)?.get(slot) ?? ZERO_VALUE;
  }

  /** Codes put since the start. */
  newCodes(): ReadonlyMap<Hash32, Uint8Array> {
    return this.codes;
  }
}

function now<Value>(found: MaybePromise<Value>): Value {
  if (found instanceof Promise) throw new TypeError("the state reader is not immediate");
  return found;
}

function slotMap(
  maps: Map<Address, Map<Hash32, Uint8Array>>,
  address: Address,
): Map<Hash32, Uint8Array> {
  const found = maps.get(address);
  if (found !== undefined) return found;
  const made = new Map<Hash32, Uint8Array>();
  maps.set(address, made);
  return made;
}

function sameAccount(left: AccountRecord | undefined, right: AccountRecord | undefined): boolean {
  if (left === undefined || right === undefined) return left === right;
  return (
    left.nonce === right.nonce &&
    left.balanceAtoken === right.balanceAtoken &&
    left.codeHash === right.codeHash &&
    left.storageRoot === right.storageRoot
  );
}
