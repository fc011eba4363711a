/** A chain that shows a nonce as free which it had mined: nothing new is signed on it. */
import { freezeSigning } from "../ledger/withdrawals/signing-freeze.js";
import { paymentsFrom } from "../ledger/recovery/older-chain.js";
import type { LaneContext, Round } from "./lane-context.js";

/** Payments that a freeze names; the command shows all of them. */
const MAX_NAMED = 5;

/** Looks that have to agree: a single answer may come from a node that lags behind a balancer. */
const AGREEING_LOOKS = 2;

/** Remembers how often in a row the chain looked older. */
export class OlderChainWatch {
  #looks = 0;

  /**
   * Holds the chain's nonce against the payments that were mined, and freezes signing when it lacks
   * some.
   * @returns whether anything may be signed in this round
   */
  async mayGoOn(context: LaneContext, round: Round): Promise<boolean> {
    const { database, signer, log } = context;
    const wallet = signer.address;
    const { nonce } = round.view;
    const missing = await paymentsFrom(database, { wallet, nonce, limit: MAX_NAMED + 1 });
    if (missing.length === 0) {
      this.#looks = 0;
      return true;
    }
    this.#looks += 1;
    if (this.#looks < AGREEING_LOOKS) return false;
    const named = missing
      .slice(0, MAX_NAMED)
      .map(({ hash, amountAtoken }) => `${hash} (${amountAtoken} atoken)`);
    const reason =
      `the chain shows nonce ${nonce}, and these payments were mined at or above it: ` +
      `${named.join(", ")}${missing.length > MAX_NAMED ? " and more" : ""}: the chain is older than ` +
      "the ledger; to see what is missing: causeway recover";
    if (await freezeSigning(database, wallet, reason)) {
      log.error({ wallet, reason }, "signing is frozen");
    }
    return false;
  }
}
