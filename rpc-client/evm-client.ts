/** Typed calls to a node's JSON-RPC: what the programs outside the node use of it. */
import type { Address } from "../chain/address.js";
import { type Hash32, type Height, type Hex, toQuantity } from "../chain/hex.js";
import type { ChainAccounts } from "../chain/chain-accounts.js";
import type { Atoken } from "../chain/units.js";
import {
  readAddress,
  readBoolean,
  readHash,
  readHex,
  readObject,
  readOptional,
  readQuantity,
  readSafeQuantity,
  readString,
} from "./answer-fields.js";
import { type AccountHeightsCalls, accountHeightsCalls } from "./account-heights.js";
import { type AccountStateCalls, accountStateCalls } from "./account-states.js";
import { type At, encodeAt, encodeStateAt, headerCall, type StateAt } from "./at.js";
import { type ClaimCalls, claimCalls } from "./indexing/claims.js";
import { badAnswer, isMethodMissing, type RpcError } from "./errors.js";
import {
  type AccountHeightsPage,
  type AccountJournalPage,
  type JournaledBlock,
  parseAccountHeightsPage,
  parseAccountJournalPage,
  parseJournaledBlock,
} from "./journal-codec.js";
import { type JsonRpcClient, resultOf, type RpcCall, type RpcOptions } from "./json-rpc.js";
import { type BlockRangeCalls, blockRangeCalls } from "./indexing/block-range.js";
import { type ContractViewCalls, contractViewCalls } from "./indexing/contract-views.js";
import { type ForwardedCalls, forwardedCalls } from "./forwarded-calls.js";
import { askOverRange } from "./whole-range.js";
import { type PoolCalls, poolCalls } from "./pool-calls.js";
import { type SenderCalls, senderCalls } from "./sender-state.js";
import { type TokenCalls, tokenCalls } from "./tokens/token-balances.js";
import { type TokenCodeCalls, tokenCodeCalls } from "./tokens/token-codes.js";
import { type TransferLogCalls, transferLogCalls } from "./tokens/transfer-logs.js";
import {
  type NodeReceipt,
  type NodeTransactionStatus,
  parseNodeReceipt,
  parseTransactionStatus,
} from "./transaction-codec.js";

/** What identifies a block and its place. */
export interface NodeBlockHeader {
  readonly height: Height;
  readonly hash: Hash32;
  readonly parentHash: Hash32;
  readonly timestampSeconds: number;
}

/** A message to estimate. */
export interface EstimateRequest {
  readonly from: Address;
  /** Undefined creates a contract. */
  readonly to: Address | undefined;
  readonly valueAtoken: Atoken;
  /** Calldata; none when absent. */
  readonly data?: Hex;
  /** Most gas that may be tried; the node's most when absent. */
  readonly gasLimit?: bigint;
}

/** What the node said to one raw transaction of a batch. */
export type SendOutcome =
  | { readonly outcome: "accepted"; readonly hash: Hash32 }
  | { readonly outcome: "refused"; readonly error: RpcError };

/** What a node's pool takes; undefined where the node does not say. */
export interface PoolRules {
  /** Most gas that a transaction may name. */
  readonly transactionGas: bigint | undefined;
  /** Lowest price per gas. */
  readonly minimumGasPriceAtoken: Atoken | undefined;
}

/**
 * A node as its clients see it. Every method throws RpcError when the node refuses and NodeFault
 * when it cannot be asked or its answer is malformed; unknown blocks and hashes are `undefined`.
 */
