/** The Data API (Rosetta) as the deposit watcher reads it: blocks with their operations. */
import type { Address } from "../chain/address.js";
import type { AddressPrefixes } from "../chain/address-prefixes.js";
import { cleanForeignText } from "../chain/evm/foreign-text.js";
import type { Hash32, Height } from "../chain/hex.js";
import type { OperationStatus } from "../chain/operations.js";
import { TOKEN_DECIMALS, TOKEN_SYMBOL, type Atoken } from "../chain/units.js";
import {
  type AnswerObject,
  readAddress,
  readBoolean,
  readCount,
  readDecimal,
  readHash,
  readList,
  readObject,
  readOptional,
  readString,
} from "./answer-fields.js";
import { CUT_OUT, type ScannedReply, scanBlockReply } from "./data-block-scan.js";
import { badAnswer, DataApiError, MAX_NODE_TEXT_CHARACTERS, NodeFault } from "./errors.js";
import { createHttpPoster } from "./http-post.js";
import type { RpcOptions } from "./json-rpc.js";

/** One operation of a transaction. */
export interface DataOperation {
  readonly index: number;
  /** Of the balance journal's reasons, or what modules and tokens use beside them. */
  readonly type: string;
  readonly status: OperationStatus;
  readonly address: Address;
  /**
   * True for the address' own native coins: the currency is TOKEN with 18 decimals and nothing
   * else, and no sub-account is named. A token contract may call itself TOKEN as well.
   */
  readonly isNative: boolean;
  /** Contract of the token whose units the address itself holds; undefined for all else. */
  readonly contract: Address | undefined;
  /** Signed; atoken only where the operation is native. */
  readonly amountAtoken: Atoken;
  readonly relatedIndexes: readonly number[];
}

/** A transaction, or the block-level one whose hash is the block's. */
export interface DataTransaction {
  readonly hash: Hash32;
  /** Position in the block. */
  readonly index: number;
  readonly operations: readonly DataOperation[];
}

/** A block as the Data API tells it. */
export interface DataBlock {
  readonly height: Height;
  readonly hash: Hash32;
  /** At height 0 the block's own hash. */
  readonly parentHash: Hash32;
  readonly timestampMs: number;
  readonly transactionCount: number;
  /** Operations, as far as they name an account. */
  readonly operationCount: number;
  /**
   * The transactions with an operation of an account for which `concerns` is true, each whole and
   * fully checked; a few others may be among them. May be asked again with another question.
   * @param among all for which it can be true: accounts that begin otherwise are not asked about
   * @throws BAD_ANSWER
   */
  transactions(
    concerns: (address: Address) => boolean,
    among?: AddressPrefixes,
  ): readonly DataTransaction[];
}

/** What the Data API says about the chain. */
export interface DataNetworkStatus {
  readonly height: Height;
  readonly hash: Hash32;
  readonly timestampMs: number;
  readonly genesisHash: Hash32;
  readonly synced: boolean;
}

/** Reads of one network. All throw NodeFault and DataApiError. */
export interface DataApiClient {
  networkStatus(options: RpcOptions): Promise<DataNetworkStatus>;
  /** Undefined when the Data API does not have the block, for example not yet. */
  block(height: Height, options: RpcOptions): Promise<DataBlock | undefined>;
  /** Ends its connections. */
  close(): void;
}

/** Settings of a client. */
export interface DataApiClientOptions {
  /** Base URL, for example `http://127.0.0.1:8080`. */
  readonly url: string;
  /** `network_identifier` of every request. */
  readonly network: { readonly blockchain: string; readonly network: string };
  /** Time for one exchange; default 10 s. */
  readonly timeoutMs?: number;
  /** Longest reply; default 128 MiB, a full block with all its operations. */
  readonly maxResponseBytes?: number;
}

/** Listed error numbers that mean "this block is not there": unknown, or above the tip. */
export const BLOCK_MISSING_NUMBERS: ReadonlySet<number> = new Set([201, 202]);

