/**
 * Blocks, transactions, receipts and logs as JSON text in the shapes of execution-apis. Built by
 * joining strings: all values are hex, and this is four times as fast as JSON.stringify.
 * No base fee, blob or withdrawal fields: the chain has none, and clients choose legacy
 * transactions by their absence (D7).
 */
import type { Address } from "../../../chain/address.js";
import {
  type Block,
  type BlockHeader,
  EMPTY_UNCLES_HASH,
  encodeHeader,
} from "../../../chain/block.js";
import { bytesToHex, type Hash32, toQuantity } from "../../../chain/hex.js";
import type { Log, Receipt } from "../../../chain/receipt.js";
import { encodeRlp, encodeRlpListOfEncoded } from "../../../chain/rlp.js";
import {
  type AccessListEntry,
  effectiveGasPriceAtoken,
  type SignedTransaction,
} from "../../../chain/transaction.js";
import type { CommittedBlock } from "../../event-bus.js";

/** The block that a transaction or log is in, with the repeated texts made once. */
export interface BlockPlace {
  /** `"blockHash":"0x…","blockNumber":"0x…","blockTimestamp":"0x…"`. */
  readonly members: string;
  /** The same without the timestamp, for receipts. */
  readonly receiptMembers: string;
}

/** Texts that say where in the chain something is. */
export function placeOf(block: Block): BlockPlace {
  const number = toQuantity(block.header.height);
  const receiptMembers = `"blockHash":"${block.hash}","blockNumber":"${number}"`;
  const timestamp = toQuantity(block.header.timestampSeconds);
  return { members: `${receiptMembers},"blockTimestamp":"${timestamp}"`, receiptMembers };
}

const NOWHERE = '"blockHash":null,"blockNumber":null,"blockTimestamp":null,"transactionIndex":null';

function addressOrNull(address: Address | undefined): string {
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

/** A header alone: eth_getHeaderBy* and newHeads. */
export function headerJson(block: Block): string {
  return `{${headerMembers(block.header, block.hash)}}`;
}

/** Block with the hashes of its transactions, or with the whole transactions. */
export function blockJson(block: Block, full: boolean): string {
  const place = placeOf(block);
  const transactions = block.transactions.map((mined, index) =>
    full ? minedTransactionJson(mined, place, index) : `"${mined.tx.hash}"`,
  );
  return (
    `{${headerMembers(block.header, block.hash)},"size":"${toQuantity(blockSizeBytes(block))}",` +
    `"transactions":[${transactions.join(",")}],"uncles":[]}`
  );
}

function rlpListSize(payload: number): number {
  if (payload < 56) return payload + 1;
  return payload + 1 + Math.ceil(payload.toString(16).length / 2);
}

/** Length of rlp([header, transactions, uncles]), computed without encoding the block. */
export function blockSizeBytes(block: Block): number {
  let payload = 0;
  for (const { tx } of block.transactions) {
    // A typed envelope is a byte string inside the list; a legacy one is a list itself.
    payload += tx.type === 0 ? tx.raw.length : rlpListSize(tx.raw.length);
  }
  return rlpListSize(encodeHeader(block.header).length + rlpListSize(payload) + 1);
}

/** rlp([header, transactions, uncles]) for debug_getRawBlock. */
export function encodeRawBlock(block: Block): Uint8Array {
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

/** A receipt (ReceiptInfo). `firstLogIndex` is the count of logs before it in the block. */
export function receiptJson(
  committed: CommittedBlock,
  receipt: Receipt,
  at: { readonly place: BlockPlace; readonly index: number; readonly firstLogIndex: number },
): string {
  const mined = committed.block.transactions[at.index];
  if (mined === undefined) throw new Error(`block has no transaction ${at.index}`);
  const { tx, from } = mined;
  const logs = receipt.logs.map((log, position) =>
    logJson(log, {
      place: at.place,
      transactionHash: tx.hash,
      transactionIndex: at.index,
      logIndex: at.firstLogIndex + position,
    }),
  );
  return (
    `{"type":"0x${receipt.type}","status":"0x${receipt.status}","transactionHash":"${tx.hash}",` +
    `"transactionIndex":"${toQuantity(at.index)}",${at.place.receiptMembers},"from":"${from}",` +
    `"to":${addressOrNull(tx.to)},"cumulativeGasUsed":"${toQuantity(receipt.cumulativeGasUsed)}",` +
    `"gasUsed":"${toQuantity(receipt.gasUsed)}",` +
    `"effectiveGasPrice":"${toQuantity(receipt.effectiveGasPriceAtoken)}",` +
    `"contractAddress":${addressOrNull(receipt.contractAddress)},"logs":[${logs.join(",")}],` +
    `"logsBloom":"${bytesToHex(receipt.logsBloom)}"}`
  );
}
