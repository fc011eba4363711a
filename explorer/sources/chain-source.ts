/**
 * What pages ask of the node's JSON-RPC, in single items and bounded batches: never a whole block with
 * all its content.
 */
import type { Address } from "../../chain/address.js";
import { ERC20_SELECTORS } from "../../chain/evm/erc20.js";
import { sdkTransactionHash } from "../../chain/consensus/sdk-transaction.js";
import { revertReason } from "../../chain/evm/revert-reason.js";
import { type Hash32, type Hex, hexToBytes, parseHexBytes, toQuantity } from "../../chain/hex.js";
import { decodeTransaction } from "../../chain/transaction.js";
import { readHex, readOptional, readSafeQuantity } from "../../rpc-client/answer-fields.js";
import { isPruned, NodeFault, RpcError } from "../../rpc-client/errors.js";
import { type EvmClient, receiptCalls } from "../../rpc-client/evm-client.js";
import {
  type JsonRpcClient,
  resultOf,
  type RpcCall,
  type RpcOptions,
  type RpcOutcome,
} from "../../rpc-client/json-rpc.js";
import { createPageTurns } from "../../web/server/page-limits.js";
import { decodeText } from "../decode/abi.js";
import {
  type HeaderView,
  parseHeader,
  parseReceipt,
  parseTransaction,
  type Place,
  type ReceiptView,
  type TransactionView,
} from "./evm-json.js";
import { type KeptJournal, KeptJournals, keptOf, TOO_LARGE } from "./kept-journals.js";

/** A header with the number of its transactions. */
export interface BlockSummary extends HeaderView {
  readonly transactionCount: number;
}

/** What a token contract says of itself: hostile until shown otherwise. */
export interface TokenClaims {
  readonly name: string | undefined;
  readonly symbol: string | undefined;
  readonly decimals: number | undefined;
  readonly totalSupplyUnits: bigint | undefined;
}

/** What a call gave back; of a failed one the revert's bytes, "0x" for none. */
export type CallAnswer =
  | { readonly ok: true; readonly data: Hex }
  | { readonly ok: false; readonly data: Hex; readonly reason: string };

/** Gas of one question to a contract, as for balances. */
const CLAIM_GAS = 100_000n;

/** What a token says about itself. */
const CLAIMS = [
  ERC20_SELECTORS.name,
  ERC20_SELECTORS.symbol,
  ERC20_SELECTORS.decimals,
  ERC20_SELECTORS.totalSupply,
] as const;

/** Why a block's moves are not told: they are longer than pages are made of, or not at the node. */
export type NoJournal = typeof TOO_LARGE | "pruned";

/** Reads of one node; unknown things are undefined. Throws NodeFault and RpcError. */
export class ChainSource {
  private readonly wholeBlocks = createPageTurns(1);
  private readonly journals = new KeptJournals();

  constructor(
    private readonly rpc: JsonRpcClient,
    /** The typed calls that the rest of the kit makes, too. */
    readonly evm: EvmClient,
  ) {}

  /** The newest block. */
  async head(options: RpcOptions): Promise<HeaderView> {
    return parseHeader(await this.rpc.request("eth_getHeaderByNumber", ["latest"], options));
  }

  /** Hash of a block; undefined above the head. One that the node has deleted is refused. */
  async hashAt(height: number, options: RpcOptions): Promise<Hash32 | undefined> {
    const params = [toQuantity(height)];
    const answer = await this.rpc.request("eth_getHeaderByNumber", params, options);
    return readOptional(answer, "header", parseHeader)?.hash;
  }

  /**
   * Headers with their numbers of transactions, in the order of the heights; unknown ones left out. One that
   * the node has deleted is refused.
   */
  async blocks(heights: readonly number[], options: RpcOptions): Promise<BlockSummary[]> {
    return summariesOf(await this.rpc.batch(heights.flatMap(summaryCalls), options));
  }