const DEFAULT_TIMEOUT_MS = 10_000;

/** Enough to keep a server busy; each more would only be one more to look after. */
const MAX_CONNECTIONS = 16;
const DEFAULT_MAX_RESPONSE_BYTES = 128 * 1024 * 1024;

/** Opens no connection before the first call. Throws TypeError on a malformed URL. */
export function createDataApiClient(options: DataApiClientOptions): DataApiClient {
  const poster = createHttpPoster({
    url: options.url,
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    maxResponseBytes: options.maxResponseBytes ?? DEFAULT_MAX_RESPONSE_BYTES,
    maxConnections: MAX_CONNECTIONS,
  });
  const call = async (path: string, fields: AnswerObject, signal: AbortSignal) => {
    const body = JSON.stringify({ network_identifier: options.network, ...fields });
    const reply = await poster.post(body, { signal, path });
    if (reply.status === 500) {
      throw parseError(readObject(parseJson(reply.body.toString("utf8")), "answer"), path);
    }
    if (reply.status === 200) return reply.body;
    throw new NodeFault("NODE_HTTP_STATUS", `${poster.host} answered HTTP ${reply.status}`, {
      retriable: true,
      details: { host: poster.host, status: reply.status },
    });
  };
  return {
    async networkStatus({ signal }) {
      const body = await call("/network/status", {}, signal);
      return parseStatus(readObject(parseJson(body.toString("utf8")), "answer"));
    },
    async block(height, { signal }) {
      try {
        const block = parseReply(
          await call("/block", { block_identifier: { index: height } }, signal),
        );
        if (block !== undefined && block.height !== height) throw badAnswer("another block");
        return block;
      } catch (error) {
        if (isBlockMissing(error)) return undefined;
        throw error;
      }
    },
    close: () => poster.close(),
  };
}

function isBlockMissing(error: unknown): boolean {
  return (
    error instanceof DataApiError && BLOCK_MISSING_NUMBERS.has(Number(error.details["rosettaCode"]))
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw badAnswer("the body is not JSON", cause);
  }
}

function parseError(answer: AnswerObject, path: string): DataApiError {
  const rosettaCode = readCount(answer["code"], "error code");
  const message = readString(answer["message"], "error message");
  const text = cleanForeignText(message, MAX_NODE_TEXT_CHARACTERS);
  return new DataApiError("DATA_API_ERROR", `${path}: ${text}`, {
    retriable: readBoolean(answer["retriable"], "retriable"),
    details: { rosettaCode, ...readOptional(answer["details"], "details", readObject) },
  });
}

function parseIdentifier(value: unknown, name: string): { height: Height; hash: Hash32 } {
  const identifier = readObject(value, name);
  return {
    height: readCount(identifier["index"], `${name}.index`),
    hash: readHash(identifier["hash"], `${name}.hash`),
  };
}

function parseStatus(answer: AnswerObject): DataNetworkStatus {
  const current = parseIdentifier(answer["current_block_identifier"], "current_block_identifier");
  const genesis = parseIdentifier(answer["genesis_block_identifier"], "genesis_block_identifier");
  const sync = readOptional(answer["sync_status"], "sync_status", readObject);
  return {
    ...current,
    timestampMs: readCount(answer["current_block_timestamp"], "current_block_timestamp"),
    genesisHash: genesis.hash,
    synced: sync === undefined || readOptional(sync["synced"], "synced", readBoolean) !== false,
  };
}

/** Undefined for a reply without a block. */
function parseReply(body: Buffer): DataBlock | undefined {
  try {
    return parseBlock(scanBlockReply(body));
  } catch {
    // Not a block as JSON.stringify writes it: another server's spaces, no block, or no sense.
    const answer = readObject(parseJson(body.toString("utf8")), "answer");
    if (answer["block"] === null || answer["block"] === undefined) return undefined;
    return parseBlock(scanBlockReply(Buffer.from(JSON.stringify(answer), "utf8")));
  }
}

