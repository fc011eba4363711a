/** Requests that wait, and those of them that a lane leaves to other wallets for now. */
import type { WithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import type { QueuedWithdrawal } from "../../../ledger/withdrawals/nonce-slots.js";

/** A withdrawal that waits. */
export interface Waiting {
  readonly id: WithdrawalId;
  readonly reason: string;
  /** Its estimate was asked for and not answered. */
  readonly isUnanswered?: boolean;
  /** Nobody has come to it yet: it comes before what was tried. */
  readonly isUntried?: boolean;
  /** The reason is this wallet's, its home's or its node's: another wallet may pay it now. */
  readonly isHere?: boolean;
  /** Why it ends where it has waited for all its time, and no other wallet has taken it. */
  readonly failure?: string;
}

/** A request that is left alone, and how long it had been due by then. */
interface Left {
  readonly waiting: Waiting;
  readonly waitedMs: number;
}

/**
 * What one lane leaves alone for a reason of its home or node. It asks nothing about that meanwhile; losing
 * this memory costs a question.
 */
export class LeftToOthers {
  #left = new Map<WithdrawalId, Left>();

  /** How many are left at present. */
  get size(): number {
    return this.#left.size;
  }

  /** Leaves a request, due as it is. */
  add({ id, waitedMs }: QueuedWithdrawal, waiting: Waiting): void {
    this.#left.set(id, { waiting, waitedMs });
  }

  /**
   * Looks through the queue.
   * @param queued all that is looked at: what is not among it is remembered no longer
   * @returns what is not left alone, and what was left and has waited for longer than `patienceMs`
   */
  sift(
    queued: readonly QueuedWithdrawal[],
    patienceMs: number,
  ): { readonly due: readonly QueuedWithdrawal[]; readonly over: readonly Waiting[] } {
    const still = new Map<WithdrawalId, Left>();
    const over: Waiting[] = [];
    const due = queued.filter(({ id, waitedMs }) => {
      const left = this.#left.get(id);
      // Somebody else has put it off since, who could not pay it either.
      if (left === undefined || waitedMs < left.waitedMs) return true;
      if (waitedMs > patienceMs) over.push(left.waiting);
      else still.set(id, left);
      return false;
    });
    this.#left = still;
    return { due, over };
  }
}
