/** What an eth_subscribe asks for. */
import type { Hash32 } from "../../../../chain/hex.js";
import { invalidParams, RpcFault } from "../errors.js";
import { type LogFilter, parseLogFilter } from "../log-filter.js";
import {
  type BlockRef,
  field,
  optionalField,
  ParamError,
  type Params,
  parseBlockNumberOrTag,
  parseBoolean,
  parseHashParam,
  parseObject,
} from "../params.js";

/** What is sent. */
export type Topic = ChainTopic | MomentTopic;

/** What follows the heights. */
export type ChainTopic =
  | { readonly kind: "newHeads" }
  | { readonly kind: "logs"; readonly filter: LogFilter }
  /** Without hashes: the receipts of every transaction. */
  | { readonly kind: "transactionReceipts"; readonly hashes: ReadonlySet<Hash32> };

/** What is told as it happens, and has no past. */
export type MomentTopic =
  | { readonly kind: "newPendingTransactions"; readonly full: boolean }
  | { readonly kind: "syncing" };

/**
 * What clients send as `fromBlock` where their user named no block: go-ethereum's ethclient, with all
 * that abigen generates, and cast. They want new logs alone. Whoever wants all begins with block 1.
 */
const NO_BLOCK: ReadonlySet<unknown> = new Set(["0x0", "earliest"]);

/** Transactions that one subscription waits for, as in go-ethereum. */
const MAX_RECEIPT_HASHES = 200;

/** Whether it follows the heights. */
export function isOfChain(topic: Topic): topic is ChainTopic {
  return topic.kind !== "newPendingTransactions" && topic.kind !== "syncing";
}

/**
 * The parameters of eth_subscribe; `from` is where a subscription begins in the past.
 * @throws INVALID_PARAMS, METHOD_NOT_FOUND, SERVER_ERROR
 */
export function parseTopic(params: Params): { topic: Topic; from: BlockRef | undefined } {
  const kind = params.required(0, parseName);
  switch (kind) {
    case "newHeads": {
      const from = params.optional(1, (value) =>
        optionalField(parseObject(value), "fromBlock", parseBlockNumberOrTag),
      );
      return { topic: { kind }, from };
    }
    case "logs": {
      const filter = params.optional(1, parseLiveLogFilter) ?? parseLogFilter({});
      if (filter.blockHash !== undefined) {
        throw invalidParams("a subscription cannot be made for one block hash");
      }
      return { topic: { kind, filter }, from: filter.from };
    }
    case "transactionReceipts":
      return parseReceiptsTopic(params);
    case "newPendingTransactions":
      return { topic: { kind, full: params.optional(1, parseBoolean) ?? false }, from: undefined };
    case "syncing":
      return { topic: { kind }, from: undefined };
    default:
      throw new RpcFault("METHOD_NOT_FOUND", `no "${kind}" subscription in eth namespace`);
  }
}

/** A filter as it is meant for a subscription. */
function parseLiveLogFilter(value: unknown): LogFilter {
  const fields = parseObject(value);
  const isFromNone = NO_BLOCK.has(field(fields, "fromBlock"));
  return parseLogFilter(isFromNone ? { ...fields, fromBlock: undefined } : fields);
}

function parseName(value: unknown): string {
  if (typeof value !== "string") throw new ParamError("non-string");
  return value;
}

function parseReceiptsTopic(params: Params): { topic: Topic; from: BlockRef | undefined } {
  const filter = params.optional(1, parseObject) ?? {};
  const wanted = field(filter, "transactionHashes") ?? [];
  if (!Array.isArray(wanted)) throw invalidParams("transactionHashes: expected an array");
  if (wanted.length > MAX_RECEIPT_HASHES) {
    throw new RpcFault(
      "SERVER_ERROR",
      "exceed max number of transaction hashes allowed per transactionReceipts subscription",
    );
  }
  const hashes = new Set(params.optional(1, () => wanted.map(parseHashParam)));
  const from = params.optional(1, () => optionalField(filter, "fromBlock", parseBlockNumberOrTag));
  return { topic: { kind: "transactionReceipts", hashes }, from };
}
