/**
 * A block's reply as bytes, with the place of every transaction in it: serialised once, served
 * and stored as it is. Layout of the record, big-endian: time in ms (8), count of transactions
 * (4), for each its hash (32), start and end in the reply (4 each), then the reply of /block.
 */
import { type Hash32, hexToBytes } from "../../chain/hex.js";
import { heightBytes, readHeight } from "../../chain/encoding/height-bytes.js";
import type { BlockIdentifier } from "./identifiers.js";
import type { RosettaBlock } from "./operations.js";

const HEAD_BYTES = 12;
const ENTRY_BYTES = 40;
const HASH_BYTES = 32;

/** Memory of an object around its record. */
const OBJECT_BYTES = 400;

const OPENING = Buffer.from('{"transaction":');
const END = Buffer.from("}");
const COMMA = Buffer.from(",");
const CLOSING = Buffer.from("]}}");

/** A finished block; it never changes, because blocks are final. */
export class EncodedBlock {
  /** Count of transactions, the block-level one included. */
  readonly transactionCount: number;
  /** The whole reply of /block. */
  readonly body: Buffer;

  /** @param record as the index stores it */
  constructor(
    readonly identifier: BlockIdentifier,
    readonly record: Buffer,
  ) {
    this.transactionCount = record.readUInt32BE(8);
    this.body = record.subarray(HEAD_BYTES + this.transactionCount * ENTRY_BYTES);
  }

  get timestampMs(): number {
    return readHeight(this.record, 0);
  }

  /** Memory that it holds, bytes; for a cache's bound. */
  get sizeBytes(): number {
    return this.record.length + OBJECT_BYTES;
  }

  /** Hash of the transaction at a position, 32 bytes. */
  hashBytesAt(position: number): Buffer {
    const at = HEAD_BYTES + position * ENTRY_BYTES;
    return this.record.subarray(at, at + HASH_BYTES);
  }

  /** The JSON of the transaction at a position, as it stands in the reply. */
  transactionAt(position: number): Buffer {
    const at = HEAD_BYTES + position * ENTRY_BYTES + HASH_BYTES;
    return this.body.subarray(this.record.readUInt32BE(at), this.record.readUInt32BE(at + 4));
  }

  /** The reply of /block/transaction; undefined for a hash that is not in the block. */
  transactionReply(hash: Hash32): Buffer | undefined {
    const wanted = hexToBytes(hash);
    for (let position = 0; position < this.transactionCount; position++) {
      const at = HEAD_BYTES + position * ENTRY_BYTES;
      if (this.record.compare(wanted, 0, HASH_BYTES, at, at + HASH_BYTES) !== 0) continue;
      return Buffer.concat([OPENING, this.transactionAt(position), END]);
    }
    return undefined;
  }
}

/** Serialises a block. */
export function encodeBlock(block: RosettaBlock): EncodedBlock {
  const { transactions, ...head } = block;
  const start = Buffer.from(`{"block":${JSON.stringify(head).slice(0, -1)},"transactions":[`);
  const table = Buffer.allocUnsafe(HEAD_BYTES + transactions.length * ENTRY_BYTES);
  heightBytes(block.timestamp).copy(table, 0);
  table.writeUInt32BE(transactions.length, 8);
  const parts = [table, start];
  let offset = start.length;
  transactions.forEach((transaction, position) => {
    const part = Buffer.from(JSON.stringify(transaction));
    if (position > 0) {
      parts.push(COMMA);
      offset += COMMA.length;
    }
    parts.push(part);
    const at = HEAD_BYTES + position * ENTRY_BYTES;
    table.set(hexToBytes(transaction.transaction_identifier.hash), at);
    table.writeUInt32BE(offset, at + HASH_BYTES);
    offset += part.length;
    table.writeUInt32BE(offset, at + HASH_BYTES + 4);
  });
  parts.push(CLOSING);
  return new EncodedBlock(block.block_identifier, Buffer.concat(parts));
}
