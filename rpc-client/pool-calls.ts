/** The node's pool of pending transactions, as programs outside the node see it. */
import type { Address } from "../chain/address.js";
import type { Hash32, Hex } from "../chain/hex.js";
import {
  readAddress,
  readHash,
  readHex,
  readList,
  readObject,
  readOptional,
  readQuantity,
} from "./answer-fields.js";
import { badAnswer } from "./errors.js";
import { type JsonRpcClient, resultOf, type RpcOptions } from "./json-rpc.js";
import { parseTransactionStatus } from "./transaction-codec.js";

/** Hashes of all transactions in the pool; a sender's in nonce order. */
export interface PoolHashes {
  /** Executable now. */
  readonly pending: readonly Hash32[];
  /** Waiting for a lower nonce of their sender. */
  readonly queued: readonly Hash32[];
}

/** A transaction in the pool. */
export interface PoolTransaction {
  readonly hash: Hash32;
  readonly from: Address;
  /** Undefined creates a contract. */
  readonly to: Address | undefined;
  readonly valueAtoken: bigint;
  readonly nonce: bigint;
  readonly gasLimit: bigint;
  /** Price that it would pay per gas. */
  readonly gasPriceAtoken: bigint;
  readonly input: Hex;
  /** The nonce that a queued one waits for; undefined for an executable one. */
  readonly missingNonce: bigint | undefined;
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
      const missingNonce = status.status === "queued" ? status.missingNonce : undefined;
      const fields = readOptional(resultOf(found), "transaction", readPoolFields);
      if (fields === undefined) return undefined;
      if (fields.hash !== hash) throw badAnswer("another transaction");
      return { ...fields, missingNonce };
    },
  };
}

function parsePoolHashes(answer: unknown): PoolHashes {
  const pool = readObject(answer, "pool");
  const hashes = (name: "pending" | "queued") =>
    readList(pool[name], name).map((hash) => readHash(hash, name));
  return { pending: hashes("pending"), queued: hashes("queued") };
}

function readPoolFields(value: unknown): Omit<PoolTransaction, "missingNonce"> {
  const transaction = readObject(value, "transaction");
  return {
    hash: readHash(transaction["hash"], "hash"),
    from: readAddress(transaction["from"], "from"),
    to: readOptional(transaction["to"], "to", readAddress),
    valueAtoken: readQuantity(transaction["value"], "value"),
    nonce: readQuantity(transaction["nonce"], "nonce"),
    gasLimit: readQuantity(transaction["gas"], "gas"),
    gasPriceAtoken: readQuantity(transaction["gasPrice"], "gasPrice"),
    input: readHex(transaction["input"], "input"),
  };
}