export interface EvmClient
  extends AccountHeightsCalls,
    AccountStateCalls,
    BlockRangeCalls,
    ClaimCalls,
    ContractViewCalls,
    ForwardedCalls,
    PoolCalls,
    SenderCalls,
    TokenCalls,
    TokenCodeCalls,
    TransferLogCalls {
  chainId(options: RpcOptions): Promise<bigint>;
  blockNumber(options: RpcOptions): Promise<Height>;
  /** True while the node knows that it is behind. */
  isSyncing(options: RpcOptions): Promise<boolean>;
  /** Lowest height of which the node has the block and the state after it; 0 where it says nothing. */
  oldestHeight(options: RpcOptions): Promise<Height>;
  poolRules(options: RpcOptions): Promise<PoolRules>;
  /** The release that the node says it is of, as `1.2.3`, at most 64 characters. */
  nodeVersion(options: RpcOptions): Promise<string>;
  /** Accounts that the chain's genesis names; undefined where the node does not say. */
  chainAccounts(options: RpcOptions): Promise<ChainAccounts | undefined>;
  getBalance(address: Address, at: At, options: RpcOptions): Promise<bigint>;
  /** Balances in the order of the queries, in as few HTTP requests as the batch bound allows. */
  getBalances(
    queries: readonly { readonly address: Address; readonly at: StateAt }[],
    options: RpcOptions,
  ): Promise<bigint[]>;
  /** Number of transactions sent; "pending" counts those in the pool that are executable. */
  getTransactionCount(address: Address, at: At | "pending", options: RpcOptions): Promise<bigint>;
  /** Suggested price, atoken per gas. */
  gasPrice(options: RpcOptions): Promise<bigint>;
  /** Gas that suffices now. A revert is an RpcError with `rpc.rpcCode` 3. */
  estimateGas(request: EstimateRequest, options: RpcOptions): Promise<bigint>;
  /** Sends in the given order; each transaction has its own outcome. */
  sendRawTransactions(raws: readonly Hex[], options: RpcOptions): Promise<SendOutcome[]>;
  getTransactionReceipt(hash: Hash32, options: RpcOptions): Promise<NodeReceipt | undefined>;
  /** Receipts in the order of the hashes. */
  getTransactionReceipts(
    hashes: readonly Hash32[],
    options: RpcOptions,
  ): Promise<(NodeReceipt | undefined)[]>;
  /**
   * The same from a node that has block `height`: undefined then says that the transaction is in no block up
   * to it. BAD_ANSWER while the node does not have that block.
   */
  getReceiptsUpTo(
    height: Height,
    hashes: readonly Hash32[],
    options: RpcOptions,
  ): Promise<(NodeReceipt | undefined)[]>;
  /** Header by height, or the newest block's. */
  getBlockHeader(at: At, options: RpcOptions): Promise<NodeBlockHeader | undefined>;
  /** Headers by height, in the order of the heights. */
  getBlockHeaders(
    heights: readonly Height[],
    options: RpcOptions,
  ): Promise<(NodeBlockHeader | undefined)[]>;
  getBlockHeaderByHash(hash: Hash32, options: RpcOptions): Promise<NodeBlockHeader | undefined>;
  /** Contract code, `0x` for an account without. */
  getCode(address: Address, at: At, options: RpcOptions): Promise<Hex>;
  /** Hash of block 0; throws BAD_ANSWER if the node has none. */
  genesisHash(options: RpcOptions): Promise<Hash32>;
  /** A block with every balance change. */
  blockJournal(hash: Hash32, options: RpcOptions): Promise<JournaledBlock | undefined>;
  /**
   * Operations of an account in blocks `from` to `to`, both included; continue at `next`. BAD_ANSWER while
   * the node does not have block `to`.
   */
  accountJournal(
    address: Address,
    range: { readonly from: Height; readonly to: Height },
    options: RpcOptions,
  ): Promise<AccountJournalPage>;
  /**
   * Heights from `from` to `to`, both included, at which an account's record was written: every
   * change of its balance, nonce, code or storage is at one of them. Continue at `next`. BAD_ANSWER
   * while the node does not have block `to`.
   */
  accountHeights(
    address: Address,
    range: { readonly from: Height; readonly to: Height },
    options: RpcOptions,
  ): Promise<AccountHeightsPage>;
  /** What became of a transaction hash, as far as the node knows. */
  transactionStatus(hash: Hash32, options: RpcOptions): Promise<NodeTransactionStatus>;
}

/** Gives the results of a JSON-RPC client their types. */
export function createEvmClient(rpc: JsonRpcClient): EvmClient {
  return {
    ...chainCalls(rpc),
    ...accountCalls(rpc),
    ...transactionCalls(rpc),
    ...forwardedCalls(rpc),
    ...accountHeightsCalls(rpc),
    ...accountStateCalls(rpc),
    ...blockRangeCalls(rpc),
    ...claimCalls(rpc),
    ...contractViewCalls(rpc),
    ...poolCalls(rpc),
    ...senderCalls(rpc),
    ...tokenCalls(rpc),
    ...tokenCodeCalls(rpc),
    ...transferLogCalls(rpc),
  };
}

type ChainCalls = Pick<
  EvmClient,
  | "chainId"
  | "blockNumber"
  | "isSyncing"
  | "oldestHeight"
  | "poolRules"
  | "nodeVersion"
  | "chainAccounts"
  | "getBlockHeader"
  | "getBlockHeaders"
  | "getBlockHeaderByHash"
  | "genesisHash"
  | "blockJournal"
>;

