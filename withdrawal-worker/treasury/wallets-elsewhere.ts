/** A treasury whose home lacks the files of all wallets that pay: it would sweep nothing, without a word. */
import { readPayable } from "../../ledger/wallets/payable-wallets.js";
import type { TreasuryContext } from "./treasury-context.js";

/** Wallets that one line of the log names. */
const MAX_NAMED = 5;

/** Looks whether this home has a wallet to sweep to. */
export class WalletsElsewhere {
  readonly #context: Pick<TreasuryContext, "database" | "wallets" | "policy" | "log">;
  /** As it was told last. */
  #isSo = false;

  constructor(context: Pick<TreasuryContext, "database" | "wallets" | "policy" | "log">) {
    this.#context = context;
  }

  /**
   * Whether there are wallets that may be given coins, and none of them is of this home, though the policy
   * has something swept. It is told when it begins.
   * @throws WorkerError for a policy that cannot be read; database faults
   */
  async look(): Promise<boolean> {
    const { database, policy, log } = this.#context;
    const known = new Set(this.#context.wallets());
    const payable = await readPayable(database);
    const isNone = payable.length > 0 && !payable.some((address) => known.has(address));
    const isSo = isNone && (await policy.current()).policy.treasury !== undefined;
    if (isSo && !this.#isSo) {
      const what =
        "nothing is swept: no wallet that takes coins is of this home; put a file with its address into " +
        "config/wallets/ of the treasury's home";
      log.error({ count: payable.length, wallets: payable.slice(0, MAX_NAMED) }, what);
    }
    this.#isSo = isSo;
    return isSo;
  }
}
