/** The node's balance journal as JSON, of one block or of one account, to types. */
import type { Address } from "../chain/address.js";
import { BALANCE_REASONS, type BalanceChange, changeError } from "../chain/balance-change.js";
import type { PlacedClaimMove } from "../chain/staking/claims.js";
import { cleanForeignText } from "../chain/evm/foreign-text.js";
import type { Hash32, Height, Hex } from "../chain/hex.js";
import { MAX_TOPICS } from "../chain/receipt.js";
import type { Atoken } from "../chain/units.js";
import {
  readAddress,
  readBoolean,
  readCount,
  readDecimal,
  readHash,
  readHex,
  readList,
  readObject,
  readOptional,
  readQuantity,
  readSafeQuantity,
  readString,
  readWord,
} from "./answer-fields.js";
import { parseClaimMove } from "./indexing/claims.js";
import { badAnswer } from "./errors.js";

/** One EVM log; its transaction and its position in the list tell its place. */
export interface JournaledLog {
  readonly address: Address;
  /** 0 to 4 words. */
  readonly topics: readonly Hash32[];
  readonly data: Hex;
  /** Size of data that the answer left out. */
  readonly leftOutBytes?: number;
}

/** A mined transaction of either kind with its balance changes. */
export interface JournaledTransaction {
  readonly hash: Hash32;
  /** Position in the block: EVM transactions first, then Cosmos transactions. */
  readonly index: number;
  /** 1 success, 0 failed (mined, fee paid). */
  readonly status: 0 | 1;
  readonly from: Address;
  /** Undefined creates a contract, and has no meaning for a Cosmos transaction. */
  readonly to: Address | undefined;
  readonly contractAddress: Address | undefined;
  readonly gasUsed: bigint;
  /** Price really paid per gas. */
  readonly gasPriceAtoken: Atoken;
  readonly nonce: bigint;
  /** The beginning alone where the answer left out the rest. */
  readonly input: Hex;
  readonly inputSizeBytes: number;
  readonly changes: readonly BalanceChange[];
  /** In the order of the receipt; none for a failed one. */
  readonly logs: readonly JournaledLog[];
  /** Of a Cosmos transaction, which has no receipt, price, calldata or logs. */
  readonly cosmos?: JournaledCosmos;
}

/** What Cosmos transactions alone have. */
export interface JournaledCosmos {
  readonly gasLimit: bigint;
  /** Paid in full, whatever gas is used. */
  readonly feeAtoken: Atoken;
  readonly memo: string;
  /** Type URLs of its messages. */
  readonly messages: readonly string[];
  /** Place in the block's `data.txs`. */
  readonly dataIndex: number;
}

/** One block with all its balance changes. */
export interface JournaledBlock {
  readonly hash: Hash32;
  readonly height: Height;
  /** The header's parent hash; zeros at height 0. */
  readonly parentHash: Hash32;
  /** Hash of its consensus header; undefined for genesis, in ranges, and from older nodes. */
  readonly consensusBlockHash?: Hash32 | undefined;
  readonly timestampMs: number;
  readonly transactions: readonly JournaledTransaction[];
  /** Changes that no transaction made. */
  readonly blockChanges: readonly BalanceChange[];
  readonly mintedAtoken: Atoken;
  readonly burnedAtoken: Atoken;
  /** How the block changed claims; "pruned" where the node has not the state any more that tells it. */
  readonly claims: readonly PlacedClaimMove[] | "pruned";
}

/** One operation of an account with its place in the chain. */
export interface AccountJournalEntry {
  readonly height: Height;
  readonly blockHash: Hash32;
  /** Undefined for block-level operations. */
  readonly transactionHash: Hash32 | undefined;
  readonly transactionIndex: number;
  readonly operationIndex: number;
  /** Signed; zero where the change was not effective. */
  readonly deltaAtoken: Atoken;
  readonly change: BalanceChange;
}

/** A page of an account's journal: whole blocks, `next` is the height to go on from. */
export interface AccountJournalPage {
  readonly entries: readonly AccountJournalEntry[];
  readonly next: Height | undefined;
}

