/**
 * Collects raw transactions that arrive in the same turn of the event loop, from a batch or from
 * many connections, into one call of the pool: one group commit instead of many.
 */
import { Batcher } from "../../../runtime/process/batcher.js";
import type { Hash32 } from "../../../chain/hex.js";
import type { TransactionPool } from "../../mempool/pool-port.js";
import { poolRefusal, RefusedTransaction, RpcFault } from "./errors.js";

/** Transactions waiting for an answer at once: 50 full batches; more are told to come back. */
const MAX_WAITING = 50_000;

/** The way of raw transactions into the pool. */
export class SubmitQueue {
  private readonly batcher: Batcher<Uint8Array, Hash32 | Error>;
  private waitingCount = 0;

  constructor(pool: TransactionPool) {
    this.batcher = new Batcher({
      run: (raws) => pool.submit(raws),
      maxBatchItems: MAX_WAITING,
      // The pool gathers what comes meanwhile itself, in order.
      maxRunning: Number.POSITIVE_INFINITY,
    });
  }

  /**
   * Hash of the admitted transaction, once the pool's journal is durable.
   * @throws RefusedTransaction with the pool's text, LIMIT_EXCEEDED when too many wait
   */
  async add(raw: Uint8Array): Promise<Hash32> {
    if (this.waitingCount >= MAX_WAITING) {
      throw new RpcFault("LIMIT_EXCEEDED", "too many transactions are being submitted");
    }
    this.waitingCount += 1;
    try {
      const answer = await this.batcher.addOne(raw);
      if (typeof answer === "string") return answer;
      throw answer;
    } catch (cause) {
      throw refusal(cause instanceof Error ? cause : new Error(String(cause)));
    } finally {
      this.waitingCount -= 1;
    }
  }
}

function refusal(error: Error): Error {
  const answer = poolRefusal(error);
  return answer === undefined ? error : new RefusedTransaction(answer);
}
