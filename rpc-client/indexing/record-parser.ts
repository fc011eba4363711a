/** Blocks of a range that a node gave as its records, to what JSON would have told of them. */
import { blockSizeBytes } from "../../chain/block.js";
import { sdkTransactionHash } from "../../chain/consensus/sdk-transaction.js";
import type { MinedCosmosTransaction } from "../../chain/cosmos/cosmos-result.js";
import { cleanForeignText } from "../../chain/evm/foreign-text.js";
import { errorMessage } from "../../chain/errors.js";
import { bytesToHex } from "../../chain/hex.js";
import type { Log } from "../../chain/receipt.js";
import {
  type BlockRecordBytes,
  type PageRecordBytes,
  recordedBlockSteps,
  type RecordedBlock,
  type RecordedTransaction,
} from "../../chain/records/block-records.js";
import { mapInSteps, type Steps } from "../../chain/steps/steps.js";
import { readList, readObject, readString } from "../answer-fields.js";
import { badAnswer } from "../errors.js";
import { type JournaledLog, MAX_MEMO } from "../journal-codec.js";
import type { RangedBlock, RangedTransaction } from "./ranged-block.js";

/** Untrusted records of a block, in steps. Throws BAD_ANSWER. */
export function* recordSteps(value: unknown): Steps<RangedBlock> {
  const bytes = recordBytes(value);
  try {
    return yield* rangedBlockSteps(yield* recordedBlockSteps(bytes));
  } catch (error) {
    throw badAnswer(`records of a block: ${errorMessage(error)}`, error);
  }
}

function recordBytes(value: unknown): BlockRecordBytes {
  const block = readObject(value, "records of a block");
  return {
    outline: readBytes(block["outline"]),
    changes: readBytes(block["changes"]),
    cosmos: readList(block["cosmos"], "cosmos").map(readBytes),
    pages: readList(block["pages"], "pages").map(readPage),
  };
}

function readBytes(value: unknown): Uint8Array {
  return Buffer.from(readString(value, "record"), "base64");
}

function readPage(value: unknown): PageRecordBytes {
  const [hashes, transactions, receipts, journal] = readList(value, "page").map(readBytes);
  if (hashes === undefined || transactions === undefined) throw badAnswer("a page is cut short");
  if (receipts === undefined || journal === undefined) throw badAnswer("a page is cut short");
  return [hashes, transactions, receipts, journal];
}

function* rangedBlockSteps(block: RecordedBlock): Steps<RangedBlock> {
  const { outline, cosmos, changes } = block;
  const { header, hash, timeMs, transactionCount } = outline;
  const transactions = yield* mapInSteps(block.transactions.entries(), rangedTransaction);
  return {
    hash,
    height: header.height,
    parentHash: header.parentHash,
    timestampMs: timeMs,
    transactions: [
      ...transactions,
      ...cosmos.map((one, item) => rangedCosmos(one, transactionCount + item)),
    ],
    blockChanges: changes.blockChanges,
    mintedAtoken: changes.mintedAtoken,
    burnedAtoken: changes.burnedAtoken,
    claims: [],
    proposer: header.coinbase,
    gasUsed: header.gasUsed,
    gasLimit: header.gasLimit,
    sizeBytes: blockSizeBytes(outline),
  };
}

function rangedTransaction([index, { mined, receipt, changes }]: readonly [
  number,
  RecordedTransaction,
]): RangedTransaction {
  const { tx, from } = mined;
  return {
    hash: tx.hash,
    index,
    status: receipt.status,
    from,
    to: tx.to,
    contractAddress: receipt.contractAddress,
    gasUsed: receipt.gasUsed,
    gasPriceAtoken: receipt.effectiveGasPriceAtoken,
    nonce: tx.nonce,
    input: bytesToHex(tx.data),
    inputSizeBytes: tx.data.length,
    changes,
    logs: receipt.logs.map(journaledLog),
    valueAtoken: tx.valueAtoken,
    gasLimit: tx.gasLimit,
    type: tx.type,
    sdkHash: sdkTransactionHash(tx, from),
  };
}

function journaledLog({ address, topics, data }: Log): JournaledLog {
  return { address, topics, data: bytesToHex(data) };
}

/** As `parseCosmos` reads it from JSON. */
function rangedCosmos(
  { tx, from, index: dataIndex, result, changes }: MinedCosmosTransaction,
  index: number,
): RangedTransaction {
  return {
    hash: tx.hash,
    index,
    status: result.code === 0 ? 1 : 0,
    from,
    to: undefined,
    contractAddress: undefined,
    gasUsed: result.gasUsed,
    gasPriceAtoken: 0n,
    nonce: tx.nonce,
    input: "0x",
    inputSizeBytes: 0,
    changes,
    logs: [],
    cosmos: {
      gasLimit: tx.gasLimit,
      feeAtoken: tx.feeAtoken,
      memo: cleanForeignText(tx.memo, MAX_MEMO),
      messages: tx.messages.map(({ typeUrl }) => typeUrl),
      dataIndex,
    },
    valueAtoken: 0n,
    gasLimit: tx.gasLimit,
    type: undefined,
    sdkHash: tx.hash,
  };
}
