/** Treasuries of tests in which no lane runs, or not before them: somebody says who holds the keys. */
import type { Address } from "../../../chain/address.js";
import { sayKeyHeld } from "../../../ledger/wallets/key-mark.js";
import { listWallets } from "../../../ledger/wallets/wallet.js";
import { createHotWallet } from "../../../ledger/wallets/wallet-lease.js";
import type { Sql } from "../../../runtime/sql/sql.js";
import { Sweeper } from "../../../withdrawal-worker/treasury/sweeper.js";
import type { TreasuryContext } from "../../../withdrawal-worker/treasury/treasury-context.js";

/**
 * As workers do that have the keys of these, as far as the ledger knows them. Those that no lane has opened
 * have sent nothing yet.
 */
export async function holdKeys(sql: Sql, wallets: readonly Address[]): Promise<void> {
  const known = new Set((await listWallets(sql)).map(({ address }) => address));
  for (const wallet of wallets.filter((each) => known.has(each))) {
    await createHotWallet(sql, { wallet, firstNonce: 0n });
    await sayKeyHeld(sql, wallet);
  }
}

/** A treasury whose wallets' keys are held before each of its rounds. */
export class SweeperOfHeldKeys extends Sweeper {
  readonly #holdKeys: () => Promise<void>;

  constructor(context: TreasuryContext, hold: () => Promise<void>) {
    super(context);
    this.#holdKeys = hold;
  }

  override async round(signal: AbortSignal): Promise<boolean> {
    await this.#holdKeys();
    return super.round(signal);
  }
}
