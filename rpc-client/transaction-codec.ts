/** What a node says about one transaction (receipt, status) as JSON, to types. */
import type { Address } from "../chain/address.js";
import { ERC20_TOPICS } from "../chain/evm/erc20.js";
import { cleanForeignText } from "../chain/evm/foreign-text.js";
import type { Hash32, Height, Hex } from "../chain/hex.js";
import type { Atoken } from "../chain/units.js";
import {
  readAddress,
  readHash,
  readHex,
  readList,
  readObject,
  readOptional,
  readQuantity,
  readSafeQuantity,
  readString,
} from "./answer-fields.js";
import { badAnswer, MAX_NODE_TEXT_CHARACTERS } from "./errors.js";
import { transferOf } from "./tokens/transfer-logs.js";

/** What a transaction asks for, mined or in the pool. */
export interface SentTransaction {
  readonly hash: Hash32;
  readonly from: Address;
  /** Undefined creates a contract. */
  readonly to: Address | undefined;
  readonly valueAtoken: Atoken;
  readonly nonce: bigint;
  readonly gasLimit: bigint;
  /** Price that it pays, or would pay, per gas. */
  readonly gasPriceAtoken: Atoken;
  readonly input: Hex;
}

/** A mined transaction's outcome. */
export interface NodeReceipt {
  readonly transactionHash: Hash32;
  readonly blockHash: Hash32;
  readonly height: Height;
  readonly transactionIndex: number;
  readonly from: Address;
  readonly to: Address | undefined;
  readonly contractAddress: Address | undefined;
  /** 1 success, 0 failed (mined, fee paid). */
  readonly status: 0 | 1;
  readonly gasUsed: bigint;
  /** Price really paid, atoken per gas; the fee is this times `gasUsed`. */
  readonly effectiveGasPriceAtoken: Atoken;
  /** Well-formed ERC-20 transfers among its logs, in order: what contracts say that they moved. */
  readonly transfers: readonly ReceiptTransfer[];
}

/** An ERC-20 transfer of a receipt. */
export interface ReceiptTransfer {
  readonly contract: Address;
  /** Undefined for a mint. */
  readonly from: Address | undefined;
  /** Undefined for a burn. */
  readonly to: Address | undefined;
  readonly units: bigint;
}

/** What became of a transaction hash; `index` is its place among the block's, as the journal has them. */
export type NodeTransactionStatus =
  | { readonly status: "pending" }
  | {
      readonly status: "queued";
      /** The first nonce of its sender that is not executable: its own one where there is a reason. */
      readonly missingNonce: bigint;
      /** Why it waits although no nonce is missing before it. */
      readonly reason?: string;
    }
  | { readonly status: "included"; readonly height: Height; readonly index: number }
  | { readonly status: "replaced"; readonly by: Hash32 }
  | { readonly status: "dropped"; readonly reason: string }
  | { readonly status: "unknown" };

/** Untrusted transaction (not null). Throws BAD_ANSWER. */
export function parseSentTransaction(value: unknown): SentTransaction {
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

/** Untrusted receipt (not null). Throws BAD_ANSWER. */
export function parseNodeReceipt(value: unknown): NodeReceipt {
  const receipt = readObject(value, "receipt");
  const status = readSafeQuantity(receipt["status"], "status");
  if (status !== 0 && status !== 1) throw badAnswer("status is neither 0 nor 1");
  const gasUsed = readQuantity(receipt["gasUsed"], "gasUsed");
  const effectiveGasPriceAtoken = readQuantity(receipt["effectiveGasPrice"], "effectiveGasPrice");
  // No chain has such fees, and no column of a ledger either.
  if (gasUsed >= 2n ** 63n || effectiveGasPriceAtoken >= 2n ** 128n) {
    throw badAnswer("a receipt's fee is beyond every chain's");
  }
  return {
    transactionHash: readHash(receipt["transactionHash"], "transactionHash"),
    blockHash: readHash(receipt["blockHash"], "blockHash"),
    height: readSafeQuantity(receipt["blockNumber"], "blockNumber"),
    transactionIndex: readSafeQuantity(receipt["transactionIndex"], "transactionIndex"),
    from: readAddress(receipt["from"], "from"),
    to: readOptional(receipt["to"], "to", readAddress),
    contractAddress: readOptional(receipt["contractAddress"], "contractAddress", readAddress),
    status,
    gasUsed,
    effectiveGasPriceAtoken,
    transfers: (readOptional(receipt["logs"], "logs", readList) ?? []).flatMap(readTransfer),
  };
}

/** Logs of other events and standards say nothing here. */
function readTransfer(value: unknown): ReceiptTransfer[] {
  const log = readObject(value, "log");
  const topics = readList(log["topics"], "topics").map((topic) => readHash(topic, "topic"));
  if (topics[0] !== TRANSFER_TOPIC) return [];
  const {
    standard,
    isStandard,
    from,
    to,
    value: units,
  } = transferOf(topics, readHex(log["data"], "data"));
  if (standard !== "erc20" || !isStandard || units === undefined) return [];
  return [{ contract: readAddress(log["address"], "address"), from, to, units }];
}

const TRANSFER_TOPIC: string = ERC20_TOPICS.transfer;

/** Untrusted answer of `causeway_getTransactionStatus`. Throws BAD_ANSWER. */
export function parseTransactionStatus(value: unknown): NodeTransactionStatus {
  const answer = readObject(value, "transaction status");
  switch (answer["status"]) {
    case "pending":
      return { status: "pending" };
    case "unknown":
      return { status: "unknown" };
    case "queued": {
      const missingNonce = readQuantity(answer["missingNonce"], "missingNonce");
      const reason = readOptional(answer["reason"], "reason", readReason);
      return { status: "queued", missingNonce, ...(reason === undefined ? {} : { reason }) };
    }
    case "included":
      return {
        status: "included",
        height: readSafeQuantity(answer["height"], "height"),
        index: readSafeQuantity(answer["index"], "index"),
      };
    case "replaced":
      return { status: "replaced", by: readHash(answer["by"], "by") };
    case "dropped":
      return { status: "dropped", reason: readReason(answer["reason"], "reason") };
    default:
      throw badAnswer("the transaction status is not a known one");
  }
}

function readReason(value: unknown, name: string): string {
  return cleanForeignText(readString(value, name), MAX_NODE_TEXT_CHARACTERS);
}
