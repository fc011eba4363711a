/** Work on signatures, and the way of doing it on the main thread, a few at a time. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Address } from "../../../chain/address.js";
import type { SignatureCheck } from "../../../chain/cosmos/ante.js";
import { secp256k1 } from "../../../chain/crypto.js";
import { ChainError } from "../../../chain/errors.js";
import { recoverSender, type SignedTransaction } from "../../../chain/transaction.js";

/** Finds out who signed. */
export interface SenderRecovery {
  /**
   * Sender of each transaction, in order; undefined where the signature is nobody's. Calls may
   * overlap and end in any order.
   */
  recover(transactions: readonly SignedTransaction[]): Promise<readonly (Address | undefined)[]>;
  /** Whether each signature is right, in order; calls may overlap as those of `recover`. */
  verify(checks: readonly SignatureCheck[]): Promise<readonly boolean[]>;
}

/** Signatures before other work gets its turn: about 2 ms. */
const SIGNATURES_PER_TURN = 32;

/** Recovers on the thread that asks. */
export class InlineRecovery implements SenderRecovery {
  private sinceTurn = 0;
  private last: Promise<unknown> = Promise.resolve();

  recover(transactions: readonly SignedTransaction[]): Promise<readonly (Address | undefined)[]> {
    return this.inTurn(transactions, senderOf);
  }

  verify(checks: readonly SignatureCheck[]): Promise<readonly boolean[]> {
    return this.inTurn(checks, ({ digest, signature, publicKey }) =>
      secp256k1.verify(digest, signature, publicKey),
    );
  }

  /** One after the other: many calls at once hold up the process no longer than one. */
  private inTurn<Item, Result>(
    items: readonly Item[],
    answer: (item: Item) => Result,
  ): Promise<readonly Result[]> {
    const turn = this.last.then(async () => {
      const answers: Result[] = [];
      for (const item of items) {
        answers.push(answer(item));
        // Counted over all calls: many small ones would hold up the process like one large one.
        if (++this.sinceTurn % SIGNATURES_PER_TURN === 0) await nextTurn();
      }
      return answers;
    });
    this.last = turn.catch(() => undefined); // Its own caller gets the fault.
    return turn;
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
