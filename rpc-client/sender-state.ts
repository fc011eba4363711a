/** What an account has to send with: its coins, its nonces, and what already waits in the pool. */
import type { Address } from "../chain/address.js";
import type { Atoken } from "../chain/units.js";
import { readObject, readOptional, readQuantity } from "./answer-fields.js";
import { isMethodMissing, isTooMuch } from "./errors.js";
import { type JsonRpcClient, resultOf, type RpcOptions } from "./json-rpc.js";

/** A sender at the head. */
export interface SenderState {
  /** Nonce of its next transaction in a block. */
  readonly nextNonce: bigint;
  /** Nonce behind those of the pool that are executable. */
  readonly pendingNonce: bigint;
  /** All that it has, also what is locked. */
  readonly balanceAtoken: Atoken;
  /**
   * Its executable EVM transactions in the pool; none where the node does not tell them, or where they are
   * more than is read. Cosmos transactions are not among them.
   */
  readonly waiting: readonly WaitingTransaction[];
}

/** A transaction that a block may take next. */
export interface WaitingTransaction {
  readonly nonce: bigint;
  readonly gasLimit: bigint;
  /** Most that it pays for each gas; of a legacy transaction its price. */
  readonly maxFeePerGasAtoken: Atoken;
  readonly valueAtoken: Atoken;
}

/** Reads of senders. */
export interface SenderCalls {
  senderState(address: Address, options: RpcOptions): Promise<SenderState>;
  /**
   * Nonces, rising, of its EVM transactions in the pool that are not executable: one before them is missing,
   * or coins are. Undefined where the node does not tell them, or where they are more than is read.
   */
  queuedNonces(address: Address, options: RpcOptions): Promise<readonly bigint[] | undefined>;
}

/** Some ten thousand plain transactions, which is more than a pool lets one sender have. */
const MAX_POOL_BYTES = 8 * 1024 * 1024;

/** The calls over a JSON-RPC client. */
export function senderCalls(rpc: JsonRpcClient): SenderCalls {
  const contentFrom = async (address: Address, options: RpcOptions) => {
    try {
      const bounds = { ...options, maxResponseBytes: MAX_POOL_BYTES };
      return readObject(await rpc.request("txpool_contentFrom", [address], bounds), "pool");
    } catch (error) {
      if (isMethodMissing(error) || isTooMuch(error)) return undefined;
      throw error;
    }
  };
  const waitingOf = async (address: Address, options: RpcOptions) => {
    const content = await contentFrom(address, options);
    return content === undefined ? [] : transactionsIn(content, "pending").map(parseWaiting);
  };
  return {
    async senderState(address, options) {
      // One batch, which the node answers in one turn.
      const [next, pending, balance] = await rpc.batch(
        [
          { method: "eth_getTransactionCount", params: [address, "latest"] },
          { method: "eth_getTransactionCount", params: [address, "pending"] },
          { method: "eth_getBalance", params: [address, "latest"] },
        ],
        options,
      );
      const nextNonce = readQuantity(resultOf(next), "nonce");
      const pendingNonce = readQuantity(resultOf(pending), "nonce");
      const balanceAtoken = readQuantity(resultOf(balance), "balance");
      // Asked behind the balance: what a block takes meanwhile is not reckoned twice.
      const waiting = pendingNonce > nextNonce ? await waitingOf(address, options) : [];
      return { nextNonce, pendingNonce, balanceAtoken, waiting };
    },
    async queuedNonces(address, options) {
      const content = await contentFrom(address, options);
      if (content === undefined) return undefined;
      const nonces = transactionsIn(content, "queued").map(parseNonce);
      return nonces.toSorted((left, right) => (left < right ? -1 : 1));
    },
  };
}

type Fields = ReturnType<typeof readObject>;

/** One part of what a pool has of a sender. */
function transactionsIn(content: Fields, part: "pending" | "queued"): Fields[] {
  const own = Object.values(readObject(content[part], part));
  return own.map((value) => readObject(value, "transaction"));
}

function parseNonce(transaction: Fields): bigint {
  return readQuantity(transaction["nonce"], "nonce");
}

function parseWaiting(transaction: Fields): WaitingTransaction {
  const priceAtoken = readQuantity(transaction["gasPrice"], "gasPrice");
  const gasLimit = readQuantity(transaction["gas"], "gas");
  const valueAtoken = readQuantity(transaction["value"], "value");
  const capAtoken = readOptional(transaction["maxFeePerGas"], "maxFeePerGas", readQuantity);
  return {
    nonce: parseNonce(transaction),
    gasLimit,
    maxFeePerGasAtoken: capAtoken ?? priceAtoken,
    valueAtoken,
  };
}