function parseBlock(reply: ScannedReply): DataBlock {
  const frame = readObject(parseJson(reply.frame), "answer");
  const block = readObject(frame["block"], "block");
  const list = readList(block["transactions"], "transactions");
  // What the scan took for the block's transactions must be what a JSON parser calls so.
  if (list.length !== 1 || list[0] !== CUT_OUT) throw badAnswer("more than one list");
  const identifier = parseIdentifier(block["block_identifier"], "block_identifier");
  const parent = parseIdentifier(block["parent_block_identifier"], "parent_block_identifier");
  if (parent.height !== Math.max(0, identifier.height - 1)) throw badAnswer("parent's height");
  return {
    ...identifier,
    parentHash: parent.hash,
    timestampMs: readCount(block["timestamp"], "timestamp"),
    transactionCount: reply.transactionCount,
    operationCount: reply.accountCount,
    transactions: (concerns, among) =>
      reply
        .concerning(concerns, among)
        .map((position) => parseTransaction(parseJson(reply.transactionText(position)), position)),
  };
}

function parseTransaction(value: unknown, index: number): DataTransaction {
  const transaction = readObject(value, "transaction");
  const identifier = readObject(transaction["transaction_identifier"], "transaction_identifier");
  return {
    hash: readHash(identifier["hash"], "transaction hash"),
    index,
    operations: readList(transaction["operations"], "operations").map(parseOperation),
  };
}

function parseOperation(value: unknown, position: number): DataOperation {
  const operation = readObject(value, "operation");
  const identifier = readObject(operation["operation_identifier"], "operation_identifier");
  const index = readCount(identifier["index"], "operation index");
  if (index !== position) throw badAnswer("operations are out of order");
  const account = readObject(operation["account"], "account");
  const amount = readObject(operation["amount"], "amount");
  const related = readOptional(operation["related_operations"], "related_operations", readList);
  // A sub-account holds other coins than the address itself, for example staked ones.
  const isOwn = isAbsent(account["sub_account"]);
  const currency = readObject(amount["currency"], "currency");
  return {
    index,
    type: readType(operation["type"]),
    status: readStatus(operation["status"]),
    address: readAddress(account["address"], "account address"),
    isNative: isOwn && readIsNative(currency),
    contract: isOwn ? readContract(currency) : undefined,
    amountAtoken: readDecimal(amount["value"], "amount value"),
    relatedIndexes: (related ?? []).map((entry) =>
      readCount(readObject(entry, "related operation")["index"], "related index"),
    ),
  };
}

/** Identity of a currency is its whole object, so metadata of any kind makes it another one. */
function readIsNative(currency: AnswerObject): boolean {
  const symbol = readString(currency["symbol"], "currency symbol");
  const decimals = readCount(currency["decimals"], "currency decimals");
  return symbol === TOKEN_SYMBOL && decimals === TOKEN_DECIMALS && isAbsent(currency["metadata"]);
}

/** Tokens are told apart by their contract alone; other metadata means another kind of coin. */
function readContract(currency: AnswerObject): Address | undefined {
  const metadata = readOptional(currency["metadata"], "currency metadata", readObject);
  if (metadata === undefined || Object.keys(metadata).join() !== "contractAddress") {
    return undefined;
  }
  return readAddress(metadata["contractAddress"], "contractAddress");
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

/** Any name in the form of one: what a type means is the reader's to decide. */
function readType(value: unknown): string {
  const type = readString(value, "operation type");
  if (!/^[A-Z][A-Z0-9_]{0,63}$/.test(type)) throw badAnswer("an operation type is malformed");
  return type;
}

function readStatus(value: unknown): OperationStatus {
  if (value !== "SUCCESS" && value !== "FAILURE") throw badAnswer("an operation status is unknown");
  return value;
}
