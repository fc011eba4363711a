/** Blocks and transactions of the Data API (Rosetta) as the deposit watcher reads them. */
import type { Address } from "../../chain/address.js";
import type { AddressPrefixes } from "../../chain/address-prefixes.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { OperationStatus } from "../../chain/operations.js";
import { TOKEN_DECIMALS, TOKEN_SYMBOL, type Atoken } from "../../chain/units.js";
import {
  type AnswerObject,
  readAddress,
  readCount,
  readDecimal,
  readHash,
  readList,
  readObject,
  readOptional,
  readString,
} from "../answer-fields.js";
import { badAnswer } from "../errors.js";

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

/** Which transactions of a block are wanted. */
export interface WantedTransactions {
  /** All accounts for which `concerns` can be true: those that begin otherwise are not asked about. */
  readonly among?: AddressPrefixes;
  /** Of a block that has to ask for its transactions. */
  readonly signal: AbortSignal;
}

/** A block as the Data API tells it. */
export interface DataBlock {
  readonly height: Height;
  readonly hash: Hash32;
  /** At height 0 the block's own hash. */
  readonly parentHash: Hash32;
  readonly timestampMs: number;
  readonly transactionCount: number;
  /** How often its transactions name an account: what matching them costs. */
  readonly accountCount: number;
  /** Memory that it holds, about. */
  readonly sizeBytes: number;
  /**
   * The transactions with an operation of an account for which `concerns` is true, each whole and
   * fully checked; a few others may be among them. May be asked again with another question.
   * @throws BAD_ANSWER; the client's faults where transactions have to be asked for
   */
  transactions(
    concerns: (address: Address) => boolean,
    wanted: WantedTransactions,
  ): Promise<readonly DataTransaction[]>;
  /** Every account that it names. @throws BAD_ANSWER */
  addresses(): ReadonlySet<Address>;
}

/** The value of JSON text. @throws BAD_ANSWER */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw badAnswer("the body is not JSON", cause);
  }
}

/** A block's place and hash. @throws BAD_ANSWER */
export function parseIdentifier(value: unknown, name: string): { height: Height; hash: Hash32 } {
  const identifier = readObject(value, name);
  return {
    height: readCount(identifier["index"], `${name}.index`),
    hash: readHash(identifier["hash"], `${name}.hash`),
  };
}

/** What a block's head says, of /block and of its accounts alike. */
export interface DataBlockHead
  extends Pick<DataBlock, "height" | "hash" | "parentHash" | "timestampMs"> {}

/** Both identifiers and the time of a block. @throws BAD_ANSWER */
export function parseBlockHead(block: AnswerObject): DataBlockHead {
  const identifier = parseIdentifier(block["block_identifier"], "block_identifier");
  const parent = parseIdentifier(block["parent_block_identifier"], "parent_block_identifier");
  if (parent.height !== Math.max(0, identifier.height - 1)) throw badAnswer("parent's height");
  return {
    ...identifier,
    parentHash: parent.hash,
    timestampMs: readCount(block["timestamp"], "timestamp"),
  };
}

/**
 * A transaction with all its operations.
 * @param index its position in the block
 * @throws BAD_ANSWER
 */
export function parseTransaction(value: unknown, index: number): DataTransaction {
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
