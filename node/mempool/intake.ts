/**
 * The way into the pool: decodes, checks what needs no state, and recovers the sender, once.
 * Calls are taken one after the other, so that the order of receipt holds.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Address } from "../../chain/address.js";
import { ChainError } from "../../chain/errors.js";
import type { Hash32 } from "../../chain/hex.js";
import { decodeTransaction, type SignedTransaction } from "../../chain/transaction.js";
import type { Clock } from "../../runtime/clock.js";
import { checkSize, checkTransaction, type PoolRules } from "./admission.js";
import { createPoolEntry, type PoolEntry } from "./pool-entry.js";
import { alreadyKnown, fromChainError, PoolError } from "./pool-error.js";

/** What the intake needs from its pool. */
export interface IntakePorts {
  readonly clock: Clock;
  readonly rules: PoolRules;
  /** True for transactions in the pool: the answer is known before the costly recovery. */
  isKnown(hash: Hash32): boolean;
  /** @throws INVALID_SIGNATURE (ChainError) */
  recoverSender(tx: SignedTransaction): Address;
}

/** Recoveries before other work gets its turn: about 1.5 ms. */
const RECOVERIES_PER_TURN = 32;

/** Turns raw transactions into entries, numbered in the order of receipt. */
export class Intake {
  private nextSequence = 0;
  private sinceTurn = 0;
  private last: Promise<unknown> = Promise.resolve();

  constructor(private readonly ports: IntakePorts) {}

  /** Later entries are numbered above this one, which came out of the journal. */
  startAfter(sequence: number): void {
    this.nextSequence = Math.max(this.nextSequence, sequence + 1);
  }

  /**
   * Prepares one call's transactions, after those of all earlier calls, and hands them to `use`
   * before the next call's turn.
   */
  take<Result>(
    raws: readonly Uint8Array[],
    use: (prepared: readonly (PoolEntry | PoolError)[]) => Result,
  ): Promise<Result> {
    const turn = this.last.then(async () => use(await this.prepareAll(raws)));
    this.last = turn.catch(() => undefined); // Its own caller gets the fault.
    return turn;
  }

  /** Resolves when no call is being prepared. */
  async idle(): Promise<void> {
    await this.last;
  }

  private async prepareAll(raws: readonly Uint8Array[]): Promise<(PoolEntry | PoolError)[]> {
    const receivedAtMs = this.ports.clock.nowMs();
    const prepared: (PoolEntry | PoolError)[] = [];
    for (const raw of raws) {
      prepared.push(this.prepare(raw, receivedAtMs));
      // Counted over all calls: many small ones would hold up the process like one large one.
      if (++this.sinceTurn % RECOVERIES_PER_TURN === 0) await nextTurn();
    }
    return prepared;
  }

  private prepare(raw: Uint8Array, receivedAtMs: number): PoolEntry | PoolError {
    const oversized = checkSize(raw);
    if (oversized !== undefined) return oversized;
    try {
      const tx = decodeTransaction(raw);
      if (this.ports.isKnown(tx.hash)) return alreadyKnown();
      const refused = checkTransaction(tx, this.ports.rules);
      if (refused !== undefined) return refused;
      const from = this.ports.recoverSender(tx);
      return createPoolEntry(tx, from, { sequence: this.nextSequence++, receivedAtMs });
    } catch (error) {
      if (error instanceof ChainError) return fromChainError(error);
      throw error;
    }
  }
}
