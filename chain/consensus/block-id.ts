/** What a vote is for: a block's header hash and the header of its part set; and times. */
import { bytesToHash32, type Hash32, hexToBytes } from "../hex.js";
import { isTime } from "../protobuf/json-texts.js";
import { invalidMessage, ProtoReader, ProtoWriter } from "../protobuf/wire.js";

/** Identity of a proposed block: header hash plus how its bytes are divided into parts. */
export interface BlockId {
  readonly hash: Hash32;
  readonly parts: PartSetHeader;
}

/** Number of parts of a block and the Merkle root over them. */
export interface PartSetHeader {
  readonly total: number;
  readonly hash: Hash32;
}

/** Go's zero time, 0001-01-01T00:00:00Z, which absent votes carry; nanoseconds since 1970. */
export const ZERO_TIME_NS = -62_135_596_800_000_000_000n;

const NS_PER_SECOND = 1_000_000_000n;
const NS_PER_MS = 1_000_000n;

/** Whether two votes mean the same; undefined is nil. */
export function isSameBlockId(left: BlockId | undefined, right: BlockId | undefined): boolean {
  if (left === undefined || right === undefined) return left === right;
  return left.hash === right.hash && isSameParts(left.parts, right.parts);
}

/** Whether two headers are of the same parts. */
export function isSameParts(
  left: PartSetHeader | undefined,
  right: PartSetHeader | undefined,
): boolean {
  return left?.total === right?.total && left?.hash === right?.hash;
}

/** A short name of a block id for maps and logs; "nil" without one. */
export function blockIdKey(blockId: BlockId | undefined): string {
  if (blockId === undefined) return "nil";
  return `${blockId.hash}:${blockId.parts.total}:${blockId.parts.hash}`;
}

/** What CometBFT sorts block ids by (BlockID.Key), as hex: the hash, then the part set's bytes. */
export function blockIdSortKey(blockId: BlockId | undefined): string {
  if (blockId === undefined) return "";
  return blockId.hash.slice(2) + encodePartSetHeader(blockId.parts).toString("hex");
}

function encodePartSetHeader(parts: PartSetHeader | undefined): Buffer {
  if (parts === undefined) return Buffer.alloc(0);
  return new ProtoWriter().integer(1, parts.total).bytes(2, hexToBytes(parts.hash)).finish();
}

/** `tendermint.types.BlockID`, and `CanonicalBlockID`, which has the same bytes; nil is empty. */
export function encodeBlockId(blockId: BlockId | undefined): Buffer {
  const writer = new ProtoWriter();
  if (blockId !== undefined) writer.bytes(1, hexToBytes(blockId.hash));
  return writer.message(2, encodePartSetHeader(blockId?.parts)).finish();
}

/** Untrusted bytes to a block id; undefined for nil. Throws INVALID_MESSAGE. */
export function decodeBlockId(bytes: Uint8Array): BlockId | undefined {
  const reader = new ProtoReader(bytes, [1, 2]);
  const parts = new ProtoReader(reader.bytes(2), [1, 2]);
  const isNil = reader.bytes(1).length === 0 && parts.bytes(2).length === 0;
  if (isNil && parts.count(1) === 0) return undefined;
  const total = parts.count(1);
  if (total === 0) throw invalidMessage("a block without parts");
  return { hash: readHash(reader, 1), parts: { total, hash: readHash(parts, 2) } };
}

/** A field of exactly 32 bytes. Throws INVALID_MESSAGE. */
export function readHash(reader: ProtoReader, field: number): Hash32 {
  const bytes = reader.bytes(field);
  if (bytes.length !== 32) throw invalidMessage(`field ${field} is not a hash`);
  return bytesToHash32(bytes);
}

/** `google.protobuf.Timestamp` of nanoseconds since 1970. */
export function encodeTime(timeNs: bigint): Buffer {
  const { seconds, nanos } = splitTime(timeNs);
  return new ProtoWriter().integer(1, seconds).integer(2, nanos).finish();
}

/**
 * Untrusted bytes to nanoseconds since 1970. Years beyond 9999 are no times, as in CometBFT: no text can
 * say them, and one validator that signs such a time would keep everybody's commits from being shown.
 * Throws INVALID_MESSAGE.
 */
export function decodeTime(bytes: Uint8Array): bigint {
  const reader = new ProtoReader(bytes, [1, 2]);
  const [seconds, nanos] = [reader.int64(1), reader.int64(2)];
  if (!isTime(seconds, Number(nanos))) throw invalidMessage("a time is out of range");
  return seconds * NS_PER_SECOND + nanos;
}

/** A time as RFC 3339 with as many digits of the second as it has, as Go's RFC3339Nano writes. */
export function formatTime(timeNs: bigint): string {
  const { seconds, nanos } = splitTime(timeNs);
  if (timeNs === ZERO_TIME_NS) return "0001-01-01T00:00:00Z";
  const whole = new Date(Number(seconds) * 1_000).toISOString().slice(0, 19);
  const fraction = nanos.toString().padStart(9, "0").replace(/0+$/, "");
  return fraction === "" ? `${whole}Z` : `${whole}.${fraction}Z`;
}

/** Milliseconds since 1970 to nanoseconds. */
export function msToNs(timeMs: number): bigint {
  return BigInt(timeMs) * NS_PER_MS;
}

/** Nanoseconds since 1970 to whole milliseconds, rounded down. */
export function nsToMs(timeNs: bigint): number {
  return Number(timeNs / NS_PER_MS);
}

function splitTime(timeNs: bigint): { seconds: bigint; nanos: bigint } {
  let seconds = timeNs / NS_PER_SECOND;
  let nanos = timeNs % NS_PER_SECOND;
  if (nanos < 0n) {
    nanos += NS_PER_SECOND;
    seconds -= 1n;
  }
  return { seconds, nanos };
}
