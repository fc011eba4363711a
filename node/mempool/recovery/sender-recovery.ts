/** Recovery of senders, and the way of doing it on the main thread, a few at a time. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Address } from "../../../chain/address.js";
import { ChainError } from "../../../chain/errors.js";
import { recoverSender, type SignedTransaction } from "../../../chain/transaction.js";

/** Finds out who signed. */
export interface SenderRecovery {
  /**
   * Sender of each transaction, in order; undefined where the signature is nobody's. Calls may
   * overlap and end in any order.
   */
  recover(transactions: readonly SignedTransaction[]): Promise<readonly (Address | undefined)[]>;
}

/** Recoveries before other work gets its turn: about 1.5 ms. */
const RECOVERIES_PER_TURN = 32;

/** Recovers on the thread that asks. */
export class InlineRecovery implements SenderRecovery {
  private sinceTurn = 0;
  private last: Promise<unknown> = Promise.resolve();

  /** One after the other: many calls at once hold up the process no longer than one. */
  recover(transactions: readonly SignedTransaction[]): Promise<readonly (Address | undefined)[]> {
    const turn = this.last.then(() => this.recoverAll(transactions));
    this.last = turn.catch(() => undefined); // Its own caller gets the fault.
    return turn;
  }

  private async recoverAll(
    transactions: readonly SignedTransaction[],
  ): Promise<(Address | undefined)[]> {
    const senders: (Address | undefined)[] = [];
    for (const tx of transactions) {
      senders.push(senderOf(tx));
      // Counted over all calls: many small ones would hold up the process like one large one.
      if (++this.sinceTurn % RECOVERIES_PER_TURN === 0) await nextTurn();
    }
    return senders;
  }
}

function senderOf(tx: SignedTransaction): Address | undefined {
  try {
    return recoverSender(tx);
  } catch (error) {
    if (error instanceof ChainError) return undefined;
    throw error;
  }
}
