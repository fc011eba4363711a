/**
 * RLP of what blocks are made of: header, transaction, receipt, balance changes; and of all
 * receipts of a block, as snapshots carry them. How a block is stored is in `block-records.ts`.
 */
import { addressToBytes, bytesToAddress } from "../../chain/address.js";
import { BALANCE_REASONS, type BalanceChange } from "../../chain/balance-change.js";
import type { BlockHeader, BlockTransaction } from "../../chain/block.js";
import { bigintToBytes, bytesToHash32, type Hash32, hexToBytes } from "../../chain/hex.js";
import {
  BLOOM_BYTES,
  EMPTY_BLOOM,
  encodeLogs,
  type Log,
  logsToBloom,
  type Receipt,
} from "../../chain/receipt.js";
import {
  decodeRlp,
  encodeRlp,
  type RlpInput,
  type RlpItem,
  rlpBytes,
  rlpInteger,
  rlpList,
} from "../../chain/encoding/rlp.js";
import { decodeTransaction, type TransactionType } from "../../chain/transaction.js";
import { StoreError } from "./database.js";

const NOTHING = new Uint8Array(0);

/** Bytes of a position in a bloom. */
const POSITION_BYTES = 2;

/** A bloom with more bits is kept as it is: 256 bytes are shorter then. */
const MAX_POSITIONS = BLOOM_BYTES / POSITION_BYTES - 1;

/** One array for each of the small numbers, of which a block has tens of thousands. */
const SMALL = Array.from({ length: 16 }, (_, value) => bigintToBytes(BigInt(value)));

/** A number without leading zeros. */
export function integer(value: number | bigint): Uint8Array {
  return (value < 16 ? SMALL[Number(value)] : undefined) ?? bigintToBytes(BigInt(value));
}

/** A number below 2^53. Throws INVALID_RLP. */
export function safeInteger(item: RlpItem | undefined): number {
  return Number(rlpInteger(item, 7));
}

/** Fields of a header in the order of the stored form. */
export function headerItem(header: BlockHeader): RlpInput {
  return [
    hexToBytes(header.parentHash),
    addressToBytes(header.coinbase),
    hexToBytes(header.stateRoot),
    hexToBytes(header.transactionsRoot),
    hexToBytes(header.receiptsRoot),
    header.logsBloom,
    integer(header.height),
    integer(header.gasLimit),
    integer(header.gasUsed),
    integer(header.timestampSeconds),
    hexToBytes(header.moduleRoot),
    hexToBytes(header.mixHash),
  ];
}

/** A transaction with its sender, which nobody has to recover again. */
export function transactionItem({ tx, from }: BlockTransaction): RlpInput {
  return [tx.raw, addressToBytes(from)];
}

/** Reads a transaction of a block, whose hash may be known. */
export function decodeTransactionItem(item: RlpItem | undefined, hash?: Hash32): BlockTransaction {
  const [raw, from] = rlpList(item);
  return { tx: decodeTransaction(rlpBytes(raw), hash), from: bytesToAddress(rlpBytes(from)) };
}

/** Reads a header. */
export function decodeHeader(item: RlpItem | undefined): BlockHeader {
  const fields = rlpList(item);
  const hash = (index: number) => bytesToHash32(rlpBytes(fields[index]));
  return {
    parentHash: hash(0),
    coinbase: bytesToAddress(rlpBytes(fields[1])),
    stateRoot: hash(2),
    transactionsRoot: hash(3),
    receiptsRoot: hash(4),
    logsBloom: rlpBytes(fields[5]),
    height: safeInteger(fields[6]),
    gasLimit: rlpInteger(fields[7]),
    gasUsed: rlpInteger(fields[8]),
    timestampSeconds: safeInteger(fields[9]),
    moduleRoot: hash(10),
    mixHash: hash(11),
  };
}

/** All receipts of a block; blooms are left out, they follow from the logs. */
export function encodeReceipts(receipts: readonly Receipt[]): Uint8Array {
  return encodeRlp(receipts.map(receiptFields));
}

/** Fields of a receipt without its bloom. */
export function receiptFields(receipt: Receipt): RlpInput[] {
  return [
    integer(receipt.type),
    integer(receipt.status),
    integer(receipt.gasUsed),
    integer(receipt.cumulativeGasUsed),
    integer(receipt.effectiveGasPriceAtoken),
    receipt.contractAddress === undefined ? NOTHING : addressToBytes(receipt.contractAddress),
    encodeLogs(receipt.logs),
  ];
}

/** Reads a log. */
export function decodeLog(item: RlpItem): Log {
  const [address, topics, data] = rlpList(item);
  return {
    address: bytesToAddress(rlpBytes(address)),
    topics: rlpList(topics).map((topic) => bytesToHash32(rlpBytes(topic))),
    data: rlpBytes(data),
  };
}

