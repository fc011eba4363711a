/**
 * What the transactions of a block have read, which is at hand for those behind them: their reads of it
 * weigh less; and what they have changed and logged, of which trie, store and index are paid for once. What
 * frames pay follows from it, so that every node has to know the same: only transactions that are in the
 * block count, whatever a proposer has tried beside them.
 */
import type { Address } from "../../../chain/address.js";
import type { Hash32 } from "../../../chain/hex.js";
import { KeptCodes } from "./kept-codes.js";

/** Of one block; its transactions follow each other. */
export class BlockReads<Code extends { readonly bytes: Uint8Array }> {
  readonly codes: KeptCodes<Code>;
  private readonly accounts = new Seen<Address>();
  private readonly changed = new Seen<Address>();
  private readonly slots = new SeenByAccount<bigint>();
  private readonly changedSlots = new SeenByAccount<bigint>();
  private readonly logTerms = new SeenByAccount<Hash32 | undefined>();
  private isHeld = false;

  /** @param keptCodeBytes room for codes */
  constructor(keptCodeBytes: number) {
    this.codes = new KeptCodes(keptCodeBytes);
  }

  /**
   * Until `release` nothing is noted: a frame has failed, and runs on only for those who watch it. What it
   * comes to then no block has read.
   */
  hold(): void {
    this.isHeld = true;
  }

  /** Ends `hold`. */
  release(): void {
    this.isHeld = false;
  }

  /** Begins a transaction; of one that was not finished nothing is known. */
  begin(): void {
    this.finish(false);
  }

  /** Notes that an account is read. @returns whether it was before, in the block */
  seeAccount(address: Address): boolean {
    return this.isHeld ? this.accounts.has(address) : this.accounts.see(address);
  }

  /** Notes that a slot is read. @returns whether it was before, in the block */
  seeSlot(address: Address, slot: bigint): boolean {
    return this.isHeld ? this.slots.has(address, slot) : this.slots.see(address, slot);
  }

  /** Notes that a slot of an account is changed. @returns whether any of it was before, in the block */
  changeStorage(address: Address): boolean {
    return this.isHeld ? this.changed.has(address) : this.changed.see(address);
  }

  /** Notes that a slot is changed. @returns whether it was before, in the block, even if it was put back */
  changeSlot(address: Address, slot: bigint): boolean {
    const { changedSlots } = this;
    return this.isHeld ? changedSlots.has(address, slot) : changedSlots.see(address, slot);
  }

  /** Notes a log by its first topic. @returns whether the account logged with it before, in the block */
  seeLog(address: Address, topic: Hash32 | undefined): boolean {
    return this.isHeld ? this.logTerms.has(address, topic) : this.logTerms.see(address, topic);
  }

  /** Ends the transaction: what one has read, changed or logged that is not in the block is forgotten. */
  finish(isIncluded: boolean): void {
    this.codes.finish(isIncluded);
    this.accounts.finish(isIncluded);
    this.changed.finish(isIncluded);
    this.slots.finish(isIncluded);
    this.changedSlots.finish(isIncluded);
    this.logTerms.finish(isIncluded);
  }
}

/** Things of accounts. */
class SeenByAccount<Item> {
  private readonly byAccount = new Map<Address, Seen<Item>>();
  /** Of the accounts of which the transaction that runs has seen something. */
  private readonly open = new Set<Seen<Item>>();

  has(address: Address, item: Item): boolean {
    return this.byAccount.get(address)?.has(item) === true;
  }

  see(address: Address, item: Item): boolean {
    let seen = this.byAccount.get(address);
    if (seen === undefined) {
      seen = new Seen();
      this.byAccount.set(address, seen);
    }
    this.open.add(seen);
    return seen.see(item);
  }

  finish(isIncluded: boolean): void {
    for (const seen of this.open) seen.finish(isIncluded);
    this.open.clear();
  }
}

/** Things seen by transactions before, and by the one that runs. */
class Seen<Item> {
  private readonly before = new Set<Item>();
  private readonly now = new Set<Item>();

  has(item: Item): boolean {
    return this.before.has(item) || this.now.has(item);
  }

  see(item: Item): boolean {
    if (this.has(item)) return true;
    this.now.add(item);
    return false;
  }

  finish(isIncluded: boolean): void {
    if (isIncluded) for (const item of this.now) this.before.add(item);
    this.now.clear();
  }
}
