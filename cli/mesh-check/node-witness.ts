/** The node itself as a second witness: its blocks and balances, without the server on trial. */
import { encodeBalanceOf } from "../../chain/evm/erc20.js";
import { type Address, parseAddress } from "../../chain/address.js";
import { toQuantity } from "../../chain/hex.js";
import {
  readHash,
  readList,
  readObject,
  readOptional,
  readString,
} from "../../rpc-client/answer-fields.js";
import { badAnswer } from "../../rpc-client/errors.js";
import {
  createJsonRpcClient,
  resultOf,
  type RpcCall,
  type RpcOutcome,
} from "../../rpc-client/json-rpc.js";
import { isExecutionFailure } from "../../rpc-client/tokens/token-balances.js";
import { retry } from "../../runtime/process/task.js";
import type { BalanceCheck } from "./balance-book.js";
import { createLimiter } from "./limiter.js";

/** A block as the node tells it. */
export interface WitnessBlock {
  readonly hash: string;
  readonly parentHash: string;
  readonly transactionHashes: readonly string[];
  /** Every address that the block's transactions name, and its proposer; lower case. */
  readonly addresses: readonly Address[];
}

/** Reads of the node. All throw NodeFault and RpcError. */
export interface NodeWitness {
  block(index: number): Promise<WitnessBlock>;
  /** Those of some transactions that the node says are in a block, of whichever kind they are. */
  included(hashes: readonly string[], index: number): Promise<readonly string[]>;
  /** Balances in the order of the checks; undefined for what a node cannot be asked. */
  balances(checks: readonly BalanceCheck[]): Promise<(bigint | undefined)[]>;
  close(): void;
}

/** Characters of one 32-byte word as hex with its prefix. */
const WORD_CHARACTERS = 66;

/** Tries of a request that may pass later. */
const ATTEMPTS = 6;

/** Opens no connection before the first call. Throws TypeError on a malformed URL. */
export function createNodeWitness(options: {
  readonly url: string;
  readonly concurrency: number;
  readonly signal: AbortSignal;
}): NodeWitness {
  const { signal } = options;
  const rpc = createJsonRpcClient({ url: options.url });
  const limit = createLimiter(options.concurrency);
  const again = <T>(work: () => Promise<T>): Promise<T> =>
    limit(() => retry(work, { signal, attempts: ATTEMPTS, minDelayMs: 200, maxDelayMs: 5_000 }));
  return {
    async block(index) {
      const params = [toQuantity(index), true];
      return parseBlock(await again(() => rpc.request("eth_getBlockByNumber", params, { signal })));
    },
    async included(hashes, index) {
      const calls = hashes.map((hash) => ({
        method: "causeway_getTransactionStatus",
        params: [hash],
      }));
      const outcomes = await again(() => rpc.batch(calls, { signal }));
      return hashes.filter((_, position) => {
        const outcome = outcomes[position];
        if (outcome?.ok !== true) return false;
        const status = readObject(outcome.result, "status");
        return status["status"] === "included" && status["height"] === toQuantity(index);
      });
    },
    async balances(checks) {
      const questions = checks.map(questionOf);
      const asked = questions.filter((question) => typeof question === "object");
      const outcomes = await again(() => rpc.batch(asked, { signal }));
      const amounts = outcomes.map(parseAmount);
      return questions.map((question) =>
        typeof question === "object" ? amounts.shift() : question,
      );
    },
    close: () => rpc.close(),
  };
}

/**
 * What the node is asked, or what it holds without being asked: coins and tokens lie on accounts alone, so
 * that there are none in a part of one, nor where no account or token can be. Undefined for other currencies.
 */
function questionOf({ entry, index }: BalanceCheck): RpcCall | bigint | undefined {
  const { account, currency } = entry;
  if (!currency.isNative && currency.contractAddress === undefined) return undefined;
  const isPart = account.value["sub_account"] !== undefined;
  const address = isPart ? undefined : addressOf(account.value["address"]);
  const at = toQuantity(index);
  if (address === undefined) return 0n;
  if (currency.isNative) return { method: "eth_getBalance", params: [address, at] };
  const to = addressOf(currency.contractAddress);
  if (to === undefined) return 0n;
  return { method: "eth_call", params: [{ to, data: encodeBalanceOf(address) }, at] };
}

/** Undefined for a name that the server made up. */
function addressOf(text: unknown): Address | undefined {
  try {
    return parseAddress(text);
  } catch {
    return undefined;
  }
}

/**
 * A quantity, or one word of returned data; nothing is returned where there is no code. A contract
 * that answers otherwise, or not at all, is no witness.
 */
function parseAmount(outcome: RpcOutcome): bigint | undefined {
  if (!outcome.ok && isExecutionFailure(outcome.error)) return undefined;
  const text = readString(resultOf(outcome), "balance");
  if (!/^0x[0-9a-f]*$/i.test(text)) throw badAnswer("a balance is not a number");
  if (text === "0x") return 0n;
  return text.length <= WORD_CHARACTERS ? BigInt(text) : undefined;
}

function parseBlock(value: unknown): WitnessBlock {
  const block = readObject(value, "block");
  const transactions = readList(block["transactions"], "transactions").map((entry) =>
    readObject(entry, "transaction"),
  );
  const named = transactions.flatMap((entry) => [entry["from"], entry["to"]]);
  const addresses = [block["miner"], ...named].flatMap((entry) => {
    const address = readOptional(entry, "address", readString);
    return address === undefined ? [] : [parseAddress(address)];
  });
  return {
    hash: readHash(block["hash"], "hash"),
    parentHash: readHash(block["parentHash"], "parentHash"),
    transactionHashes: transactions.map((entry) => readHash(entry["hash"], "transaction hash")),
    addresses: [...new Set(addresses)],
  };
}
