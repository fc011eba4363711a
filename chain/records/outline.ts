/** The first record of a block: all but what is in it, and where its pages begin. */
import { type BlockOutline, hashHeader } from "../block.js";
import { encodeRlp } from "../encoding/rlp-writer.js";
import type { RlpReader } from "../encoding/rlp-reader.js";
import { ChainError } from "../errors.js";

import { headerItem, readHash, readHeader } from "./block-items.js";

/** Bytes of a place in lists of them. */
const INDEX_BYTES = 4;

/** An outline with where the block's pages begin. */
export interface StoredOutline extends BlockOutline {
  /** Index of the first transaction of each page, ascending. */
  readonly starts: readonly number[];
}

/** The record of an outline. */
export function encodeOutline(outline: BlockOutline, starts: readonly number[]): Uint8Array {
  return encodeRlp([
    headerItem(outline.header),
    outline.timeMs,
    outline.dataHash,
    outline.transactionCount,
    outline.transactionBytes,
    encodeIndexes(starts),
    // Blocks without Cosmos transactions are written as they always were.
    ...(outline.cosmosPlaces.length === 0 ? [] : [encodeIndexes(outline.cosmosPlaces)]),
  ]);
}

/** Reads what `encodeOutline` wrote; the hash is computed again from the header. Throws INVALID_RLP. */
export function readOutline(reader: RlpReader): StoredOutline {
  return reader.list(() => {
    const header = readHeader(reader);
    return {
      header,
      hash: hashHeader(header),
      timeMs: reader.number(),
      dataHash: readHash(reader),
      transactionCount: reader.number(),
      transactionBytes: reader.number(),
      starts: decodeIndexes(reader.bytes()),
      cosmosPlaces: reader.hasMore ? decodeIndexes(reader.bytes()) : [],
    };
  });
}

/** Places of transactions, 4 bytes each. */
export function encodeIndexes(indexes: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(indexes.length * INDEX_BYTES);
  for (const [item, index] of indexes.entries()) bytes.writeUInt32BE(index, item * INDEX_BYTES);
  return bytes;
}

/** Reads what `encodeIndexes` wrote. Throws INVALID_RLP. */
export function decodeIndexes(bytes: Uint8Array): number[] {
  if (bytes.length % INDEX_BYTES !== 0) {
    throw new ChainError("INVALID_RLP", "a list of places is cut short");
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return Array.from({ length: bytes.length / INDEX_BYTES }, (_, item) =>
    view.getUint32(item * INDEX_BYTES),
  );
}
