/**
 * Collects raw transactions that arrive in the same turn of the event loop, from a batch or from
 * many connections, into one call of the pool: one group commit instead of many.
 */
import { isCosmosBytes } from "../../chain/cosmos/cosmos-transaction.js";
import { Batcher } from "../../runtime/process/batcher.js";
import type { Hash32 } from "../../chain/hex.js";
import type { TransactionPool } from "../mempool/pool-port.js";

/** Transactions of one call of the pool, at most: 50 full batches of the EVM's JSON-RPC. */
export const MAX_SUBMITTED = 50_000;

/**
 * The way of raw transactions into the pool, one for each interface. Those of the EVM go in calls of their
 * own: with one of Cosmos' among them all would wait as long as that (`wayOf` of the pool's ways).
 */
export class SubmitLane {
  private readonly evm: Batcher<Uint8Array, Hash32 | Error>;
  private readonly cosmos: Batcher<Uint8Array, Hash32 | Error>;

  constructor(pool: Pick<TransactionPool, "submit">) {
    const options = {
      run: (raws: readonly Uint8Array[]) => pool.submit(raws),
      maxBatchItems: MAX_SUBMITTED,
      // The pool gathers what comes meanwhile itself, in order.
      maxRunning: Number.POSITIVE_INFINITY,
    };
    this.evm = new Batcher(options);
    this.cosmos = new Batcher(options);
  }

  /** The pool's answer: the hash once its journal is durable, or why the transaction is refused. */
  add(raw: Uint8Array): Promise<Hash32 | Error> {
    return (isCosmosBytes(raw) ? this.cosmos : this.evm).addOne(raw);
  }
}
