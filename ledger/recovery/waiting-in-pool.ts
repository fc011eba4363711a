/**
 * What a node's pool has of a wallet that the ledger knows nothing of: payments that are not made yet.
 * Whatever would be paid meanwhile they may pay as well, so that a recovery waits for them.
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

/** A wallet with what waits in the pool on nonces that the ledger has not given. */
export interface PooledWallet {
  readonly wallet: { readonly address: Address };
  /** Executable: they are mined without anybody's doing. */
  readonly waitingInPool: bigint;
  /** The others, if any. */
  readonly queuedInPool: QueuedInPool | "not-told" | undefined;
}

/**
 * @param pool.queued nonces, rising, of what is not executable; undefined where the node does not tell
 * @param nextNonce the first one that the ledger knows nothing of
 */
export function waitingBehind(
  pool: { readonly pendingNonce: bigint; readonly queued: readonly bigint[] | undefined },
  nextNonce: bigint,
): Pick<PooledWallet, "waitingInPool" | "queuedInPool"> {
  const { pendingNonce, queued } = pool;
  const waitingInPool = pendingNonce > nextNonce ? pendingNonce - nextNonce : 0n;
  if (queued === undefined) return { waitingInPool, queuedInPool: "not-told" };
  const count = queued.filter((nonce) => nonce >= nextNonce).length;
  const isMissing = queued[0] !== pendingNonce;
  const queuedInPool = count === 0 ? undefined : { count, behindNonce: pendingNonce, isMissing };
  return { waitingInPool, queuedInPool };
}

/** In words, with what a person does about it; undefined where nothing waits that the node tells of. */
export function waitingText(plan: PooledWallet): string | undefined {
  const { wallet, waitingInPool, queuedInPool } = plan;
  if (waitingInPool > 0n) {
    return (
      `${waitingInPool} transactions of the hot wallet ${wallet.address} wait in the pool: recover when ` +
      "they are mined"
    );
  }
  if (queuedInPool === undefined || queuedInPool === "not-told") return undefined;
  const { count, behindNonce, isMissing } = queuedInPool;
  const cause = isMissing
    ? `nonce ${behindNonce}, which nothing has used: whatever uses it has them mined as well. Send again what ` +
      "was signed for it, or use it up by a transfer of nothing from the wallet to itself"
    : `nonce ${behindNonce} until there are more coins: fill the wallet`;
  return (
    `${count} transactions of the hot wallet ${wallet.address} wait in the pool at or behind ${cause}, ` +
    "and recover when they are mined; or wait until the pool has let them go"
  );
}

/** Where nobody can say whether something waits; undefined else. */
export function notToldText({ wallet, queuedInPool }: PooledWallet): string | undefined {
  if (queuedInPool !== "not-told") return undefined;
  return (
    `the node does not tell (txpool_contentFrom) what of the hot wallet ${wallet.address} waits in its pool ` +
    "behind a missing nonce: once that nonce is used again, it would be mined as well, and pay twice what " +
    "clients repeat. Ask a node that tells, or apply this when no pool can have it any more"
  );
}

/** @throws RECOVERY */
export function refuseWaiting(wallets: readonly PooledWallet[]): void {
  const text = wallets.map(waitingText).find((one) => one !== undefined);
  if (text !== undefined) throw new LedgerError("RECOVERY", text);
}
