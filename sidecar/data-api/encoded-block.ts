/** A block's reply as bytes, with the place of every transaction in it: serialised once. */
import type { Hash32 } from "../../chain/hex.js";
import type { BlockIdentifier } from "../identifiers.js";
import type { RosettaBlock } from "./operations.js";

/** Bytes that never change, because blocks are final. */
export interface EncodedBlock {
  readonly identifier: BlockIdentifier;
  readonly timestampMs: number;
  /** The whole reply of /block. */
  readonly body: Buffer;
  /** The reply of /block/transaction; undefined for a hash that is not in the block. */
  transaction(hash: Hash32): Buffer | undefined;
  /** Memory that it holds, bytes; for the cache's bound. */
  readonly sizeBytes: number;
  /** The reply as an object, as long as it is still in memory from the block's making. */
  freshReply(): object | undefined;
  /** True once the API's description accepted the reply; from then on the bytes are served. */
  isChecked: boolean;
}

/** Estimated cost of one entry of the index of transactions. */
const INDEX_ENTRY_BYTES = 160;

const OPENING = '{"transaction":';

/** Serialises a block. */
export function encodeBlock(block: RosettaBlock): EncodedBlock {
  const { transactions, ...head } = block;
  const start = `{"block":${JSON.stringify(head).slice(0, -1)},"transactions":[`;
  const parts = [Buffer.from(start, "utf8")];
  const spans = new Map<Hash32, readonly [start: number, end: number]>();
  let offset = parts[0]?.length ?? 0;
  transactions.forEach((transaction, index) => {
    const part = Buffer.from(JSON.stringify(transaction), "utf8");
    if (index > 0) {
      parts.push(COMMA);
      offset += COMMA.length;
    }
    parts.push(part);
    spans.set(transaction.transaction_identifier.hash, [offset, offset + part.length]);
    offset += part.length;
  });
  parts.push(CLOSING);
  const body = Buffer.concat(parts);
  const fresh = new WeakRef({ block });
  return {
    identifier: block.block_identifier,
    timestampMs: block.timestamp,
    body,
    transaction(hash) {
      const span = spans.get(hash);
      if (span === undefined) return undefined;
      return Buffer.concat([Buffer.from(OPENING), body.subarray(...span), Buffer.from("}")]);
    },
    sizeBytes: body.length + transactions.length * INDEX_ENTRY_BYTES,
    // Weak: the request that had the block read uses it at once, nobody else should pay for it.
    freshReply: () => fresh.deref(),
    isChecked: false,
  };
}

/**
 * The reply as an object for the server to check against the API's description and to serialise.
 * Serialising comes after the check, so it marks the block: later replies are its bytes.
 */
export function checkOnSerialise(block: EncodedBlock): object {
  // A copy for each request: several may wait for the same block.
  const reply = { ...(block.freshReply() ?? parseReply(block.body)) };
  Object.defineProperty(reply, "toJSON", {
    enumerable: false,
    value: () => {
      block.isChecked = true;
      return { ...reply };
    },
  });
  return reply;
}

function parseReply(body: Buffer): object {
  return JSON.parse(body.toString("utf8"));
}

const COMMA = Buffer.from(",");
const CLOSING = Buffer.from("]}}");
