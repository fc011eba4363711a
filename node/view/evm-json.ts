/**
 * Blocks, transactions, receipts and logs as JSON text in the shapes of execution-apis. Built by
 * joining strings: all values are hex, and this is four times as fast as JSON.stringify.
 * No base fee, blob or withdrawal fields: the chain has none, and clients choose legacy
 * transactions by their absence (D7).
 */
import type { Address } from "../../chain/address.js";
import {
  type Block,
  type BlockHeader,
  type BlockOutline,
  blockSizeBytes,
  type BlockTransaction,
  EMPTY_UNCLES_HASH,
  encodeHeader,
} from "../../chain/block.js";
import { bytesToHex, type Hash32, toQuantity } from "../../chain/hex.js";
import type { Log } from "../../chain/receipt.js";
import { encodeRlp, encodeRlpListOfEncoded } from "../../chain/encoding/rlp-writer.js";
import {
  type AccessListEntry,
  effectiveGasPriceAtoken,
  type SignedTransaction,
} from "../../chain/transaction.js";
import { outlineOf, type PlacedReceipt } from "./block-pages.js";

/** The block that a transaction or log is in, with the repeated texts made once. */
export interface BlockPlace {
  /** `"blockHash":"0x…","blockNumber":"0x…","blockTimestamp":"0x…"`. */
  readonly members: string;
  /** The same without the timestamp, for receipts. */
  readonly receiptMembers: string;
}

/** Texts that say where in the chain something is. */
export function placeOf({ header, hash }: Pick<Block, "header" | "hash">): BlockPlace {
  const number = toQuantity(header.height);
  const receiptMembers = `"blockHash":"${hash}","blockNumber":"${number}"`;
  const timestamp = toQuantity(header.timestampSeconds);
  return { members: `${receiptMembers},"blockTimestamp":"${timestamp}"`, receiptMembers };
}

const NOWHERE = '"blockHash":null,"blockNumber":null,"blockTimestamp":null,"transactionIndex":null';

/** An address as JSON text. */
export function addressOrNull(address: Address | undefined): string {
  return address === undefined ? "null" : `"${address}"`;
}

function accessListJson(list: readonly AccessListEntry[]): string {
  const entries = list.map(
    ({ address, storageKeys }) =>
      `{"address":"${address}","storageKeys":[${storageKeys.map((key) => `"${key}"`).join(",")}]}`,
  );
  return `[${entries.join(",")}]`;
}

function typedMembers(tx: SignedTransaction): string {
  if (tx.type === 0) return "";
  const list = `,"accessList":${accessListJson(tx.accessList)},"yParity":"${toQuantity(tx.v)}"`;
  if (tx.type === 1) return list;
  const maxFee = toQuantity(tx.maxFeePerGasAtoken);
  const tip = toQuantity(tx.maxPriorityFeePerGasAtoken);
  return `${list},"maxFeePerGas":"${maxFee}","maxPriorityFeePerGas":"${tip}"`;
}

function transactionText(tx: SignedTransaction, from: Address, place: string): string {
  return (
    `{${place},"type":"0x${tx.type}","hash":"${tx.hash}","from":"${from}",` +
    `"to":${addressOrNull(tx.to)},"nonce":"${toQuantity(tx.nonce)}",` +
    `"gas":"${toQuantity(tx.gasLimit)}","gasPrice":"${toQuantity(effectiveGasPriceAtoken(tx))}",` +
    `"value":"${toQuantity(tx.valueAtoken)}","input":"${bytesToHex(tx.data)}",` +
    `"chainId":"${toQuantity(tx.chainId)}","v":"${toQuantity(tx.v)}",` +
    `"r":"${toQuantity(tx.r)}","s":"${toQuantity(tx.s)}"${typedMembers(tx)}}`
  );
}

/** A mined transaction (TransactionInfo); `gasPrice` is the price really paid. */
export function minedTransactionJson(
  mined: { readonly tx: SignedTransaction; readonly from: Address },
  place: BlockPlace,
  index: number,
): string {
  const where = `${place.members},"transactionIndex":"${toQuantity(index)}"`;
  return transactionText(mined.tx, mined.from, where);
}

/** A transaction of the pool: the members of its place are null. */
export function pendingTransactionJson(pending: {
  readonly tx: SignedTransaction;
  readonly from: Address;
}): string {
  return transactionText(pending.tx, pending.from, NOWHERE);
}

/** A transaction that still has to be signed; the prices of its own type alone are there. */
export function unsignedTransactionJson(unsigned: {
  readonly tx: SignedTransaction;
  readonly from: Address;
}): string {
  return transactionText(unsigned.tx, unsigned.from, NOWHERE);
}

function headerMembers(header: BlockHeader, hash: Hash32): string {
  return (
    `"number":"${toQuantity(header.height)}","hash":"${hash}",` +
    `"parentHash":"${header.parentHash}","nonce":"0x0000000000000000",` +
    `"mixHash":"${header.mixHash}","sha3Uncles":"${EMPTY_UNCLES_HASH}",` +
    `"logsBloom":"${bytesToHex(header.logsBloom)}",` +
    `"transactionsRoot":"${header.transactionsRoot}","stateRoot":"${header.stateRoot}",` +
    `"receiptsRoot":"${header.receiptsRoot}","miner":"${header.coinbase}","difficulty":"0x0",` +
    `"extraData":"${header.moduleRoot}","gasLimit":"${toQuantity(header.gasLimit)}",` +
    `"gasUsed":"${toQuantity(header.gasUsed)}",` +
    `"timestamp":"${toQuantity(header.timestampSeconds)}"`
  );
}

