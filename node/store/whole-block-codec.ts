/**
 * RLP of a whole block in one piece, as snapshots carry it: nothing in it that no hash proves. Of
 * Cosmos transactions the logs, events and balance changes are left out.
 */
import { type Block, hashHeader } from "../../chain/block.js";
import type { MinedCosmosTransaction } from "../../chain/cosmos/cosmos-result.js";
import { bytesToHash32, hexToBytes } from "../../chain/hex.js";
import {
  decodeRlp,
  encodeRlp,
  type RlpInput,
  rlpBytes,
  rlpList,
} from "../../chain/encoding/rlp.js";
import {
  decodeHeader,
  decodeTransactionItem,
  headerItem,
  integer,
  safeInteger,
  transactionItem,
} from "./block-codec.js";
import { cosmosItem, decodeCosmosItem } from "./cosmos-codec.js";

/** A Cosmos transaction without what no hash proves. */
export function provableCosmosItem(mined: MinedCosmosTransaction): RlpInput {
  return cosmosItem(withoutUnproven(mined));
}

/** The transaction as a snapshot has it. */
function withoutUnproven(mined: MinedCosmosTransaction): MinedCosmosTransaction {
  return { ...mined, changes: [], result: { ...mined.result, codespace: "", log: "", events: [] } };
}

/** A whole block. */
export function encodeBlock(block: Block): Uint8Array {
  const { cosmos = [] } = block;
  return encodeRlp([
    headerItem(block.header),
    integer(block.timeMs),
    hexToBytes(block.dataHash),
    block.transactions.map(transactionItem),
    ...(cosmos.length === 0 ? [] : [cosmos.map(provableCosmosItem)]),
  ]);
}

/** Reads a whole block; the hash is computed again from the header. */
export function decodeBlock(bytes: Uint8Array): Block {
  const [headerFields, timeMs, dataHash, transactions, cosmos] = rlpList(decodeRlp(bytes));
  const header = decodeHeader(headerFields);
  return {
    header,
    hash: hashHeader(header),
    timeMs: safeInteger(timeMs),
    dataHash: bytesToHash32(rlpBytes(dataHash)),
    transactions: rlpList(transactions).map((item) => decodeTransactionItem(item)),
    ...(cosmos === undefined ? {} : { cosmos: rlpList(cosmos).map(decodeCosmosItem) }),
  };
}
