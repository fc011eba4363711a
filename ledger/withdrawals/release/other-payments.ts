/**
 * What else may have paid a frozen withdrawal that has a nonce: whoever lets it go on has been shown all of
 * it, and has said that it was another payment.
 */
import type { Address } from "../../../chain/address.js";
import type { Hash32 } from "../../../chain/hex.js";
import type { Sql } from "../../../runtime/sql/sql.js";
import { mayBePaidBy } from "../../requests/possible-payments.js";
import { storedHash } from "../../stored-values.js";
import { doubtfulOutflows } from "../foreign-transactions.js";
import type { FrozenWithdrawal, WalletTransaction } from "../operator-decisions.js";
import type { LiveSlot } from "../slot-rows.js";
import type { ReleaseContext, ReleaseObstacle } from "./outcome.js";

/** Transactions that may have paid one withdrawal are named up to here: nobody looks at more at once. */
const MAX_UNCLAIMED = 100;

/** A transaction that may have paid a withdrawal whose own slot paid nothing. */
export interface UnclaimedPayment {
  readonly hash: Hash32;
  /** A person has booked it as an outflow: a word about the withdrawal is all that is missing. */
  readonly isBooked: boolean;
}

/** A frozen withdrawal that has a nonce. */
export interface FrozenSlot {
  readonly frozen: FrozenWithdrawal;
  readonly slot: LiveSlot;
  /** An operator's word: what booked outflows may have paid was not this one. */
  readonly isSaidUnpaid: boolean;
}

/**
 * What may have paid it of the wallet's own transactions since its nonce, and of all that the watcher has
 * found: other wallets' and other people's. One that nobody has booked, or all that are booked.
 */
export async function findAnyUnclaimed(
  { database, wallet, paymentOf }: ReleaseContext,
  frozen: FrozenWithdrawal,
  transactions: readonly WalletTransaction[],
): Promise<readonly UnclaimedPayment[]> {
  const own = await findUnclaimed(database, { wallet, frozen }, transactions);
  if (own[0]?.isBooked === false) return own.slice(0, 1);
  const booked = new Map(own.map((each) => [each.hash, each]));
  for await (const { hash, height, isBooked } of doubtfulOutflows(database, frozen.id)) {
    const shown = await paymentOf({ hash, height });
    // What the chain does not show any more may have paid it by what the ledger has kept.
    if (shown !== undefined && !mayBePaidBy(frozen, shown)) continue;
    if (!isBooked) return [{ hash, isBooked }];
    if (booked.size < MAX_UNCLAIMED) booked.set(hash, { hash, isBooked });
  }
  return [...booked.values()];
}

/** Pure: what stands in the way of one that these may have paid; undefined where a word says otherwise. */
export function maybePaid(
  [first, ...others]: readonly UnclaimedPayment[],
  { frozen: { id }, isSaidUnpaid }: Omit<FrozenSlot, "slot">,
): ReleaseObstacle | undefined {
  if (first === undefined || (first.isBooked && isSaidUnpaid)) return undefined;
  const { hash } = first;
  if (!first.isBooked) return { obstacle: "maybe-paid", id, hash };
  return { obstacle: "maybe-paid-booked", id, hash, others: others.map((other) => other.hash) };
}

/**
 * What stands in the way of one whose nonce the chain has not used: it pays once it goes on, and something
 * else may have paid it meanwhile. Where the nonce is to be used up for nothing, nothing does.
 */
export async function obstacleToFreeNonce(
  release: ReleaseContext,
  { frozen, slot, isSaidUnpaid }: FrozenSlot,
): Promise<ReleaseObstacle | undefined> {
  const { id, recovered } = frozen;
  if (slot.cancel !== undefined) return undefined;
  if (recovered !== undefined) return { obstacle: "recovered", id, hash: recovered };
  const unclaimed = await findAnyUnclaimed(release, frozen, []);
  const doubt = maybePaid(unclaimed, { frozen, isSaidUnpaid });
  if (doubt?.obstacle !== "maybe-paid") return doubt;
  // Nothing is settled by it: its own bytes may still be mined.
  return { ...doubt, obstacle: "nonce-free", wallet: release.wallet, nonce: slot.nonce };
}

/**
 * Mined transactions of the wallet that may have paid a frozen withdrawal although its own slot paid
 * nothing, and that no withdrawal and no recovery explains; first what nobody has booked.
 */
async function findUnclaimed(
  sql: Sql,
  { wallet, frozen }: { readonly wallet: Address; readonly frozen: FrozenWithdrawal },
  transactions: readonly WalletTransaction[],
): Promise<readonly UnclaimedPayment[]> {
  const equal = transactions.filter((transaction) => mayBePaidBy(frozen, transaction));
  const rows = await sql.query<{ hash: string; explanation: string | null }>(
    `SELECT hash, explanation FROM unnest($2::text[]) WITH ORDINALITY AS mined (hash, place)
      CROSS JOIN LATERAL explanation_of($1, hash) AS explanation
      WHERE coalesce(explanation, 'outflow') = 'outflow'
      ORDER BY explanation NULLS FIRST, place LIMIT $3`,
    [wallet, equal.map(({ hash }) => hash), MAX_UNCLAIMED],
  );
  return rows.map(({ hash, explanation }) => ({
    hash: storedHash(hash),
    isBooked: explanation !== null,
  }));
}
