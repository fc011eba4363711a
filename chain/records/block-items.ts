/**
 * RLP of what blocks are made of: header, transaction, receipt, balance changes; and of all
 * receipts of a block, as snapshots carry them. How a block is stored is in `block-records.ts`.
 */
import type { Address } from "../address.js";
import { BALANCE_REASONS, type BalanceChange, changeError } from "../balance-change.js";
import type { BlockHeader, BlockTransaction } from "../block.js";
import type { Hash32 } from "../hex.js";
import {
  BLOOM_BYTES,
  EMPTY_BLOOM,
  encodeLogs,
  type Log,
  logsToBloom,
  MAX_TOPICS,
  type Receipt,
} from "../receipt.js";
import { encodeRlp, type RlpInput } from "../encoding/rlp-writer.js";
import { readRlp, type RlpReader } from "../encoding/rlp-reader.js";
import { decodeTransaction, type TransactionType } from "../transaction.js";
import { ChainError } from "../errors.js";

const NOTHING = new Uint8Array(0);

/** Bytes of a position in a bloom. */
const POSITION_BYTES = 2;

/** A bloom with more bits is kept as it is: 256 bytes are shorter then. */
const MAX_POSITIONS = BLOOM_BYTES / POSITION_BYTES - 1;

/** An address of 20 bytes. Throws INVALID_RLP. */
export function readAddress(reader: RlpReader): Address {
  return reader.hex(20) as Address;
}

/** The same; undefined where there are no bytes. Throws INVALID_RLP. */
function readOptionalAddress(reader: RlpReader): Address | undefined {
  return reader.optionalHex(20) as Address | undefined;
}

/** A hash of 32 bytes. Throws INVALID_RLP. */
export function readHash(reader: RlpReader): Hash32 {
  return reader.hex(32) as Hash32;
}

/** Fields of a header in the order of the stored form. */
export function headerItem(header: BlockHeader): RlpInput {
  return [
    header.parentHash,
    header.coinbase,
    header.stateRoot,
    header.transactionsRoot,
    header.receiptsRoot,
    header.logsBloom,
    header.height,
    header.gasLimit,
    header.gasUsed,
    header.timestampSeconds,
    header.moduleRoot,
    header.mixHash,
  ];
}

/** A transaction with its sender, which nobody has to recover again. */
export function transactionItem({ tx, from }: BlockTransaction): RlpInput {
  return [tx.raw, from];
}

/** Reads a transaction of a block, whose hash may be known. */
export function readTransaction(reader: RlpReader, hash?: Hash32): BlockTransaction {
  return reader.list(() => ({
    tx: decodeTransaction(reader.bytes(), hash),
    from: readAddress(reader),
  }));
}

/** Reads a header. */
export function readHeader(reader: RlpReader): BlockHeader {
  return reader.list(() => ({
    parentHash: readHash(reader),
    coinbase: readAddress(reader),
    stateRoot: readHash(reader),
    transactionsRoot: readHash(reader),
    receiptsRoot: readHash(reader),
    logsBloom: reader.bytes(),
    height: reader.number(),
    gasLimit: reader.integer(),
    gasUsed: reader.integer(),
    timestampSeconds: reader.number(),
    moduleRoot: readHash(reader),
    mixHash: readHash(reader),
  }));
}

/** All receipts of a block; blooms are left out, they follow from the logs. */
export function encodeReceipts(receipts: readonly Receipt[]): Uint8Array {
  return encodeRlp(receipts.map(receiptFields));
}

/** Fields of a receipt without its bloom. */
export function receiptFields(receipt: Receipt): RlpInput[] {
  return [
    receipt.type,
    receipt.status,
    receipt.gasUsed,
    receipt.cumulativeGasUsed,
    receipt.effectiveGasPriceAtoken,
    receipt.contractAddress ?? NOTHING,
    encodeLogs(receipt.logs),
  ];
}

/** Reads a log. */
export function readLog(reader: RlpReader): Log {
  return reader.list(() => ({
    address: readAddress(reader),
    topics: reader.items(readHash, MAX_TOPICS),
    data: reader.bytes(),
  }));
}

