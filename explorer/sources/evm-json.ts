/** Blocks, transactions and receipts as the node's JSON-RPC answers them, parsed for pages. */
import type { Address } from "../../chain/address.js";
import type { Hash32, Hex } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import {
  readAddress,
  readHash,
  readHex,
  readList,
  readObject,
  readOptional,
  readQuantity,
  readSafeQuantity,
} from "../../rpc-client/answer-fields.js";
import { parseSentTransaction, type SentTransaction } from "../../rpc-client/transaction-codec.js";

/** A header with what it commits to. */
export interface HeaderView {
  readonly height: number;
  readonly hash: Hash32;
  readonly parentHash: Hash32;
  readonly timestampSeconds: number;
  readonly stateRoot: Hash32;
  readonly transactionsRoot: Hash32;
  readonly receiptsRoot: Hash32;
  readonly proposer: Address;
  readonly gasUsed: bigint;
  readonly gasLimit: bigint;
}

/** Where a transaction was mined. */
export interface Place {
  readonly height: number;
  readonly index: number;
}

/** A transaction, mined or in the pool. */
export interface TransactionView extends SentTransaction {
  readonly type: number;
  /** Undefined in the pool. */
  readonly place: Place | undefined;
}

/** One log of a receipt. */
export interface LogView {
  readonly address: Address;
  readonly topics: readonly Hash32[];
  readonly data: Hex;
  readonly logIndex: number;
}

/** What became of a mined transaction. */
export interface ReceiptView {
  readonly hash: Hash32;
  readonly isSuccess: boolean;
  readonly gasUsed: bigint;
  readonly gasPriceAtoken: Atoken;
  readonly contractAddress: Address | undefined;
  readonly logs: readonly LogView[];
}

/** Untrusted header (not null). Throws BAD_ANSWER. */
export function parseHeader(value: unknown): HeaderView {
  const header = readObject(value, "header");
  return {
    height: readSafeQuantity(header["number"], "number"),
    hash: readHash(header["hash"], "hash"),
    parentHash: readHash(header["parentHash"], "parentHash"),
    timestampSeconds: readSafeQuantity(header["timestamp"], "timestamp"),
    stateRoot: readHash(header["stateRoot"], "stateRoot"),
    transactionsRoot: readHash(header["transactionsRoot"], "transactionsRoot"),
    receiptsRoot: readHash(header["receiptsRoot"], "receiptsRoot"),
    proposer: readAddress(header["miner"], "miner"),
    gasUsed: readQuantity(header["gasUsed"], "gasUsed"),
    gasLimit: readQuantity(header["gasLimit"], "gasLimit"),
  };
}

/** Untrusted transaction (not null). Throws BAD_ANSWER. */
export function parseTransaction(value: unknown): TransactionView {
  const transaction = readObject(value, "transaction");
  const height = readOptional(transaction["blockNumber"], "blockNumber", readSafeQuantity);
  const index = readOptional(transaction["transactionIndex"], "index", readSafeQuantity);
  return {
    ...parseSentTransaction(value),
    type: readSafeQuantity(transaction["type"], "type"),
    place: height === undefined || index === undefined ? undefined : { height, index },
  };
}

/** Untrusted receipt (not null). Throws BAD_ANSWER. */
export function parseReceipt(value: unknown): ReceiptView {
  const receipt = readObject(value, "receipt");
  return {
    hash: readHash(receipt["transactionHash"], "transactionHash"),
    isSuccess: readSafeQuantity(receipt["status"], "status") === 1,
    gasUsed: readQuantity(receipt["gasUsed"], "gasUsed"),
    gasPriceAtoken: readQuantity(receipt["effectiveGasPrice"], "effectiveGasPrice"),
    contractAddress: readOptional(receipt["contractAddress"], "contractAddress", readAddress),
    logs: readList(receipt["logs"], "logs").map(parseLog),
  };
}

function parseLog(value: unknown): LogView {
  const log = readObject(value, "log");
  return {
    address: readAddress(log["address"], "address"),
    topics: readList(log["topics"], "topics").map((topic) => readHash(topic, "topic")),
    data: readHex(log["data"], "data"),
    logIndex: readSafeQuantity(log["logIndex"], "logIndex"),
  };
}