/** A page of heights at which an account's record was written; `next` is where to go on. */
export interface AccountHeightsPage {
  /** Ascending, each once. */
  readonly heights: readonly Height[];
  readonly next: Height | undefined;
}

/** Untrusted answer of `causeway_getBlockJournal` (not null). Throws BAD_ANSWER. */
export function parseJournaledBlock(value: unknown): JournaledBlock {
  const block = readObject(value, "journal");
  const cosmos = block["cosmosTransactions"];
  const transactions = [
    ...readList(block["transactions"], "transactions").map(parseTransaction),
    ...(cosmos === undefined ? [] : readList(cosmos, "cosmosTransactions").map(parseCosmos)),
  ];
  transactions.forEach((transaction, position) => {
    if (transaction.index !== position) throw badAnswer("transactions are out of order");
  });
  return {
    hash: readHash(block["blockHash"], "blockHash"),
    height: readSafeQuantity(block["blockNumber"], "blockNumber"),
    parentHash: readHash(block["parentHash"], "parentHash"),
    consensusBlockHash: readOptional(block["consensusBlockHash"], "consensusBlockHash", readHash),
    timestampMs: readCount(block["timestampMs"], "timestampMs"),
    transactions,
    blockChanges: parseChanges(block["blockChanges"], "blockChanges"),
    mintedAtoken: readQuantity(block["minted"], "minted"),
    burnedAtoken: readQuantity(block["burned"], "burned"),
    claims: parseClaims(block["claims"], transactions.length),
  };
}

/** Chains without stake have no claims, nor have nodes of before. */
function parseClaims(value: unknown, transactionCount: number): JournaledBlock["claims"] {
  if (value === undefined) return [];
  if (value === null) return "pruned";
  return readList(value, "claims").map((entry) => parseClaimMove(entry, transactionCount));
}

/**
 * Untrusted answer of `causeway_getAccountJournal` for a range: what is outside of it or out of order would
 * be booked twice or not at all, and a page that goes on where it began would never end. Throws BAD_ANSWER.
 */
export function parseAccountJournalPage(
  value: unknown,
  range: { readonly from: Height; readonly to: Height },
): AccountJournalPage {
  const page = readObject(value, "account journal");
  const entries = readList(page["entries"], "entries").map(parseEntry);
  const next = readOptional(page["next"], "next", readHeight);
  let least = range.from;
  for (const { height } of entries) {
    if (height < least || height > range.to) throw badAnswer("an entry is out of order or range");
    least = height;
  }
  if (next !== undefined && (next <= least || next > range.to)) {
    throw badAnswer("the next page is out of order or range");
  }
  return { entries, next };
}

/**
 * Untrusted answer of `causeway_getAccountHeights` for a range: a height outside of it or out of
 * order would make a reader skip blocks, so it is refused. Throws BAD_ANSWER.
 */
export function parseAccountHeightsPage(
  value: unknown,
  range: { readonly from: Height; readonly to: Height },
): AccountHeightsPage {
  const page = readObject(value, "account heights");
  const heights = readList(page["heights"], "heights").map((item) => readCount(item, "height"));
  const next = readOptional(page["next"], "next", readHeight);
  let least = range.from;
  for (const height of next === undefined ? heights : [...heights, next]) {
    if (height < least || height > range.to) throw badAnswer("a height is out of order or range");
    least = height + 1;
  }
  return { heights, next };
}

/** `next` may be a JSON number or a quantity. */
function readHeight(value: unknown, name: string): Height {
  return typeof value === "number" ? readCount(value, name) : readSafeQuantity(value, name);
}