function chainCalls(rpc: JsonRpcClient): ChainCalls {
  const header = async (method: string, key: string, options: RpcOptions) =>
    readOptional(await rpc.request(method, [key, false], options), "block", parseHeader);
  /** What a node of this chain says beyond others, which may not know the method at all. */
  const capabilities = async (options: RpcOptions) => {
    const answer = await rpc.request("eth_capabilities", [], options).catch((error: unknown) => {
      if (isMethodMissing(error)) return {};
      throw error;
    });
    return readObject(answer, "capabilities");
  };
  return {
    chainId: async (options) =>
      readQuantity(await rpc.request("eth_chainId", [], options), "chain id"),
    blockNumber: async (options) =>
      readSafeQuantity(await rpc.request("eth_blockNumber", [], options), "block number"),
    isSyncing: async (options) => parseSyncing(await rpc.request("eth_syncing", [], options)),
    oldestHeight: async (options) =>
      parseOldest(await rpc.request("eth_capabilities", [], options), ["state", "blocks"]),
    async poolRules(options) {
      const { transactionGas, minimumGasPrice } = await capabilities(options);
      return {
        transactionGas: readOptional(transactionGas, "gas", readQuantity),
        minimumGasPriceAtoken: readOptional(minimumGasPrice, "gas price", readQuantity),
      };
    },
    nodeVersion: async (options) =>
      parseNodeVersion(await rpc.request("web3_clientVersion", [], options)),
    chainAccounts: async (options) =>
      readOptional((await capabilities(options))["chainAccounts"], "accounts", parseChainAccounts),
    getBlockHeader: (at, options) => header("eth_getBlockByNumber", encodeAt(at), options),
    getBlockHeaderByHash: (hash, options) => header("eth_getBlockByHash", hash, options),
    async getBlockHeaders(heights, options) {
      const calls = heights.map((height) => headerCall(height));
      const outcomes = await rpc.batch(calls, options);
      return outcomes.map((outcome) => readOptional(resultOf(outcome), "block", parseHeader));
    },
    async genesisHash(options) {
      const genesis = await header("eth_getBlockByNumber", encodeAt(0), options);
      if (genesis === undefined || genesis.height !== 0) throw badAnswer("no genesis block");
      return genesis.hash;
    },
    async blockJournal(hash, options) {
      const answer = await rpc.request("causeway_getBlockJournal", [hash], options);
      const block = readOptional(answer, "journal", parseJournaledBlock);
      if (block !== undefined && block.hash !== hash) throw badAnswer("journal of another block");
      return block;
    },
  };
}

type AccountCalls = Pick<
  EvmClient,
  | "getBalance"
  | "getBalances"
  | "getTransactionCount"
  | "getCode"
  | "accountJournal"
  | "accountHeights"
>;

function accountCalls(rpc: JsonRpcClient): AccountCalls {
  return {
    getBalance: async (address, at, options) => {
      const answer = await rpc.request("eth_getBalance", [address, encodeAt(at)], options);
      return readQuantity(answer, "balance");
    },
    async getBalances(queries, options) {
      const calls = queries.map(({ address, at }) => balanceCall(address, at));
      const outcomes = await rpc.batch(calls, options);
      return outcomes.map((outcome) => readQuantity(resultOf(outcome), "balance"));
    },
    getTransactionCount: async (address, at, options) => {
      const params = [address, encodeAt(at)];
      return readQuantity(await rpc.request("eth_getTransactionCount", params, options), "nonce");
    },
    getCode: async (address, at, options) =>
      readHex(await rpc.request("eth_getCode", [address, encodeAt(at)], options), "code"),
    async accountJournal(address, { from, to }, options) {
      const params = [address, toQuantity(from), toQuantity(to)];
      const journal = { method: "causeway_getAccountJournal", params };
      const [page] = await askOverRange(rpc, to, [journal], options);
      return parseAccountJournalPage(resultOf(page), { from, to });
    },
    async accountHeights(address, range, options) {
      const params = [address, toQuantity(range.from), toQuantity(range.to)];
      const call = { method: "causeway_getAccountHeights", params };
      const [page] = await askOverRange(rpc, range.to, [call], options);
      return parseAccountHeightsPage(resultOf(page), range);
    },
  };
}

type TransactionCalls = Pick<
  EvmClient,
  | "gasPrice"
  | "estimateGas"
  | "sendRawTransactions"
  | "getTransactionReceipt"
  | "getTransactionReceipts"
  | "getReceiptsUpTo"
  | "transactionStatus"
>;

