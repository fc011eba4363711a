/**
 * What the transactions of a block have read, which is at hand for those behind them: their reads of it
 * weigh less; and whose storage they have changed, which is paid for once. What frames pay follows from
 * it, so that every node has to know the same: only transactions that are in the block count, whatever a
 * proposer has tried beside them.
 */
import type { Address } from "../../../chain/address.js";
import { KeptCodes } from "./kept-codes.js";

/** Of one block; its transactions follow each other. */
export class BlockReads<Code extends { readonly bytes: Uint8Array }> {
  readonly codes: KeptCodes<Code>;
  private readonly accounts = new Seen<Address>();
  private readonly slots = new Map<Address, Seen<bigint>>();
  private readonly changed = new Seen<Address>();
  /** Of the accounts whose slots the transaction that runs has read. */
  private readonly open = new Set<Seen<bigint>>();

  /** @param keptCodeBytes room for codes */
  constructor(keptCodeBytes: number) {
    this.codes = new KeptCodes(keptCodeBytes);
  }

  /** Begins a transaction; of one that was not finished nothing is known. */
  begin(): void {
    this.finish(false);
  }

  /** Notes that an account is read. @returns whether it was before, in the block */
  seeAccount(address: Address): boolean {
    return this.accounts.see(address);
  }

  /** Notes that a slot is read. @returns whether it was before, in the block */
  seeSlot(address: Address, slot: bigint): boolean {
    let seen = this.slots.get(address);
    if (seen === undefined) {
      seen = new Seen();
      this.slots.set(address, seen);
    }
    this.open.add(seen);
    return seen.see(slot);
  }

  /** Notes that a slot of an account is changed. @returns whether any of it was before, in the block */
  changeStorage(address: Address): boolean {
    return this.changed.see(address);
  }

  /** Ends the transaction: what one has read or changed that is not in the block is forgotten. */
  finish(isIncluded: boolean): void {
    this.codes.finish(isIncluded);
    this.accounts.finish(isIncluded);
    this.changed.finish(isIncluded);
    for (const seen of this.open) seen.finish(isIncluded);
    this.open.clear();
  }
}

/** Things seen by transactions before, and by the one that runs. */
class Seen<Item> {
  private readonly before = new Set<Item>();
  private readonly now = new Set<Item>();

  see(item: Item): boolean {
    if (this.before.has(item) || this.now.has(item)) return true;
    this.now.add(item);
    return false;
  }

  finish(isIncluded: boolean): void {
    if (isIncluded) for (const item of this.now) this.before.add(item);
    this.now.clear();
  }
}