/**
 * Reads all receipts of a block, whose blooms follow from their logs.
 * @param bounds how many receipts there may be, and how many logs in all of them
 * @throws INVALID_RLP
 */
export function decodeReceipts(
  bytes: Uint8Array,
  bounds: { readonly receipts: number; readonly logs: number },
): Receipt[] {
  let logsLeft = bounds.logs;
  const logsOf = (reader: RlpReader) => {
    const logs = reader.items(readLog, logsLeft);
    logsLeft -= logs.length;
    return logs;
  };
  const readReceipt = (reader: RlpReader) =>
    reader.list(() => readReceiptFields(reader, logsToBloom, logsOf));
  return readRlp(bytes, (all) => all.items(readReceipt, bounds.receipts));
}

/** Reads a receipt's logs, all of them. */
export function readLogs(reader: RlpReader): readonly Log[] {
  return reader.items(readLog);
}

/**
 * Reads a receipt's fields, of the list that is being read.
 * @param bloomOf gives the bloom that is not among them, when somebody asks for it
 * @param logsOf reads its logs
 */
export function readReceiptFields(
  reader: RlpReader,
  bloomOf: (logs: readonly Log[]) => Uint8Array,
  logsOf = readLogs,
): Receipt {
  const type = reader.number() as TransactionType;
  const status = reader.number() === 1 ? 1 : 0;
  const gasUsed = reader.integer();
  const cumulativeGasUsed = reader.integer();
  const effectiveGasPriceAtoken = reader.integer();
  const contractAddress = readOptionalAddress(reader);
  const logs = logsOf(reader);
  let bloom: Uint8Array | undefined;
  return {
    type,
    status,
    gasUsed,
    cumulativeGasUsed,
    effectiveGasPriceAtoken,
    contractAddress,
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
    BALANCE_REASONS.indexOf(change.reason),
    change.from ?? NOTHING,
    change.to ?? NOTHING,
    change.amountAtoken,
    change.effective ? 1 : 0,
    path === undefined ? NOTHING : pathBytes(path),
    change.error === undefined ? NOTHING : Buffer.from(change.error, "utf8"),
  ];
}

/** A transfer has one change with the outermost path and none with another. */
const OUTERMOST = Buffer.from("/", "ascii");

function pathBytes(path: string): Uint8Array {
  return path === "" ? OUTERMOST : Buffer.from(`/${path}`, "ascii");
}

/** Bytes of the largest amount that a message can name, of 78 digits: one more than a word. */
const MOST_AMOUNT_BYTES = 33;

/** Reads a balance change. Throws INVALID_RLP for a reason that there is not. */
export function readChange(reader: RlpReader): BalanceChange {
  return reader.list(readChangeFields);
}

function readChangeFields(reader: RlpReader): BalanceChange {
  const reason = BALANCE_REASONS[reader.number()];
  if (reason === undefined) throw new ChainError("INVALID_RLP", "unknown balance reason");
  const from = readOptionalAddress(reader);
  const to = readOptionalAddress(reader);
  const amountAtoken = reader.integer(MOST_AMOUNT_BYTES);
  const effective = reader.number() === 1;
  const path = reader.text("ascii");
  const error = reader.text("utf8");
  const tracePath = path === "" ? undefined : path.slice(1);
  // Older releases stored the whole text; what is read is what newer ones would have stored.
  return error === ""
    ? { reason, from, to, amountAtoken, effective, tracePath }
    : { reason, from, to, amountAtoken, effective, tracePath, error: changeError(error) };
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

/** What `packBloom` packed. Throws INVALID_RLP. */
export function unpackBloom(packed: Uint8Array): Uint8Array {
  if (packed.length === 0) return EMPTY_BLOOM;
  if (packed.length === BLOOM_BYTES) return packed;
  const bloom = new Uint8Array(BLOOM_BYTES);
  for (let at = 0; at + 1 < packed.length; at += POSITION_BYTES) {
    const position = ((packed[at] ?? 0) << 8) | (packed[at + 1] ?? 0);
    const byte = position >> 3;
    if (byte >= BLOOM_BYTES) throw new ChainError("INVALID_RLP", "a bloom has a bit too far");
    bloom[byte] = (bloom[byte] ?? 0) | (1 << (position & 7));
  }
  return bloom;
}