function parseTransaction(value: unknown): JournaledTransaction {
  const transaction = readObject(value, "transaction");
  const status = readSafeQuantity(transaction["status"], "status");
  if (status !== 0 && status !== 1) throw badAnswer("status is neither 0 nor 1");
  const input = readHex(transaction["input"], "input");
  const inputSizeBytes = readOptional(transaction["inputBytes"], "inputBytes", readCount);
  return {
    hash: readHash(transaction["hash"], "hash"),
    index: readCount(transaction["index"], "index"),
    status,
    from: readAddress(transaction["from"], "from"),
    to: readOptional(transaction["to"], "to", readAddress),
    contractAddress: readOptional(transaction["contractAddress"], "contractAddress", readAddress),
    gasUsed: readQuantity(transaction["gasUsed"], "gasUsed"),
    gasPriceAtoken: readQuantity(transaction["gasPrice"], "gasPrice"),
    nonce: readQuantity(transaction["nonce"], "nonce"),
    input,
    inputSizeBytes: inputSizeBytes ?? (input.length - 2) / 2,
    changes: parseChanges(transaction["changes"], "changes"),
    logs: readList(transaction["logs"], "logs").map(parseLog),
  };
}

function parseCosmos(value: unknown): JournaledTransaction {
  const transaction = readObject(value, "cosmos transaction");
  const status = readSafeQuantity(transaction["status"], "status");
  if (status !== 0 && status !== 1) throw badAnswer("status is neither 0 nor 1");
  return {
    hash: readHash(transaction["hash"], "hash"),
    index: readCount(transaction["index"], "index"),
    status,
    from: readAddress(transaction["from"], "from"),
    to: undefined,
    contractAddress: undefined,
    gasUsed: readQuantity(transaction["gasUsed"], "gasUsed"),
    gasPriceAtoken: 0n,
    nonce: readQuantity(transaction["nonce"], "nonce"),
    input: "0x",
    inputSizeBytes: 0,
    changes: parseChanges(transaction["changes"], "changes"),
    logs: [],
    cosmos: {
      gasLimit: readQuantity(transaction["gas"], "gas"),
      feeAtoken: readQuantity(transaction["fee"], "fee"),
      memo: cleanForeignText(readString(transaction["memo"], "memo"), MAX_MEMO),
      messages: readList(transaction["messages"], "messages").map((item) =>
        readString(item, "message"),
      ),
      dataIndex: readCount(transaction["dataIndex"], "dataIndex"),
    },
  };
}

/** Characters of a memo (x/auth `MaxMemoCharacters`). */
export const MAX_MEMO = 256;

/** Untrusted log. Throws BAD_ANSWER. */
export function parseLog(value: unknown): JournaledLog {
  const log = readObject(value, "log");
  const topics = readList(log["topics"], "topics").map((topic) => readHash(topic, "topic"));
  if (topics.length > MAX_TOPICS) throw badAnswer("a log has more than 4 topics");
  const address = readAddress(log["address"], "address");
  const data = readHex(log["data"], "data");
  const leftOutBytes = readOptional(log["dataBytes"], "dataBytes", readCount);
  // Two forms of two shapes: what is spread costs more than all the rest of a log.
  return leftOutBytes === undefined
    ? { address, topics, data }
    : { address, topics, data, leftOutBytes };
}

function parseChanges(value: unknown, name: string): BalanceChange[] {
  return readList(value, name).map(parseChange);
}

function parseChange(value: unknown): BalanceChange {
  const change = readObject(value, "change");
  const error = readOptional(change["error"], "error", readString);
  const whole = {
    reason: readWord(BALANCE_REASONS, change["reason"], "reason"),
    from: readOptional(change["from"], "from", readAddress),
    to: readOptional(change["to"], "to", readAddress),
    amountAtoken: readQuantity(change["amount"], "amount"),
    effective: readBoolean(change["effective"], "effective"),
    tracePath: readOptional(change["tracePath"], "tracePath", readString),
  };
  // A node of an older release gives the whole text.
  return error === undefined ? whole : { ...whole, error: changeError(error) };
}

function parseEntry(value: unknown): AccountJournalEntry {
  const entry = readObject(value, "entry");
  return {
    height: readSafeQuantity(entry["blockNumber"], "blockNumber"),
    blockHash: readHash(entry["blockHash"], "blockHash"),
    transactionHash: readOptional(entry["transactionHash"], "transactionHash", readHash),
    transactionIndex: readCount(entry["transactionIndex"], "transactionIndex"),
    operationIndex: readCount(entry["operationIndex"], "operationIndex"),
    deltaAtoken: readDecimal(entry["delta"], "delta"),
    change: parseChange(entry["change"]),
  };
}
