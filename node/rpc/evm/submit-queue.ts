/** The bound of raw transactions on their way into the pool, and what their senders are told. */
import { AppError, errorCode } from "../../../chain/errors.js";
import { keccak256Hex } from "../../../chain/hashes.js";
import type { Hash32, Height } from "../../../chain/hex.js";
import type { TransactionPool } from "../../mempool/pool-port.js";
import type { ChainView } from "../../view/chain-view.js";
import { MAX_SUBMITTED, SubmitLane } from "../submit-lane.js";
import { poolRefusal, RefusedTransaction, RpcFault } from "./errors.js";

/** The way of raw transactions into the pool. */
export class SubmitQueue {
  private readonly lane: SubmitLane;
  private waitingCount = 0;

  constructor(
    pool: TransactionPool,
    private readonly view: Pick<ChainView, "head" | "locate">,
  ) {
    this.lane = new SubmitLane(pool);
  }

  /**
   * Hash of the admitted transaction, once the pool's journal is durable. What a block took while it was
   * on its way into the pool is ALREADY_KNOWN, as it was when it came; what was mined before has a nonce
   * that is too low, as go-ethereum says.
   * @throws RefusedTransaction with the pool's text, LIMIT_EXCEEDED when too many wait
   */
  async add(raw: Uint8Array): Promise<Hash32> {
    if (this.waitingCount >= MAX_SUBMITTED) {
      throw new RpcFault("LIMIT_EXCEEDED", "too many transactions are being submitted");
    }
    this.waitingCount += 1;
    const { height } = this.view.head();
    try {
      const answer = await this.lane.add(raw);
      if (typeof answer === "string") return answer;
      const isOvertaken = errorCode(answer) === "NONCE_TOO_LOW" && this.isMinedAbove(height, raw);
      throw isOvertaken ? new AppError("ALREADY_KNOWN", "already known") : answer;
    } catch (cause) {
      throw refusal(cause instanceof Error ? cause : new Error(String(cause)));
    } finally {
      this.waitingCount -= 1;
    }
  }

  private isMinedAbove(height: Height, raw: Uint8Array): boolean {
    if (this.view.head().height === height) return false;
    const place = this.view.locate(keccak256Hex(raw));
    return place !== undefined && place.height > height;
  }
}

function refusal(error: Error): Error {
  const answer = poolRefusal(error);
  return answer === undefined ? error : new RefusedTransaction(answer);
}
