/** The node's pool of pending transactions, as programs outside the node see it. */
import type { Hash32 } from "../chain/hex.js";
import { readHash, readList, readObject, readOptional } from "./answer-fields.js";
import { badAnswer } from "./errors.js";
import { type JsonRpcClient, resultOf, type RpcOptions } from "./json-rpc.js";
import {
  parseSentTransaction,
  parseTransactionStatus,
  type SentTransaction,
} from "./transaction-codec.js";

/** Hashes of all transactions in the pool; a sender's in nonce order. */
export interface PoolHashes {
  /** Executable now. */
  readonly pending: readonly Hash32[];
  /** Waiting for a lower nonce of their sender. */
  readonly queued: readonly Hash32[];
}

/** A transaction in the pool. */
export interface PoolTransaction extends SentTransaction {
  /** The nonce that a queued one waits for; undefined for an executable one, and where none is missing. */
  readonly missingNonce: bigint | undefined;
  /** Why a queued one waits although no nonce is missing before it, in the node's words. */
  readonly waitReason: string | undefined;
}

/** Reads of the pool. */
export interface PoolCalls {
  poolHashes(options: RpcOptions): Promise<PoolHashes>;
  /** Undefined when the pool does not hold it (now): never seen, mined, replaced or dropped. */
  poolTransaction(hash: Hash32, options: RpcOptions): Promise<PoolTransaction | undefined>;
}

/** The calls over a JSON-RPC client. */
export function poolCalls(rpc: JsonRpcClient): PoolCalls {
  return {
    poolHashes: async (options) =>
      parsePoolHashes(await rpc.request("causeway_getPoolHashes", [], options)),
    async poolTransaction(hash, options) {
      // One batch, which the node answers in one turn: both are about the same pool.
      const calls = [
        { method: "eth_getTransactionByHash", params: [hash] },
        { method: "causeway_getTransactionStatus", params: [hash] },
      ];
      const [found, fate] = await rpc.batch(calls, options);
      const status = parseTransactionStatus(resultOf(fate));
      if (status.status !== "pending" && status.status !== "queued") return undefined;
      const queued = status.status === "queued" ? status : undefined;
      const waitReason = queued?.reason;
      const missingNonce = waitReason === undefined ? queued?.missingNonce : undefined;
      const fields = readOptional(resultOf(found), "transaction", parseSentTransaction);
      if (fields === undefined) return undefined;
      if (fields.hash !== hash) throw badAnswer("another transaction");
      return { ...fields, missingNonce, waitReason };
    },
  };
}

function parsePoolHashes(answer: unknown): PoolHashes {
  const pool = readObject(answer, "pool");
  const hashes = (name: "pending" | "queued") =>
    readList(pool[name], name).map((hash) => readHash(hash, name));
  return { pending: hashes("pending"), queued: hashes("queued") };
}
