/** Gives out addresses: requests that arrive while the disk is busy share one commit and one forced mark. */
import type { AddressDerivation } from "../../chain/derivation/address-derivation.js";
import {
  type DepositAddress,
  firstOfKey,
  registerAddresses,
} from "../../ledger/deposits/deposit-addresses.js";
import type { LedgerGuard } from "../../ledger/guard/ledger-guard.js";
import type { CustomerId } from "../../ledger/journal/accounts.js";
import { Batcher } from "../../runtime/process/batcher.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { DepositError } from "../errors.js";

/** Addresses in one commit: enough that the disk does not bound the rate, few enough that it stays quick. */
const MAX_BATCH = 50;

/** What an `AddressIssuer` needs. */
export interface AddressIssuerParts {
  readonly database: SqlDatabase;
  readonly derivation: AddressDerivation;
  readonly guard: LedgerGuard;
  /** Index from which on addresses are of this key; default 0. */
  readonly keyFromIndex?: number;
  /** Told after each commit, so that the past of its addresses is looked for at once. */
  readonly onRegistered: () => void;
}

/** What waits is bounded by the HTTP server's open requests. */
export class AddressIssuer {
  readonly #parts: AddressIssuerParts;
  readonly #batcher: Batcher<CustomerId, DepositAddress>;
  /** The ledger's addresses are of this key: what stands there stays. */
  #isKeyKnown = false;

  constructor(parts: AddressIssuerParts) {
    this.#parts = parts;
    this.#batcher = new Batcher({
      run: (customerIds) => this.#give(customerIds),
      maxBatchItems: MAX_BATCH,
    });
  }

  /**
   * The next address, for a customer; nobody is told of one that the home does not remember.
   * @throws OTHER_DEPOSIT_KEY, COMMIT_LOST, RECOVERY, OWN_ADDRESS, HOME_MARK_UNUSABLE; the database's fault
   */
  give(customerId: CustomerId): Promise<DepositAddress> {
    return this.#batcher.addOne(customerId);
  }

  async #give(customerIds: readonly CustomerId[]): Promise<DepositAddress[]> {
    const { database, derivation, guard, onRegistered } = this.#parts;
    await this.#checkKey();
    const addresses = await registerAddresses(database, customerIds, {
      deriveAddress: (index) => derivation.addressAt(index),
      issuedBelow: guard.nextAddressIndex,
    });
    failpoint("watcher.after-register");
    // The ledger's first may be another watcher's, of the same moment.
    await this.#checkKey();
    // In the home before anybody pays to it: a database from a backup would give it out again.
    await guard.beforeTelling({ addresses });
    onRegistered();
    return addresses;
  }

  /** @throws OTHER_DEPOSIT_KEY */
  async #checkKey(): Promise<void> {
    if (this.#isKeyKnown) return;
    const { database, derivation, keyFromIndex: firstIndex = 0 } = this.#parts;
    const deriveAddress = (index: number) => derivation.addressAt(index);
    const first = await firstOfKey(database, { firstIndex, deriveAddress });
    if (first === undefined) return;
    const { index, address } = first;
    this.#isKeyKnown = first.isOfKey;
    if (this.#isKeyKnown) return;
    throw new DepositError(
      "OTHER_DEPOSIT_KEY",
      `address ${index} of this ledger, ${address}, is not of this home's config/deposit.xpub: put that ` +
        "of the home there that gave it out; where the key was exchanged on purpose, " +
        "api.deposit-key-from-index of watcher.toml says from which index on",
      { details: { index, address } },
    );
  }
}
