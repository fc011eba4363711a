/** The watched addresses in memory: every registered one, in the order of their indexes. */
import type { Address } from "../chain/address.js";
import type { CustomerId } from "../ledger/books/accounts.js";
import {
  addressesFrom,
  assignmentsAfter,
  type DepositAddress,
} from "../ledger/deposits/deposit-addresses.js";
import type { Sql } from "../runtime/sql/sql.js";
import type { Watched } from "./deposit-match.js";

/** Rows per read: large enough for few round trips, small enough for one message. */
const PAGE = 20_000;

/** Grows only: addresses are never unregistered. One entry takes about 200 bytes. */
export class AddressBook implements Watched {
  readonly #customers = new Map<Address, CustomerId>();
  #nextIndex = 0;
  #lastAssignment = 0;

  /** @param assets listed tokens by their contracts */
  constructor(
    readonly hotWallet: Address,
    private readonly assets: ReadonlyMap<Address, string> = new Map(),
  ) {}

  /** Index of the next address that this book does not know. */
  get nextIndex(): number {
    return this.#nextIndex;
  }

  /** See `Watched`. */
  customerOf(address: Address): CustomerId | undefined {
    return this.#customers.get(address);
  }

  /** See `Watched`. */
  assetOf(contract: Address): string | undefined {
    return this.assets.get(contract);
  }

  /** True for a deposit address and for the hot wallet. */
  has(address: Address): boolean {
    return address === this.hotWallet || this.#customers.has(address);
  }

  /** Adds addresses that continue the book; ones it knows change nothing. */
  add(addresses: readonly DepositAddress[]): void {
    for (const entry of addresses) {
      this.#customers.set(entry.address, entry.customerId);
      this.#nextIndex = Math.max(this.#nextIndex, entry.index + 1);
    }
  }

  /** Reads every address registered, and every customer named, since. */
  async refresh(sql: Sql): Promise<void> {
    for (;;) {
      const page = await addressesFrom(sql, { firstIndex: this.#nextIndex, limit: PAGE });
      this.add(page);
      if (page.length < PAGE) break;
    }
    for (;;) {
      const page = await assignmentsAfter(sql, { afterId: this.#lastAssignment, limit: PAGE });
      for (const { id, address, customerId } of page) {
        this.#customers.set(address, customerId);
        this.#lastAssignment = id;
      }
      if (page.length < PAGE) return;
    }
  }
}
