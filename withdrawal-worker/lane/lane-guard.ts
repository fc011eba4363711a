/**
 * Asked before a lane works: a chain that shows a nonce as free which it had mined, and a ledger that
 * is older than the chain. Nothing new is signed over either.
 */
import type { Address } from "../../chain/address.js";
import { openIncident } from "../../ledger/incidents.js";
import { paymentsFrom } from "../../ledger/recovery/older-chain.js";
import { freezeSigning } from "../../ledger/withdrawals/signing-freeze.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import type { WalletView } from "./wallet-node.js";

/** Payments that a freeze names; the command shows all of them. */
const MAX_NAMED = 5;

/** Looks that have to agree: a single answer may come from a node that lags behind a balancer. */
const AGREEING_LOOKS = 2;

/** What a lane asks. */
export interface LaneGuard {
  /** Whether anything may be given a nonce, signed or sent in this round. */
  mayGoOn(view: Pick<WalletView, "nonce">): Promise<boolean>;
}

/** The guard of one hot wallet; it remembers how often in a row the chain looked older. */
export function createLaneGuard(parts: {
  readonly database: SqlDatabase;
  readonly wallet: Address;
  readonly log: Logger;
}): LaneGuard {
  const { database, wallet, log } = parts;
  let looks = 0;
  return {
    async mayGoOn({ nonce }) {
      // What the chain has more than such a ledger is its own: the recovery says so, no freeze.
      if ((await openIncident(database))?.kind === "RECOVERY") return false;
      const missing = await paymentsFrom(database, { wallet, nonce, limit: MAX_NAMED + 1 });
      looks = missing.length === 0 ? 0 : looks + 1;
      if (looks < AGREEING_LOOKS) return missing.length === 0;
      const named = missing
        .slice(0, MAX_NAMED)
        .map(({ hash, amountUnits }) => `${hash} (${amountUnits} atoken)`);
      const reason =
        `the chain shows nonce ${nonce}, and these payments were mined at or above it: ` +
        `${named.join(", ")}${missing.length > MAX_NAMED ? " and more" : ""}: the chain is older ` +
        "than the ledger; to see what is missing: causeway recover";
      if (await freezeSigning(database, wallet, reason)) {
        log.error({ wallet, reason }, "signing is frozen");
      }
      return false;
    },
  };
}
