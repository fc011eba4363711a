/**
 * RLP of a whole block in one piece, as snapshots carry it: nothing in it that no hash proves. Of
 * Cosmos transactions the logs, events and balance changes are left out.
 */
import { type Block, type BlockTransaction, hashHeader } from "../../../chain/block.js";
import type { MinedCosmosTransaction } from "../../../chain/cosmos/cosmos-result.js";
import { encodeRlp, type RlpInput } from "../../../chain/encoding/rlp-writer.js";
import { readRlp, type RlpReader } from "../../../chain/encoding/rlp-reader.js";
import {
  headerItem,
  readHash,
  readHeader,
  readTransaction,
  transactionItem,
} from "../../../chain/records/block-items.js";
import { cosmosItem, readProvableCosmosTransaction } from "../../../chain/records/cosmos-items.js";

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

/**
 * A whole block of which the head alone is decoded, for who proves each part before the next one: what
 * is decoded takes a hundred times the memory, and of bytes that prove nothing there may be any number.
 */
export interface EncodedBlock extends Pick<Block, "header" | "hash" | "timeMs" | "dataHash"> {
  /** The list of EVM transactions, as it is encoded. */
  readonly transactions: Uint8Array;
  /** That of the Cosmos transactions; undefined where there are none. */
  readonly cosmos: Uint8Array | undefined;
}

/** Reads the head; the hash is computed again from the header. Throws INVALID_RLP. */
export function readBlockHead(bytes: Uint8Array): EncodedBlock {
  return readRlp(bytes, (reader) =>
    reader.list(() => {
      const header = readHeader(reader);
      return {
        header,
        hash: hashHeader(header),
        timeMs: reader.number(),
        dataHash: readHash(reader),
        transactions: reader.encoded(),
        cosmos: reader.hasMore ? reader.encoded() : undefined,
      };
    }),
  );
}

/** Bytes of its EVM transactions, in place. Throws INVALID_RLP, also where there are more. */
export function rawTransactions(
  { transactions }: EncodedBlock,
  mostTransactions: number,
): Uint8Array[] {
  const readRaw = (reader: RlpReader) =>
    reader.list(() => {
      const raw = reader.bytes();
      reader.skip();
      return raw;
    });
  return readRlp(transactions, (reader) => reader.items(readRaw, mostTransactions));
}

/** Its EVM transactions. Throws INVALID_RLP, and as `decodeTransaction`. */
export function decodeTransactions({ transactions }: EncodedBlock): BlockTransaction[] {
  return readRlp(transactions, (reader) => reader.items((within) => readTransaction(within)));
}

/** A Cosmos transaction of which nothing but its place is decoded. */
export interface PlacedCosmosBytes extends Pick<MinedCosmosTransaction, "index"> {
  readonly tx: Pick<MinedCosmosTransaction["tx"], "raw">;
}

/** Its Cosmos transactions so. Throws INVALID_RLP, also where there are more. */
export function rawCosmos({ cosmos }: EncodedBlock, mostTransactions: number): PlacedCosmosBytes[] {
  if (cosmos === undefined) return [];
  const readRaw = (reader: RlpReader) =>
    reader.list(() => {
      const raw = reader.bytes();
      reader.skip();
      const index = reader.number();
      while (reader.hasMore) reader.skip();
      return { tx: { raw }, index };
    });
  return readRlp(cosmos, (reader) => reader.items(readRaw, mostTransactions));
}

/** Its Cosmos transactions. Throws INVALID_RLP, and as `decodeCosmosTransaction`. */
export function decodeCosmos({ cosmos }: EncodedBlock): MinedCosmosTransaction[] {
  if (cosmos === undefined) return [];
  return readRlp(cosmos, (reader) => reader.items(readProvableCosmosTransaction));
}
