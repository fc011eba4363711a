/** The watched addresses in memory: every deposit address, in the order of indexes, and all wallets. */
import type { Address } from "../chain/address.js";
import { AddressMap } from "../chain/address-map.js";
import { AddressPrefixes } from "../chain/address-prefixes.js";
import type { CustomerId } from "../ledger/journal/accounts.js";
import {
  addressesFrom,
  assignmentsAfter,
  type DepositAddress,
} from "../ledger/deposits/deposit-addresses.js";
import type { Height } from "../chain/hex.js";
import { readLedgerState } from "../ledger/guard/ledger-state.js";
import { listWallets } from "../ledger/wallets/wallet.js";
import type { Sql } from "../runtime/sql/sql.js";
import type { Watched } from "./deposit-match.js";

/** Rows per read: large enough for few round trips, small enough for one message. */
const ROWS_PER_PAGE = 20_000;

/**
 * Grows only: nothing is ever unregistered. A ledger that was put back under it is read anew, because it
 * may have given the same indexes to others.
 */
export class AddressBook implements Watched {
  /** Customers, which are ASCII, of deposit addresses. */
  readonly #customers = new AddressMap();
  /** Hot wallets with the first block whose operations are booked as they come. */
  readonly #wallets = new Map<Address, Height>();
  /** Of all addresses and wallets, those of a lost ledger too. */
  readonly prefixes = new AddressPrefixes();
  #nextIndex = 0;
  #lastAssignment = 0;
  /** Identity and epoch of the ledger that was read. */
  #ledger = "";

  /** @param assets listed tokens by their contracts */
  constructor(private readonly assets: ReadonlyMap<Address, string> = new Map()) {}

  /** Index of the next address that this book does not know. */
  get nextIndex(): number {
    return this.#nextIndex;
  }

  /** Hot wallets that this book knows. */
  get walletCount(): number {
    return this.#wallets.size;
  }

  /** Number of the last assignment of an address that this book knows; 0 for none. */
  get lastAssignment(): number {
    return this.#lastAssignment;
  }

  /** See `Watched`. */
  walletFrom(address: Address): Height | undefined {
    return this.#wallets.get(address);
  }

  /** See `Watched`. */
  customerOf(address: Address): CustomerId | undefined {
    return this.#customers.get(address) as CustomerId | undefined;
  }

  /** See `Watched`. */
  assetOf(contract: Address): string | undefined {
    return this.assets.get(contract);
  }

  /** True for a deposit address and for a hot wallet. */
  has(address: Address): boolean {
    return this.#wallets.has(address) || this.#customers.has(address);
  }

  /** Adds addresses that continue the book; ones it knows change nothing. */
  add(addresses: readonly DepositAddress[]): void {
    for (const entry of addresses) {
      this.#customers.set(entry.address, entry.customerId);
      this.prefixes.add(entry.address);
      this.#nextIndex = Math.max(this.#nextIndex, entry.index + 1);
    }
  }

  /** Reads every address and wallet registered, and every customer named, since. */
  async refresh(sql: Sql): Promise<void> {
    await this.#forgetLost(sql);
    await this.#readWallets(sql);
    for (;;) {
      const page = await addressesFrom(sql, { firstIndex: this.#nextIndex, limit: ROWS_PER_PAGE });
      this.add(page);
      if (page.length < ROWS_PER_PAGE) break;
    }
    await this.#readAssignments(sql);
  }

  /** All of them: a few rows, and a ledger that was put back may lack one. */
  async #readWallets(sql: Sql): Promise<void> {
    const wallets = await listWallets(sql);
    this.#wallets.clear();
    for (const { address, fromHeight } of wallets) {
      this.#wallets.set(address, fromHeight);
      this.prefixes.add(address);
    }
  }

  /** Every customer named since: rare, and a few rows. */
  async #readAssignments(sql: Sql): Promise<void> {
    for (;;) {
      const page = await assignmentsAfter(sql, {
        afterId: this.#lastAssignment,
        limit: ROWS_PER_PAGE,
      });
      for (const { id, address, customerId } of page) {
        this.#customers.set(address, customerId);
        this.prefixes.add(address);
        this.#lastAssignment = id;
      }
      if (page.length < ROWS_PER_PAGE) return;
    }
  }

  async #forgetLost(sql: Sql): Promise<void> {
    const { ledgerId, epoch, nextAddressIndex } = await readLedgerState(sql);
    const ledger = `${ledgerId} ${epoch}`;
    const isOther = ledger !== this.#ledger || nextAddressIndex < this.#nextIndex;
    // One that is behind is another one, whether anybody was told of what it lost or not.
    if (isOther || !(await this.#hasLastAssignment(sql))) {
      this.#customers.clear();
      this.#nextIndex = 0;
      this.#lastAssignment = 0;
    }
    this.#ledger = ledger;
  }

  /** Whether the ledger has the last word about a customer that this book knows, if it knows any. */
  async #hasLastAssignment(sql: Sql): Promise<boolean> {
    if (this.#lastAssignment === 0) return true;
    const before = { afterId: this.#lastAssignment - 1, limit: 1 };
    const [last] = await assignmentsAfter(sql, before);
    return last?.id === this.#lastAssignment;
  }
}
