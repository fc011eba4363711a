/**
 * Asked before a lane works: a chain that shows a nonce as free which it had mined, and a ledger that
 * is older than the chain. Nothing new is signed over either; nor behind a nonce that no payment of ours
 * will ever fill.
 */
import type { Address } from "../../chain/address.js";
import { NATIVE_ASSET } from "../../ledger/journal/accounts.js";
import { openIncident } from "../../ledger/incidents.js";
import { paymentsFrom } from "../../ledger/recovery/older-chain.js";
import { freezeSigning } from "../../ledger/requests/signing-freeze.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import type { WalletView } from "./wallet-node.js";

/** Payments that a freeze names; the command shows all of them. */
const MAX_NAMED = 5;

/** Looks that have to agree: a single answer may come from a node that lags behind a balancer. */
const AGREEING_LOOKS = 2;

/** Looks before each round whether the chain has every payment of the wallet that the ledger saw mined. */
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
  const freeze = async (reason: string) => {
    if (await freezeSigning(database, wallet, reason)) {
      log.error({ wallet, reason }, "signing is frozen");
    }
  };
  return {
    async mayGoOn({ nonce }) {
      // What the chain has more than such a ledger is its own: the recovery says so, no freeze.
      if ((await openIncident(database))?.kind === "RECOVERY") return false;
      const missing = await paymentsFrom(database, { wallet, nonce, limit: MAX_NAMED + 1 });
      const gap = await gapReason(database, { wallet, nonce });
      const isWhole = missing.length === 0 && gap === undefined;
      looks = isWhole ? 0 : looks + 1;
      if (looks < AGREEING_LOOKS) return isWhole;
      if (gap !== undefined) await freeze(gap);
      if (missing.length === 0) return false;
      const named = missing.slice(0, MAX_NAMED).map(({ hash, asset, amountUnits }) => {
        return `${hash} (${amountUnits} ${asset === NATIVE_ASSET ? "atoken" : asset})`;
      });
      const reason =
        `the chain shows nonce ${nonce}, and these payments were mined at or above it: ` +
        `${named.join(", ")}${missing.length > MAX_NAMED ? " and more" : ""}: the chain is older ` +
        "than the ledger; to see what is missing: causeway recover";
      await freeze(reason);
      return false;
    },
  };
}

/**
 * Why nothing can be mined behind a wallet's next nonce: the ledger has given it to nobody, or to one
 * that a foreign transaction took it from, and the chain has lost that transaction. Undefined where a
 * payment of ours is to fill it.
 */
async function gapReason(
  sql: Sql,
  { wallet, nonce }: { readonly wallet: Address; readonly nonce: bigint },
): Promise<string | undefined> {
  const [row] = await sql.query<{ hash: string | null }>(
    `SELECT s.mined_hash AS hash FROM hot_wallet h
       LEFT JOIN nonce_slot s ON s.wallet = h.wallet AND s.nonce = $2::numeric
      WHERE h.wallet = $1 AND h.next_nonce > $2::numeric
        AND (s.id IS NULL OR s.outcome = 'foreign')
        AND NOT EXISTS (SELECT 1 FROM recovered_payment p
                         WHERE p.wallet = h.wallet AND p.nonce = $2::numeric)`,
    [wallet, nonce.toString()],
  );
  if (row === undefined) return undefined;
  const named = row.hash === null ? "" : ` (${row.hash})`;
  return (
    `the chain shows nonce ${nonce}, which a transaction that this kit did not sign${named} had used: ` +
    "nothing behind it can be mined before it is sent again, or the nonce is used up by hand " +
    "(docs/restore.md)"
  );
}
