/**
 * What operations say of tokens while blocks are indexed: the store's records under those of the
 * blocks that are not written yet. One user, the indexer.
 */
import { type Address, addressToBytes } from "../../../chain/address.js";
import { heightBytes } from "../../../chain/encoding/height-bytes.js";
import { bigintToBytes, type Height } from "../../../chain/hex.js";
import type { LevelWrite } from "../../../runtime/files/level-store.js";
import type { Quarantine } from "../index-reader.js";
import type { IndexStore } from "../index-store.js";
import { indexKey } from "../key-spaces.js";
import { forEachSide, type TokenMove } from "../../rosetta/token-operations.js";
import {
  encodeHolder,
  encodeHoldings,
  encodeQuarantine,
  type HolderRecord,
} from "./token-records.js";

/** What one block changes beside the balances that its movements tell. */
export interface TokenVerdict {
  /** Contracts that are quarantined from this block on, and why. */
  readonly lies: ReadonlyMap<Address, string>;
  /** Where the next check of a part of a token's holders begins. */
  readonly cursors: ReadonlyMap<Address, Address>;
}

/** Balances, holders and quarantines with the pending blocks applied. */
export class TokenLedger {
  private readonly holders = new Map<Address, Map<Address, HolderRecord>>();
  private readonly holdings = new Map<Address, Map<Address, Height>>();
  private readonly cursors = new Map<Address, Address>();
  private quarantined = new Map<Address, Quarantine>();
  private unaccompaniedFrom = new Map<Address, Height>();
  private writes: LevelWrite[] = [];

  constructor(private readonly store: IndexStore) {}

  /** Forgets what is pending and reads the quarantines. */
  async load(): Promise<void> {
    this.clearPending();
    this.quarantined = await this.store.quarantines();
    this.unaccompaniedFrom = await this.store.unaccompanied();
  }

  /** Sum of the account's operations so far. */
  balance(contract: Address, account: Address): bigint {
    return this.holder(contract, account)?.units ?? 0n;
  }

  /** True when an operation of the token ever named the account. */
  isHolder(contract: Address, account: Address): boolean {
    return this.holder(contract, account) !== undefined;
  }

  /** The token's quarantine, also one of a pending block. */
  quarantineOf(contract: Address): Quarantine | undefined {
    return this.quarantined.get(contract);
  }

  /** Whether a contract has logged a Deposit or Withdrawal without the equal Transfer, up to a block. */
  isUnaccompanied(contract: Address, height: Height): boolean {
    const from = this.unaccompaniedFrom.get(contract);
    return from !== undefined && from <= height;
  }

  /** All quarantines by contract. */
  quarantines(): ReadonlyMap<Address, Quarantine> {
    return this.quarantined;
  }

  /** Account after which the next part of the holders begins; undefined at the first. */
  cursor(contract: Address): Address | undefined {
    const pending = this.cursors.get(contract);
    return pending ?? this.store.holderCursor(contract);
  }

  /** Holders after an account in the order of addresses, at most `limit`. */
  async holdersAfter(
    contract: Address,
    after: Address | undefined,
    limit: number,
  ): Promise<Address[]> {
    const stored = await this.store.holdersAfter(contract, after, limit);
    const pending = [...(this.holders.get(contract)?.keys() ?? [])].filter(
      (account) => after === undefined || account > after,
    );
    if (pending.length === 0) return stored;
    return [...new Set([...stored, ...pending])].toSorted().slice(0, limit);
  }

  /**
   * Takes a checked block in: the movements that are told, and what the check found.
   * @param unaccompanied contracts that logged a Deposit or Withdrawal in it without the equal Transfer
   */
  apply(
    height: Height,
    moves: readonly TokenMove[],
    verdict: TokenVerdict,
    unaccompanied: ReadonlySet<Address> = new Set(),
  ): void {
    for (const contract of unaccompanied) {
      if (this.unaccompaniedFrom.has(contract)) continue;
      this.unaccompaniedFrom.set(contract, height);
      const key = indexKey("unaccompanied", addressToBytes(contract));
      this.writes.push({ key, value: heightBytes(height) });
    }
    const touched = new Map<Address, Set<Address>>();
    for (const move of moves) {
      const contract = move.token.contractAddress;
      const accounts = touched.get(contract) ?? new Set<Address>();
      touched.set(contract, accounts);
      forEachSide(move, (account, delta) => {
        this.add(contract, account, { height, delta });
        accounts.add(account);
      });
    }
    for (const [contract, accounts] of touched) {
      for (const account of accounts) this.writeBalance(contract, account, height);
    }
    for (const [contract, reason] of verdict.lies) {
      const quarantine = { height, reason };
      this.quarantined.set(contract, quarantine);
      const key = indexKey("quarantine", addressToBytes(contract));
      this.writes.push({ key, value: encodeQuarantine(quarantine) });
    }
    for (const [contract, account] of verdict.cursors) {
      this.cursors.set(contract, account);
      const key = indexKey("holderCursor", addressToBytes(contract));
      this.writes.push({ key, value: addressToBytes(account) });
    }
  }

  /** Records of all pending blocks, for the one write that holds the blocks themselves. */
  pendingWrites(): LevelWrite[] {
    const writes = [...this.writes];
    for (const [contract, accounts] of this.holders) {
      for (const [account, record] of accounts) {
        const key = indexKey("holder", addressToBytes(contract), addressToBytes(account));
        writes.push({ key, value: encodeHolder(record) });
      }
    }
    for (const [account, holdings] of this.holdings) {
      const key = indexKey("holding", addressToBytes(account));
      writes.push({ key, value: encodeHoldings(holdings) });
    }
    return writes;
  }

  /** The pending records are in the store now. */
  clearPending(): void {
    this.holders.clear();
    this.holdings.clear();
    this.cursors.clear();
    this.writes = [];
  }

  private holder(contract: Address, account: Address): HolderRecord | undefined {
    const pending = this.holders.get(contract)?.get(account);
    return pending ?? this.store.holder(contract, account);
  }

  private add(
    contract: Address,
    account: Address,
    change: { readonly height: Height; readonly delta: bigint },
  ): void {
    const before = this.holder(contract, account);
    if (before === undefined) this.addHolding(account, contract, change.height);
    const accounts = this.holders.get(contract) ?? new Map<Address, HolderRecord>();
    this.holders.set(contract, accounts);
    const units = (before?.units ?? 0n) + change.delta;
    accounts.set(account, { height: change.height, units });
  }

  private addHolding(account: Address, contract: Address, height: Height): void {
    const holdings = this.holdings.get(account) ?? new Map(this.store.holdings(account));
    holdings.set(contract, height);
    this.holdings.set(account, holdings);
  }

  private writeBalance(contract: Address, account: Address, height: Height): void {
    const parts = [addressToBytes(contract), addressToBytes(account), heightBytes(height)];
    const value = bigintToBytes(this.balance(contract, account));
    this.writes.push({ key: indexKey("tokenBalance", ...parts), value });
  }
}
