/** Gives out addresses: requests that arrive while the disk is busy share one commit and one forced mark. */
import type { AddressDerivation } from "../../chain/derivation/address-derivation.js";
import { type DepositAddress, registerAddresses } from "../../ledger/deposits/deposit-addresses.js";
import type { LedgerGuard } from "../../ledger/guard/ledger-guard.js";
import type { CustomerId } from "../../ledger/journal/accounts.js";
import { Batcher } from "../../runtime/process/batcher.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";

/** Addresses in one commit: enough that the disk does not bound the rate, few enough that it stays quick. */
const MAX_BATCH = 50;

/** What an `AddressDesk` needs. */
export interface AddressDeskParts {
  readonly database: SqlDatabase;
  readonly derivation: AddressDerivation;
  readonly guard: LedgerGuard;
  /** Told after each commit, so that the past of its addresses is looked for at once. */
  readonly onRegistered: () => void;
}

/** What waits is bounded by the HTTP server's open requests. */
export class AddressDesk {
  readonly #parts: AddressDeskParts;
  readonly #batcher: Batcher<CustomerId, DepositAddress>;

  constructor(parts: AddressDeskParts) {
    this.#parts = parts;
    this.#batcher = new Batcher({
      run: (customerIds) => this.#give(customerIds),
      maxBatchItems: MAX_BATCH,
    });
  }

  /**
   * The next address, for a customer; nobody is told of one that the home does not remember.
   * @throws COMMIT_LOST, RECOVERY, OWN_ADDRESS, HOME_MARK_UNUSABLE; the database's fault
   */
  give(customerId: CustomerId): Promise<DepositAddress> {
    return this.#batcher.addOne(customerId);
  }

  async #give(customerIds: readonly CustomerId[]): Promise<DepositAddress[]> {
    const { database, derivation, guard, onRegistered } = this.#parts;
    const addresses = await registerAddresses(database, customerIds, {
      deriveAddress: (index) => derivation.addressAt(index),
      issuedBelow: guard.nextAddressIndex,
    });
    failpoint("watcher.after-register");
    // In the home before anybody pays to it: a database from a backup would give it out again.
    await guard.beforeTelling({ addresses });
    onRegistered();
    return addresses;
  }
}