function transactionCalls(rpc: JsonRpcClient): TransactionCalls {
  return {
    gasPrice: async (options) =>
      readQuantity(await rpc.request("eth_gasPrice", [], options), "gas price"),
    estimateGas: async (request, options) => {
      const answer = await rpc.request("eth_estimateGas", [encodeEstimate(request)], options);
      return readQuantity(answer, "gas");
    },
    async sendRawTransactions(raws, options) {
      const calls = raws.map((raw) => ({ method: "eth_sendRawTransaction", params: [raw] }));
      const outcomes = await rpc.batch(calls, options);
      return outcomes.map(
        (outcome): SendOutcome =>
          outcome.ok
            ? { outcome: "accepted", hash: readHash(outcome.result, "transaction hash") }
            : { outcome: "refused", error: outcome.error },
      );
    },
    async getTransactionReceipt(hash, options) {
      const answer = await rpc.request("eth_getTransactionReceipt", [hash], options);
      return parseReceiptOf(answer, hash);
    },
    async getTransactionReceipts(hashes, options) {
      const outcomes = await rpc.batch(receiptCalls(hashes), options);
      return hashes.map((hash, index) => parseReceiptOf(resultOf(outcomes[index]), hash));
    },
    async getReceiptsUpTo(height, hashes, options) {
      const outcomes = await askOverRange(rpc, height, receiptCalls(hashes), options);
      return hashes.map((hash, index) => parseReceiptOf(resultOf(outcomes[index]), hash));
    },
    transactionStatus: async (hash, options) =>
      parseTransactionStatus(await rpc.request("causeway_getTransactionStatus", [hash], options)),
  };
}

/** Calls for receipts, for batches that mix calls. */
export function receiptCalls(hashes: readonly Hash32[]): RpcCall[] {
  return hashes.map((hash) => ({ method: "eth_getTransactionReceipt", params: [hash] }));
}

/** Call for a balance, for batches that mix calls. */
export function balanceCall(address: Address, at: StateAt): RpcCall {
  return { method: "eth_getBalance", params: [address, encodeStateAt(at)] };
}

/** Message of an estimate as the node takes it. */
export function encodeEstimate(request: EstimateRequest): Readonly<Record<string, string>> {
  return {
    from: request.from,
    ...(request.to === undefined ? {} : { to: request.to }),
    value: toQuantity(request.valueAtoken),
    ...(request.data === undefined || request.data === "0x" ? {} : { data: request.data }),
    ...(request.gasLimit === undefined ? {} : { gas: toQuantity(request.gasLimit) }),
  };
}

/** Answer of `eth_syncing`: false, or an object while the node is behind. */
export function parseSyncing(answer: unknown): boolean {
  if (typeof answer === "object" && answer !== null) return true;
  return readBoolean(answer, "syncing");
}

/** Answer of `eth_capabilities`: from where on it has all of these; 0 for what it says nothing of. */
function parseOldest(answer: unknown, wanted: readonly string[]): Height {
  const kinds = readObject(answer, "capabilities");
  const oldest = wanted.map((kind) => {
    const place = readObject(kinds[kind] ?? {}, kind)["oldestBlock"];
    return readSafeQuantity(place ?? "0x0", "oldestBlock");
  });
  return Math.max(...oldest);
}

/**
 * Answer of `eth_capabilities`: the lowest height of which receipts are found by their hashes, whatever
 * states are kept. Throws BAD_ANSWER.
 */
export function parseOldestReceipts(answer: unknown): Height {
  return parseOldest(answer, ["tx", "receipts", "blocks"]);
}

/** `name/v1.2.3/platform/runtime`, as geth writes it, too. */
function parseNodeVersion(answer: unknown): string {
  const text = readString(answer, "client version");
  const [, version] = /^[^/]+\/v?([0-9A-Za-z.+_-]{1,64})(\/|$)/.exec(text) ?? [];
  if (version === undefined) throw badAnswer("the client version names none");
  return version;
}

/** Accounts that the genesis names. Throws BAD_ANSWER. */
function parseChainAccounts(value: unknown): ChainAccounts {
  const accounts = readObject(value, "accounts");
  return {
    feeCollector: readAddress(accounts["feeCollector"], "feeCollector"),
    treasury: readAddress(accounts["treasury"], "treasury"),
    validatorsPool: readAddress(accounts["validatorsPool"], "validatorsPool"),
    developmentFund: readAddress(accounts["developmentFund"], "developmentFund"),
    burnAddress: readAddress(accounts["burnAddress"], "burnAddress"),
  };
}

/** Header fields of a block as JSON. Throws BAD_ANSWER. */
export function parseHeader(value: unknown): NodeBlockHeader {
  const block = readObject(value, "block");
  return {
    height: readSafeQuantity(block["number"], "number"),
    hash: readHash(block["hash"], "hash"),
    parentHash: readHash(block["parentHash"], "parentHash"),
    timestampSeconds: readSafeQuantity(block["timestamp"], "timestamp"),
  };
}

function parseReceiptOf(answer: unknown, hash: Hash32): NodeReceipt | undefined {
  const receipt = readOptional(answer, "receipt", parseNodeReceipt);
  if (receipt !== undefined && receipt.transactionHash !== hash) {
    throw badAnswer("receipt of another transaction");
  }
  return receipt;
}
