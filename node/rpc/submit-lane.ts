/**
 * Collects raw transactions that arrive in the same turn of the event loop, from a batch or from
 * many connections, into one call of the pool: one group commit instead of many.
 */
import { Batcher } from "../../runtime/process/batcher.js";
import type { Hash32 } from "../../chain/hex.js";
import type { TransactionPool } from "../mempool/pool-port.js";

/** Transactions of one call of the pool, at most: 50 full batches of the EVM's JSON-RPC. */
export const MAX_SUBMITTED = 50_000;

/** The way of raw transactions into the pool, one for each interface. */
export class SubmitLane {
  private readonly batcher: Batcher<Uint8Array, Hash32 | Error>;

  constructor(pool: Pick<TransactionPool, "submit">) {
    this.batcher = new Batcher({
      run: (raws) => pool.submit(raws),
      maxBatchItems: MAX_SUBMITTED,
      // The pool gathers what comes meanwhile itself, in order.
      maxRunning: Number.POSITIVE_INFINITY,
    });
  }

  /** The pool's answer: the hash once its journal is durable, or why the transaction is refused. */
  add(raw: Uint8Array): Promise<Hash32 | Error> {
    return this.batcher.addOne(raw);
  }
}
