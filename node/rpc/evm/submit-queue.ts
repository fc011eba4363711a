/**
 * Collects raw transactions that arrive in the same turn of the event loop, from a batch or from
 * many connections, into one call of the pool: one group commit instead of many.
 */
import type { Hash32 } from "../../../chain/hex.js";
import type { TransactionPool } from "../../mempool/pool-port.js";
import { poolRefusal, RefusedTransaction, RpcFault } from "./errors.js";

interface Waiting {
  readonly raw: Uint8Array;
  readonly resolve: (hash: Hash32) => void;
  readonly reject: (error: Error) => void;
}

/** Transactions waiting for an answer at once: 50 full batches; more are told to come back. */
const MAX_WAITING = 50_000;

/** The way of raw transactions into the pool. */
export class SubmitQueue {
  private waiting: Waiting[] = [];
  private inFlight = 0;

  constructor(private readonly pool: TransactionPool) {}

  /**
   * Hash of the admitted transaction, once the pool's journal is durable.
   * @throws RefusedTransaction with the pool's text, LIMIT_EXCEEDED when too many wait
   */
  add(raw: Uint8Array): Promise<Hash32> {
    if (this.waiting.length + this.inFlight >= MAX_WAITING) {
      throw new RpcFault("LIMIT_EXCEEDED", "too many transactions are being submitted");
    }
    return new Promise<Hash32>((resolve, reject) => {
      this.waiting.push({ raw, resolve, reject });
      if (this.waiting.length === 1) setImmediate(() => void this.flush());
    });
  }

  private async flush(): Promise<void> {
    const batch = this.waiting;
    this.waiting = [];
    this.inFlight += batch.length;
    try {
      const answers = await this.pool.submit(batch.map(({ raw }) => raw));
      batch.forEach(({ resolve, reject }, index) => {
        const answer = answers[index];
        if (typeof answer === "string") resolve(answer);
        else reject(refusal(answer));
      });
    } catch (cause) {
      const error = cause instanceof Error ? cause : new Error(String(cause));
      for (const { reject } of batch) reject(refusal(error));
    } finally {
      this.inFlight -= batch.length;
    }
  }
}

function refusal(error: Error | undefined): Error {
  if (error === undefined) return new Error("the pool gave no answer");
  const answer = poolRefusal(error);
  return answer === undefined ? error : new RefusedTransaction(answer);
}
