/**
 * What a node's pool has of a wallet that the ledger knows nothing of: payments that are not made yet.
 * Whatever would be paid meanwhile they may pay as well, so that a recovery waits for them, and whoever
 * lets the wallet sign again.
 */
import type { Address } from "../../chain/address.js";
import { LedgerError } from "../errors.js";

/** Transactions that the pool keeps until a lower nonce is used, or until there are coins for them. */
export interface QueuedInPool {
  /** Greater than 0. */
  readonly count: number;
  /** The first nonce that nothing executable has. */
  readonly behindNonce: bigint;
  /** Whether that nonce is missing; else the first of them has it, and waits for coins. */
  readonly isMissing: boolean;
}

/** What waits in the pool on nonces that the ledger has not given. */
export interface WaitingInPool {
  /** How many are executable: they are mined without anybody's doing. */
  readonly waitingInPool: bigint;
  /** Those that are not executable; undefined where there are none. */
  readonly queuedInPool: QueuedInPool | "not-told" | undefined;
}

/** What waits in the pool, with the wallet whose nonces it has. */
export interface PooledWallet extends WaitingInPool {
  readonly wallet: { readonly address: Address };
}

/**
 * Pure.
 * @param pool.queued nonces, rising, of what is not executable; undefined where the node does not tell
 * @param known next nonces, by the chain and by the ledger: behind the highest nothing is known
 */
export function waitingBehind(
  pool: { readonly pendingNonce: bigint; readonly queued: readonly bigint[] | undefined },
  known: readonly bigint[],
): WaitingInPool {
  const { pendingNonce, queued } = pool;
  const nextNonce = known.reduce((left, right) => (left > right ? left : right), 0n);
  const waitingInPool = pendingNonce > nextNonce ? pendingNonce - nextNonce : 0n;
  if (queued === undefined) return { waitingInPool, queuedInPool: "not-told" };
  const count = queued.filter((nonce) => nonce >= nextNonce).length;
  const isMissing = queued[0] !== pendingNonce;
  const queuedInPool = count === 0 ? undefined : { count, behindNonce: pendingNonce, isMissing };
  return { waitingInPool, queuedInPool };
}

/** In words, with what a person does about it; undefined where nothing waits that the node tells of. */
export function waitingText(
  wallet: Address,
  { waitingInPool, queuedInPool }: WaitingInPool,
): string | undefined {
  if (waitingInPool > 0n) {
    return (
      `${waitingInPool} transactions of the hot wallet ${wallet} wait in the pool: go on when they are ` +
      "mined"
    );
  }
  if (queuedInPool === undefined || queuedInPool === "not-told") return undefined;
  const { count, behindNonce, isMissing } = queuedInPool;
  const cause = isMissing
    ? `nonce ${behindNonce}, which nothing has used: whatever uses it has them mined as well. Send again ` +
      "what was signed for it, or use it up by a transfer of nothing from the wallet to itself"
    : `nonce ${behindNonce} until there are more coins: fill the wallet`;
  return (
    `${count} transactions of the hot wallet ${wallet} wait in the pool at or behind ${cause}, and go on ` +
    "when they are mined; or wait until the pool has let them go"
  );
}

/** Where nobody can say whether something waits; undefined else. */
export function notToldText(
  wallet: Address,
  { queuedInPool }: Pick<WaitingInPool, "queuedInPool">,
): string | undefined {
  if (queuedInPool !== "not-told") return undefined;
  return (
    `the node does not tell (txpool_contentFrom) what of the hot wallet ${wallet} waits in its pool ` +
    "behind a missing nonce: once that nonce is used again, it would be mined as well, and pay twice what " +
    "clients repeat. Ask a node that tells, or apply this when no pool can have it any more"
  );
}

/** For a recovery, which finds what is mined alone. @throws RECOVERY */
export function refuseWaiting(wallets: readonly PooledWallet[]): void {
  for (const each of wallets) {
    const text = waitingText(each.wallet.address, each);
    if (text !== undefined) throw new LedgerError("RECOVERY", text);
  }
}
