/** ERC-20 balances by `balanceOf`, many in a batch, with contracts that may do anything. */
import type { Address } from "../../chain/address.js";
import { decodeUnits, encodeBalanceOf, encodeErc1155BalanceOf } from "../../chain/evm/erc20.js";
import { isEvmFailure } from "../../chain/evm/evm-failure.js";
import { toQuantity } from "../../chain/hex.js";
import { readHex } from "../answer-fields.js";
import { encodeStateAt, type StateAt } from "../at.js";
import { BalancesAtOnce, type ManyBalances } from "./balances-at-once.js";
import { RPC_CODES } from "../../chain/evm/rpc-codes.js";
import { isAnswerTooLarge, type RpcError } from "../errors.js";
import { type JsonRpcClient, resultOf, type RpcCall, type RpcOptions } from "../json-rpc.js";

/** One balance to read. */
export interface TokenBalanceQuery {
  /** The token's contract. */
  readonly token: Address;
  readonly account: Address;
  readonly at: StateAt;
  /** Of an ERC-1155: the balance of this id. */
  readonly tokenId?: bigint;
}

/**
 * What one query came to: the units, undefined where the contract fails, is not there, or does not answer
 * exactly 32 bytes; or that the node refuses, as for a state that it has deleted.
 */
export type TokenBalanceAnswer =
  | { readonly ok: true; readonly units: bigint | undefined }
  | { readonly ok: false; readonly error: RpcError };

/** Reads of token balances. */
export interface TokenCalls {
  /** Answers in the order of the queries: a refusal of one leaves the others alone. */
  tokenBalanceAnswers(
    queries: readonly TokenBalanceQuery[],
    options: RpcOptions,
  ): Promise<TokenBalanceAnswer[]>;
  /**
   * Balances in the order of the queries, in the token's smallest unit, as in the answers, but many of one
   * token in one state are asked together. That the node refuses one is an error of the whole call.
   */
  tokenBalances(
    queries: readonly TokenBalanceQuery[],
    options: RpcOptions,
  ): Promise<(bigint | undefined)[]>;
}

/**
 * Gas of one `balanceOf`: fixed, so that its outcome is the same at any time and on any node. Some
 * 21,500 are the call's own, a proxied token takes 15,000 beside them, one that computes interest
 * some 50,000. It is not more because index and node wait for whatever a contract does with it.
 */
const BALANCE_GAS = 100_000n;

/**
 * Queries in one exchange. With the dearest code that there is, frames that run 24 KiB of it for a
 * hundred gas, `BALANCE_GAS` comes to 61 ms of compute units (`chain/evm/compute-weights.ts`), so all
 * of them to 1.5 s of the reference machine. Many more might never be answered in time, however often
 * they were asked again.
 */
export const MAX_QUERIES_AT_ONCE = 25;

/** Fewer of one token are asked one by one: as many as one exchange has. */
const MIN_TOGETHER = MAX_QUERIES_AT_ONCE;

/**
 * Queries asked again together when a batch was too large for one reply. With `BALANCE_GAS` an
 * answer is below 250 KB of hex, and a node gives at least 25 MB in one batch.
 */
const MAX_LARGE_ANSWERS = 16;

/** The calls over a JSON-RPC client. */
export function tokenCalls(rpc: JsonRpcClient): TokenCalls {
  const ask = async (queries: readonly TokenBalanceQuery[], options: RpcOptions) => {
    const outcomes = await rpc.batch(queries.map(balanceOfCall), options);
    return queries.map((query, index) => ({ query, outcome: outcomes[index] }));
  };
  const together = new BalancesAtOnce(rpc);
  const calls: TokenCalls = {
    async tokenBalances(queries, options) {
      const found = new Map<TokenBalanceQuery, bigint | undefined>();
      for (const group of groupsOf(queries)) {
        const units = await together.ask(group, options);
        group.queries.forEach((query, index) => found.set(query, units[index]));
      }
      const left = queries.filter((query) => found.get(query) === undefined);
      const answers = await calls.tokenBalanceAnswers(left, options);
      for (const [index, query] of left.entries()) {
        const answer = answers[index];
        if (answer?.ok === false) throw answer.error;
        found.set(query, answer?.units);
      }
      return queries.map((query) => found.get(query));
    },
    async tokenBalanceAnswers(queries, options) {
      const answers: Awaited<ReturnType<typeof ask>> = [];
      for (let start = 0; start < queries.length; start += MAX_QUERIES_AT_ONCE) {
        const part = queries.slice(start, start + MAX_QUERIES_AT_ONCE);
        answers.push(...(await ask(part, options)));
      }
      const large = answers.filter(({ outcome }) => isTooLarge(outcome));
      for (let start = 0; start < large.length; start += MAX_LARGE_ANSWERS) {
        const part = large.slice(start, start + MAX_LARGE_ANSWERS);
        const again = await ask(
          part.map(({ query }) => query),
          options,
        );
        part.forEach((answer, index) => {
          answer.outcome = again[index]?.outcome;
        });
      }
      return answers.map(({ outcome }) => parseBalance(outcome));
    },
  };
  return calls;
}

/** Queries that are worth a call for all of them: of one token, in one state. */
function groupsOf(
  queries: readonly TokenBalanceQuery[],
): (ManyBalances & { readonly queries: readonly TokenBalanceQuery[] })[] {
  const groups = new Map<string, TokenBalanceQuery[]>();
  for (const query of queries) {
    if (query.tokenId !== undefined) continue;
    const key = `${query.token} ${query.at}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [query]);
    else group.push(query);
  }
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined || group.length < MIN_TOGETHER) return [];
    const accounts = group.map(({ account }) => account);
    return [{ token: first.token, at: first.at, accounts, queries: group }];
  });
}

function balanceOfCall({ token, account, at, tokenId }: TokenBalanceQuery): RpcCall {
  const data =
    tokenId === undefined ? encodeBalanceOf(account) : encodeErc1155BalanceOf(account, tokenId);
  const message = { to: token, gas: toQuantity(BALANCE_GAS), data };
  return { method: "eth_call", params: [message, encodeStateAt(at)] };
}

type Outcome = Parameters<typeof resultOf>[0];

function parseBalance(outcome: Outcome): TokenBalanceAnswer {
  if (outcome?.ok === false) {
    return isExecutionFailure(outcome.error) ? { ok: true, units: undefined } : outcome;
  }
  return { ok: true, units: decodeUnits(readHex(resultOf(outcome), "balanceOf")) };
}

function isTooLarge(outcome: Outcome): boolean {
  return outcome !== undefined && !outcome.ok && isAnswerTooLarge(outcome.error);
}

/**
 * True when a call was executed and did not succeed: it reverted, or ended in another way, which
 * only the text tells, because that number also means faults of the node.
 */
export function isExecutionFailure({ rpc, nodeMessage }: RpcError): boolean {
  if (rpc.rpcCode === RPC_CODES.reverted) return true;
  return rpc.rpcCode === RPC_CODES.serverError && isEvmFailure(nodeMessage);
}
