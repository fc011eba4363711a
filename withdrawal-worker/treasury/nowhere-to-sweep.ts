/** A treasury that has no wallet to sweep to, by its home's files or by who holds the keys: it says so. */
import type { Address } from "../../chain/address.js";
import { readKeyless, readPayable } from "../../ledger/wallets/payable-wallets.js";
import type { TreasuryContext } from "./treasury-context.js";

/** Wallets that one line of the log names. */
const MAX_NAMED = 5;

/** A worker that has just started needs some of it to look at its node, and to say which keys it has. */
const KEY_PATIENCE_MS = 30_000;

/** What is told, by what is missing. */
const TOLD = {
  file:
    "nothing is swept: no wallet that takes coins is of this home; put a file with its address into " +
    "config/wallets/ of the treasury's home",
  key:
    "nothing is swept: no worker says that it holds the key of a wallet that takes coins; start the worker " +
    "that has its keystore, or drain it and add another one",
} as const;

/** What is missing, and of which wallets. */
interface Missing {
  readonly what: keyof typeof TOLD;
  readonly wallets: readonly Address[];
}

type Parts = Pick<TreasuryContext, "database" | "wallets" | "policy" | "clock" | "log">;

/** Looks whether there is a wallet to sweep to. */
export class NowhereToSweep {
  readonly #context: Parts;
  /** As it was told last. */
  #told: keyof typeof TOLD | undefined;
  /** Since when keys are missing. */
  #keylessSinceMs: number | undefined;

  constructor(context: Parts) {
    this.#context = context;
  }

  /**
   * Whether there are wallets that may be given coins, and none of them is of this home, or nobody holds
   * their keys, though the policy has something swept. It is told when it begins.
   * @throws WorkerError for a policy that cannot be read; database faults
   */
  async look(): Promise<boolean> {
    const { policy, clock, log } = this.#context;
    const found = await this.#missing();
    const isSwept = found !== undefined && (await policy.current()).policy.treasury !== undefined;
    const missing = isSwept ? found : undefined;
    const nowMs = clock.monotonicMs();
    this.#keylessSinceMs = missing?.what === "key" ? (this.#keylessSinceMs ?? nowMs) : undefined;
    if (missing === undefined) this.#told = undefined;
    else if (nowMs - (this.#keylessSinceMs ?? 0) >= KEY_PATIENCE_MS || missing.what === "file") {
      const { what, wallets } = missing;
      const fields = { count: wallets.length, wallets: wallets.slice(0, MAX_NAMED) };
      if (this.#told !== what) log.error(fields, TOLD[what]);
      this.#told = what;
    }
    return missing !== undefined;
  }

  async #missing(): Promise<Missing | undefined> {
    const { database } = this.#context;
    const payable = await readPayable(database);
    if (payable.length === 0) {
      const keyless = await readKeyless(database);
      return keyless.length === 0 ? undefined : { what: "key", wallets: keyless };
    }
    const known = new Set(this.#context.wallets());
    const isKnown = payable.some((address) => known.has(address));
    return isKnown ? undefined : { what: "file", wallets: payable };
  }
}
