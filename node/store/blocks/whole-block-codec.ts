/**
 * RLP of a whole block in one piece, as snapshots carry it: nothing in it that no hash proves. Of
 * Cosmos transactions the logs, events and balance changes are left out.
 */
import { type Block, hashHeader } from "../../../chain/block.js";
import type { MinedCosmosTransaction } from "../../../chain/cosmos/cosmos-result.js";

import { encodeRlp, type RlpInput } from "../../../chain/encoding/rlp-writer.js";
import { readRlp } from "../../../chain/encoding/rlp-reader.js";
import {
  headerItem,
  readHash,
  readHeader,
  readTransaction,
  transactionItem,
} from "../../../chain/records/block-items.js";
import { cosmosItem, readCosmosTransaction } from "../../../chain/records/cosmos-items.js";

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
    block.timeMs,
    block.dataHash,
    block.transactions.map(transactionItem),
    ...(cosmos.length === 0 ? [] : [cosmos.map(provableCosmosItem)]),
  ]);
}

/** Reads a whole block; the hash is computed again from the header. */
export function decodeBlock(bytes: Uint8Array): Block {
  return readRlp(bytes, (reader) =>
    reader.list(() => {
      const header = readHeader(reader);
      const hash = hashHeader(header);
      const timeMs = reader.number();
      const dataHash = readHash(reader);
      const transactions = reader.items((within) => readTransaction(within));
      const block = { header, hash, timeMs, dataHash, transactions };
      return reader.hasMore ? { ...block, cosmos: reader.items(readCosmosTransaction) } : block;
    }),
  );
}
