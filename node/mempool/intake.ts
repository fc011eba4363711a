/**
 * The way into the pool: decodes, checks what needs no state, and has the sender recovered, once.
 * Recovery of several calls may be under way together; they are handed on one after the other,
 * so that the order of receipt holds.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Address } from "../../chain/address.js";
import { ChainError } from "../../chain/errors.js";
import type { Hash32 } from "../../chain/hex.js";
import {
  decodeTransaction,
  effectiveGasPriceAtoken,
  signerMissing,
  type SignedTransaction,
} from "../../chain/transaction.js";
import { sizeFault } from "../../chain/transaction-rules.js";
import type { Clock } from "../../runtime/process/clock.js";
import { ownFault, type PoolRules } from "./admission.js";
import { createPoolEntry, type PoolEntry } from "./pool-entry.js";
import { fromChainError, PoolError, refusalOf, underpriced } from "./pool-error.js";
import type { TransactionOrigin } from "./pool-port.js";
import type { SenderRecovery } from "./recovery/sender-recovery.js";

/** What the intake needs from its pool. */
export interface IntakePorts {
  readonly clock: Clock;
  readonly rules: PoolRules;
  /**
   * True for transactions that the pool has, and has journalled where the origin asks for that:
   * the answer is known before the costly recovery.
   */
  isKnown(hash: Hash32, origin: TransactionOrigin): boolean;
  /** Lowest effective price that can get in now, atoken per gas. */
  priceToReachAtoken(): bigint;
  readonly recovery: SenderRecovery;
}

/** Transactions that are decoded before other work gets its turn: about 1 ms. */
const DECODED_PER_TURN = 256;

/**
 * Transactions that may be decoded and not yet handed on: twice what the recovery thread has at
 * once. Further calls wait as bytes.
 */
const MAX_DECODED_AHEAD = 8_192;

/** A decoded transaction with its sender. */
interface Recovered {
  readonly tx: SignedTransaction;
  readonly from: Address;
}

/** A transaction that the pool had when it came. */
export interface KnownTransaction {
  readonly knownHash: Hash32;
}

/** What became of one transaction on its way in. */
export type Prepared = PoolEntry | KnownTransaction | PoolError;

/** Turns raw transactions into entries, numbered in the order of receipt. */
export class Intake {
  private nextSequence = 0;
  private sinceTurn = 0;
  private decodedAhead = 0;
  /** Calls are decoded one after the other, and so are they handed on. */
  private decoding: Promise<unknown> = Promise.resolve();
  private last: Promise<unknown> = Promise.resolve();

  constructor(private readonly ports: IntakePorts) {}

  /** Later entries are numbered above this one, which came out of the journal. */
  startAfter(sequence: number): void {
    this.nextSequence = Math.max(this.nextSequence, sequence + 1);
  }

  /**
   * Prepares one call's transactions and hands them to `use`, after those of all earlier calls
   * and before those of the next.
   */
  take<Result>(
    raws: readonly Uint8Array[],
    origin: TransactionOrigin,
    use: (prepared: readonly Prepared[]) => Result,
  ): Promise<Result> {
    const receivedAtMs = this.ports.clock.nowMs();
    const before = this.last;
    const decoded = this.decoding.then(() => this.decodeAll(raws, origin, before));
    const recovered = decoded.then((items) => this.recoverAll(items));
    // Each fault is thrown in its call's own turn; until then it must not count as unhandled.
    this.decoding = decoded.catch(() => undefined);
    recovered.catch(() => undefined);
    const turn = before.then(async () => {
      try {
        return use(this.number(await recovered, receivedAtMs));
      } finally {
        this.decodedAhead -= raws.length;
      }
    });
    this.last = turn.catch(() => undefined);
    return turn;
  }

  /** Resolves when no call is being prepared. */
  async idle(): Promise<void> {
    await this.last;
  }

  private async decodeAll(
    raws: readonly Uint8Array[],
    origin: TransactionOrigin,
    before: Promise<unknown>,
  ): Promise<Decoded[]> {
    if (this.decodedAhead + raws.length > MAX_DECODED_AHEAD) await before;
    this.decodedAhead += raws.length;
    const decoded: Decoded[] = [];
    for (const raw of raws) {
      decoded.push(this.decode(raw, origin));
      // Counted over all calls: many small ones would hold up the process like one large one.
      if (++this.sinceTurn % DECODED_PER_TURN === 0) await nextTurn();
    }
    return decoded;
  }

  private decode(raw: Uint8Array, origin: TransactionOrigin): Decoded {
    const oversized = sizeFault(raw);
    if (oversized !== undefined) return refusalOf(oversized);
    try {
      const tx = decodeTransaction(raw);
      if (this.ports.isKnown(tx.hash, origin)) return { knownHash: tx.hash };
      const fault = ownFault(tx, this.ports.rules);
      if (fault !== undefined) return refusalOf(fault);
      const priceAtoken = this.ports.priceToReachAtoken();
      return effectiveGasPriceAtoken(tx) < priceAtoken ? underpriced(priceAtoken + 1n) : tx;
    } catch (error) {
      if (error instanceof ChainError) return fromChainError(error);
      throw error;
    }
  }

  private async recoverAll(
    decoded: readonly Decoded[],
  ): Promise<(Recovered | KnownTransaction | PoolError)[]> {
    const transactions = decoded.filter((item): item is SignedTransaction => !isSettled(item));
    const found = transactions.length > 0 ? await this.ports.recovery.recover(transactions) : [];
    const senders = found.values();
    return decoded.map((item) => {
      if (isSettled(item)) return item;
      const from = senders.next().value;
      return from === undefined ? fromChainError(signerMissing()) : { tx: item, from };
    });
  }

  private number(
    recovered: readonly (Recovered | KnownTransaction | PoolError)[],
    receivedAtMs: number,
  ): Prepared[] {
    return recovered.map((item) => {
      if (isSettled(item)) return item;
      const sequence = this.nextSequence++;
      return createPoolEntry(item.tx, item.from, { sequence, receivedAtMs });
    });
  }
}

type Decoded = SignedTransaction | KnownTransaction | PoolError;

/** Whether nothing more is to be found out about it on the way in. */
function isSettled(item: object): item is KnownTransaction | PoolError {
  return item instanceof PoolError || "knownHash" in item;
}