  /** The same of those that the node still has: lists go on to where it has deleted blocks. */
  async keptBlocks(heights: readonly number[], options: RpcOptions): Promise<BlockSummary[]> {
    const outcomes = await this.rpc.batch(heights.flatMap(summaryCalls), options);
    return summariesOf(
      outcomes.map((outcome) =>
        !outcome.ok && isPruned(outcome.error) ? { ok: true, result: null } : outcome,
      ),
    );
  }

  /** A block by its EVM hash. */
  async headerByHash(hash: Hash32, options: RpcOptions): Promise<HeaderView | undefined> {
    const answer = await this.rpc.request("eth_getHeaderByHash", [hash], options);
    return readOptional(answer, "header", parseHeader);
  }

  /** Transactions at places of one block, as far as they are there. */
  async transactionsAt(places: readonly Place[], options: RpcOptions): Promise<TransactionView[]> {
    const calls = places.map(({ height, index }) => ({
      method: "eth_getTransactionByBlockNumberAndIndex",
      params: [toQuantity(height), toQuantity(index)],
    }));
    const outcomes = await this.rpc.batch(calls, options);
    return outcomes.flatMap((outcome) => {
      const found = readOptional(resultOf(outcome), "transaction", parseTransaction);
      return found === undefined ? [] : [found];
    });
  }

  /** A transaction, mined or in the pool. */
  async transaction(hash: Hash32, options: RpcOptions): Promise<TransactionView | undefined> {
    const answer = await this.rpc.request("eth_getTransactionByHash", [hash], options);
    return readOptional(answer, "transaction", parseTransaction);
  }

  /** Receipts in the order of the hashes. */
  async receipts(
    hashes: readonly Hash32[],
    options: RpcOptions,
  ): Promise<(ReceiptView | undefined)[]> {
    const outcomes = await this.rpc.batch(receiptCalls(hashes), options);
    return outcomes.map((outcome) => readOptional(resultOf(outcome), "receipt", parseReceipt));
  }

  /** SHA-256 of the SDK transaction around an EVM one: its name on the Cosmos side. */
  async cosmosHash(
    { hash, from }: Pick<TransactionView, "hash" | "from">,
    options: RpcOptions,
  ): Promise<Hash32 | undefined> {
    const answer = await this.rpc.request("eth_getRawTransactionByHash", [hash], options);
    const raw = readOptional(answer, "raw transaction", readHex);
    if (raw === undefined || raw === "0x") return undefined;
    return sdkTransactionHash(decodeTransaction(hexToBytes(raw)), from);
  }

  /**
   * Reads something of a whole block, one after the other: a full one has tens of MiB, and several times that
   * as objects, and pages of many are made at once. Who asks keeps no more of it than is shown. @throws BUSY
   */
  ofWholeBlock<T>(read: () => Promise<T>, { signal }: RpcOptions): Promise<T> {
    return this.wholeBlocks.run(signal, read);
  }

  /**
   * Every native coin that a block moved; a node that joined by a snapshot has its first block without. Who
   * comes in his turn looks once more whether somebody before him has read the same block.
   */
  async journal(hash: Hash32, options: RpcOptions): Promise<KeptJournal | undefined | NoJournal> {
    return (
      this.journals.get(hash) ??
      this.ofWholeBlock(
        async () => this.journals.get(hash) ?? (await this.readJournal(hash, options)),
        options,
      )
    );
  }

  private async readJournal(
    hash: Hash32,
    options: RpcOptions,
  ): Promise<KeptJournal | undefined | NoJournal> {
    try {
      const block = await this.evm.blockJournal(hash, options);
      if (block === undefined) return undefined;
      const kept = keptOf(block);
      this.journals.set(hash, kept);
      return kept;
    } catch (error) {
      if (isPruned(error)) return "pruned";
      if (!(error instanceof NodeFault) || error.code !== "ANSWER_TOO_LARGE") throw error;
      this.journals.set(hash, TOO_LARGE);
      return TOO_LARGE;
    }
  }

