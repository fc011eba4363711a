/** The bound of raw transactions on their way into the pool, and what their senders are told. */
import type { Hash32 } from "../../../chain/hex.js";
import type { TransactionPool } from "../../mempool/pool-port.js";
import { MAX_SUBMITTED, SubmitLane } from "../submit-lane.js";
import { poolRefusal, RefusedTransaction, RpcFault } from "./errors.js";

/** The way of raw transactions into the pool. */
export class SubmitQueue {
  private readonly lane: SubmitLane;
  private waitingCount = 0;

  constructor(pool: TransactionPool) {
    this.lane = new SubmitLane(pool);
  }

  /**
   * Hash of the admitted transaction, once the pool's journal is durable.
   * @throws RefusedTransaction with the pool's text, LIMIT_EXCEEDED when too many wait
   */
  async add(raw: Uint8Array): Promise<Hash32> {
    if (this.waitingCount >= MAX_SUBMITTED) {
      throw new RpcFault("LIMIT_EXCEEDED", "too many transactions are being submitted");
    }
    this.waitingCount += 1;
    try {
      const answer = await this.lane.add(raw);
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