/** Reads all receipts of a block and works out their blooms. */
export function decodeReceipts(bytes: Uint8Array): Receipt[] {
  return rlpList(decodeRlp(bytes)).map((item) => decodeReceipt(rlpList(item), logsToBloom));
}

/** Reads a receipt's fields; `bloomOf` gives the bloom that is not among them, when somebody asks for it. */
export function decodeReceipt(
  fields: readonly RlpItem[],
  bloomOf: (logs: readonly Log[]) => Uint8Array,
): Receipt {
  const [type, status, gasUsed, cumulative, price, contract, logItems] = fields;
  const logs = rlpList(logItems).map(decodeLog);
  const contractBytes = rlpBytes(contract);
  let bloom: Uint8Array | undefined;
  return {
    type: safeInteger(type) as TransactionType,
    status: rlpInteger(status) === 1n ? 1 : 0,
    gasUsed: rlpInteger(gasUsed),
    cumulativeGasUsed: rlpInteger(cumulative),
    effectiveGasPriceAtoken: rlpInteger(price),
    contractAddress: contractBytes.length === 0 ? undefined : bytesToAddress(contractBytes),
    logs,
    get logsBloom() {
      return (bloom ??= bloomOf(logs));
    },
  };
}

/** An absent trace path is no bytes; a present one is prefixed, so that "" can be told apart. */
export function changeItem(change: BalanceChange): RlpInput {
  const path = change.tracePath;
  return [
    integer(BALANCE_REASONS.indexOf(change.reason)),
    change.from === undefined ? NOTHING : addressToBytes(change.from),
    change.to === undefined ? NOTHING : addressToBytes(change.to),
    integer(change.amountAtoken),
    integer(change.effective ? 1 : 0),
    path === undefined ? NOTHING : pathBytes(path),
    change.error === undefined ? NOTHING : Buffer.from(change.error, "utf8"),
  ];
}

/** A transfer has one change with the outermost path and none with another. */
const OUTERMOST = Buffer.from("/", "ascii");

function pathBytes(path: string): Uint8Array {
  return path === "" ? OUTERMOST : Buffer.from(`/${path}`, "ascii");
}

/** Reads a balance change. Throws STORE_CORRUPT for a reason that there is not. */
export function decodeChange(item: RlpItem): BalanceChange {
  const [reasonItem, from, to, amount, effective, pathItem, errorItem] = rlpList(item);
  const reason = BALANCE_REASONS[safeInteger(reasonItem)];
  if (reason === undefined) throw new StoreError("STORE_CORRUPT", "unknown balance reason");
  const address = (bytes: Uint8Array) => (bytes.length === 0 ? undefined : bytesToAddress(bytes));
  const path = textOf(rlpBytes(pathItem), "ascii");
  const error = textOf(rlpBytes(errorItem), "utf8");
  const change = {
    reason,
    from: address(rlpBytes(from)),
    to: address(rlpBytes(to)),
    amountAtoken: rlpInteger(amount),
    effective: rlpInteger(effective) === 1n,
    tracePath: path === "" ? undefined : path.slice(1),
  };
  return error === "" ? change : { ...change, error };
}

/** Text of a change. Most have the outermost path or none, and no error. */
function textOf(bytes: Uint8Array, encoding: "ascii" | "utf8"): string {
  if (bytes.length === 0) return "";
  if (bytes.length === 1 && bytes[0] === OUTERMOST[0]) return "/";
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(encoding);
}

/** The bits of a receipt's bloom that are set, two bytes each; a log of a transfer sets twelve of 2,048. */
export function packBloom({ logs, logsBloom }: Receipt): Uint8Array {
  if (logs.length === 0) return NOTHING;
  const positions: number[] = [];
  for (let at = 0; at < BLOOM_BYTES; at++) {
    const byte = logsBloom[at] ?? 0;
    for (let bit = 0; byte >> bit !== 0; bit++) {
      if (((byte >> bit) & 1) === 1) positions.push(at * 8 + bit);
    }
  }
  if (positions.length > MAX_POSITIONS) return logsBloom;
  const packed = Buffer.allocUnsafe(positions.length * POSITION_BYTES);
  for (const [item, position] of positions.entries()) packed.writeUInt16BE(position, item * 2);
  return packed;
}

/** What `packBloom` packed. Throws STORE_CORRUPT. */
export function unpackBloom(packed: Uint8Array): Uint8Array {
  if (packed.length === 0) return EMPTY_BLOOM;
  if (packed.length === BLOOM_BYTES) return packed;
  const bloom = new Uint8Array(BLOOM_BYTES);
  for (let at = 0; at + 1 < packed.length; at += POSITION_BYTES) {
    const position = ((packed[at] ?? 0) << 8) | (packed[at + 1] ?? 0);
    const byte = position >> 3;
    if (byte >= BLOOM_BYTES) throw new StoreError("STORE_CORRUPT", "a bloom has a bit too far");
    bloom[byte] = (bloom[byte] ?? 0) | (1 << (position & 7));
  }
  return bloom;
}