  /** Why a mined transaction failed, in words of the EVM or of the contract; undefined if unknown. */
  async failure(hash: Hash32, options: RpcOptions): Promise<string | undefined> {
    const tracer = { tracer: "callTracer", tracerConfig: { onlyTopCall: true, withLog: false } };
    try {
      const trace = await this.evm.traceObject(hash, { ...tracer, tracer: "callTracer" }, options);
      const output =
        typeof trace["output"] === "string" ? parseHexBytes(trace["output"]) : undefined;
      const reason = output === undefined ? undefined : revertReason(output);
      const error = typeof trace["error"] === "string" ? trace["error"] : undefined;
      if (reason === undefined) return error;
      return error === undefined ? reason : `${error}: ${reason}`;
    } catch (error) {
      // A node may not trace, or not so far back: the page says that the reason is not known.
      if (error instanceof RpcError) return undefined;
      throw error;
    }
  }

  /** What a contract says of itself as a token. */
  async tokenClaims(contract: Address, options: RpcOptions): Promise<TokenClaims> {
    const calls = CLAIMS.map((data) => ({
      method: "eth_call",
      params: [{ to: contract, gas: toQuantity(CLAIM_GAS), data }, "latest"],
    }));
    const answers = (await this.rpc.batch(calls, options)).map((outcome): Hex | undefined =>
      outcome.ok ? readHex(outcome.result, "returned bytes") : undefined,
    );
    const [name, symbol, decimals, totalSupply] = answers;
    const places = wordOf(decimals);
    return {
      name: name === undefined ? undefined : decodeText(name),
      symbol: symbol === undefined ? undefined : decodeText(symbol),
      decimals: places !== undefined && places < 256n ? Number(places) : undefined,
      totalSupplyUnits: wordOf(totalSupply),
    };
  }

  /**
   * Calls of one contract at the newest block, in order, with nothing sent by anybody.
   * @param options.gas of each call
   */
  async callContract(
    contract: Address,
    datas: readonly Hex[],
    { gas, ...options }: RpcOptions & { readonly gas: bigint },
  ): Promise<readonly CallAnswer[]> {
    const calls = datas.map((data) => ({
      method: "eth_call",
      params: [{ to: contract, gas: toQuantity(gas), data }, "latest"],
    }));
    return (await this.rpc.batch(calls, options)).map((outcome): CallAnswer => {
      if (outcome.ok) return { ok: true, data: readHex(outcome.result, "returned bytes") };
      const { nodeMessage, rpc } = outcome.error;
      const data = readOptional(rpc.data, "returned bytes", (value) =>
        typeof value === "string" && /^0x([0-9a-f]{2})*$/.test(value) ? (value as Hex) : "0x",
      );
      return { ok: false, data: data ?? "0x", reason: nodeMessage };
    });
  }

  /** Any calls that are passed on as the node answers them. */
  async raw(method: string, params: readonly unknown[], options: RpcOptions): Promise<unknown> {
    return this.rpc.request(method, params, options);
  }
}

function summaryCalls(height: number): readonly RpcCall[] {
  const params = [toQuantity(height)];
  return [
    { method: "eth_getHeaderByNumber", params },
    { method: "eth_getBlockTransactionCountByNumber", params },
  ];
}

function summariesOf(outcomes: readonly RpcOutcome[]): BlockSummary[] {
  return Array.from({ length: outcomes.length / 2 }, (_, index) => index).flatMap((index) => {
    const header = readOptional(resultOf(outcomes[2 * index]), "header", parseHeader);
    const count = readOptional(resultOf(outcomes[2 * index + 1]), "count", readSafeQuantity);
    return header === undefined ? [] : [{ ...header, transactionCount: count ?? 0 }];
  });
}

function wordOf(answer: Hex | undefined): bigint | undefined {
  return answer?.length === 66 ? BigInt(answer) : undefined;
}