/** A whole block in memory, with the hashes of its transactions or with the whole transactions. */
export function blockJson(block: Block, full: boolean): string {
  const place = placeOf(block);
  const transactions = block.transactions.map((mined, index) =>
    full ? minedTransactionJson(mined, place, index) : `"${mined.tx.hash}"`,
  );
  return `${blockStartJson(outlineOf({ block }))}${transactions.join(",")}${BLOCK_END}`;
}

/** A header alone: eth_getHeaderBy* and newHeads. */
export function headerJson({ header, hash }: Pick<Block, "header" | "hash">): string {
  return `{${headerMembers(header, hash)}}`;
}

/** A block up to its transactions; these, joined by commas, and BLOCK_END follow. */
export function blockStartJson(outline: BlockOutline): string {
  const size = toQuantity(blockSizeBytes(outline));
  return `{${headerMembers(outline.header, outline.hash)},"size":"${size}","transactions":[`;
}

/** What ends a block behind its transactions. */
export const BLOCK_END = '],"uncles":[]}';

/** rlp([header, transactions, uncles]) for debug_getRawBlock. */
export function encodeRawBlock(block: Pick<Block, "header" | "transactions">): Uint8Array {
  const transactions = block.transactions.map(({ tx }) =>
    tx.type === 0 ? tx.raw : encodeRlp(tx.raw),
  );
  return encodeRlpListOfEncoded([
    encodeHeader(block.header),
    encodeRlpListOfEncoded(transactions),
    encodeRlp([]),
  ]);
}

/** One log; `logIndex` counts within the block. Nothing is ever removed (D10). */
export function logJson(
  log: Log,
  at: {
    readonly place: BlockPlace;
    readonly transactionHash: Hash32;
    readonly transactionIndex: number;
    readonly logIndex: number;
  },
): string {
  const topics = log.topics.map((topic) => `"${topic}"`).join(",");
  return (
    `{"address":"${log.address}","topics":[${topics}],"data":"${bytesToHex(log.data)}",` +
    `${at.place.members},"transactionHash":"${at.transactionHash}",` +
    `"transactionIndex":"${toQuantity(at.transactionIndex)}",` +
    `"logIndex":"${toQuantity(at.logIndex)}","removed":false}`
  );
}

/** A mined transaction's place. */
interface TransactionPlace {
  readonly place: BlockPlace;
  readonly index: number;
}

/** Logs whose texts are made at a stretch: a millisecond. */
const LOGS_AT_ONCE = 256;

/** A mined transaction, what came of it, and where it is. */
export interface MinedReceipt {
  readonly mined: BlockTransaction;
  readonly placed: PlacedReceipt;
  readonly at: TransactionPlace;
}

/**
 * A receipt (ReceiptInfo) of a mined transaction, in pieces: one may have tens of thousands of logs.
 */
export function* receiptTexts(
  mined: BlockTransaction,
  placed: PlacedReceipt,
  at: TransactionPlace,
): Generator<string, void> {
  yield receiptStartJson(mined, placed, at);
  yield* logTexts(mined, placed, at);
  yield `,"logsBloom":"${bytesToHex(placed.receipt.logsBloom)}"}`;
}

/** The logs of a receipt as a list, in pieces. */
export function* logTexts(
  { tx }: BlockTransaction,
  { receipt: { logs }, firstLogIndex }: PlacedReceipt,
  at: TransactionPlace,
): Generator<string, void> {
  const own = { place: at.place, transactionHash: tx.hash, transactionIndex: at.index };
  yield "[";
  for (let start = 0; start < logs.length; start += LOGS_AT_ONCE) {
    const texts = logs
      .slice(start, start + LOGS_AT_ONCE)
      .map((log, item) => logJson(log, { ...own, logIndex: firstLogIndex + start + item }));
    yield `${start === 0 ? "" : ","}${texts.join(",")}`;
  }
  yield "]";
}

/** A receipt up to its logs. */
function receiptStartJson(
  { tx, from }: BlockTransaction,
  { receipt }: PlacedReceipt,
  at: TransactionPlace,
): string {
  return (
    `{"type":"0x${receipt.type}","status":"0x${receipt.status}","transactionHash":"${tx.hash}",` +
    `"transactionIndex":"${toQuantity(at.index)}",${at.place.receiptMembers},"from":"${from}",` +
    `"to":${addressOrNull(tx.to)},"cumulativeGasUsed":"${toQuantity(receipt.cumulativeGasUsed)}",` +
    `"gasUsed":"${toQuantity(receipt.gasUsed)}",` +
    `"effectiveGasPrice":"${toQuantity(receipt.effectiveGasPriceAtoken)}",` +
    `"contractAddress":${addressOrNull(receipt.contractAddress)},"logs":`
  );
}
