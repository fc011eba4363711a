/**
 * Records of the log of consensus and their frames: crc32c (4 bytes) | length (4) | data, as in
 * CometBFT.
 */
import {
  encodeVarint,
  invalidMessage,
  ProtoReader,
  ProtoWriter,
} from "../../../chain/protobuf/wire.js";
import { readInt32 } from "../../../chain/consensus/vote.js";
import { ChainError } from "../../../chain/errors.js";
import type { Height } from "../../../chain/hex.js";
import { STEP, type TimeoutStep } from "../machine/consensus-state.js";
import { crc32c } from "./crc32c.js";
import { decodeRoundMessage, encodeRoundMessage, type RoundMessage } from "./message-codec.js";

/** One thing that moved the machine, the mark that a height is stored, or that of a loss. */
export type WalRecord =
  | { readonly type: "message"; readonly isOwn: boolean; readonly message: RoundMessage }
  | {
      readonly type: "timeout";
      readonly height: Height;
      readonly round: number;
      readonly step: TimeoutStep;
    }
  | { readonly type: "end-height"; readonly height: Height }
  /** Records of the height in progress were lost: what is left does not tell the whole of it. */
  | { readonly type: "gap"; readonly height: Height };

/** As CometBFT: no message is larger; a length above it is damage. */
export const MAX_RECORD_BYTES = 1_048_576;

/** Checksum and length. */
export const FRAME_HEAD_BYTES = 8;

const FIELD = { own: 1, peer: 2, timeout: 3, end: 4, gap: 5 } as const;
/** Tags of the fields, which are all messages. */
const TAGS: ReadonlySet<number> = new Set(Object.values(FIELD).map((field) => field * 8 + 2));

const TIMEOUT_STEPS: readonly TimeoutStep[] = [
  STEP.newHeight,
  STEP.propose,
  STEP.prevoteWait,
  STEP.precommitWait,
];

/** A record as the file has it. Throws a RangeError for one that would be read back as damage. */
export function frameOf(record: WalRecord): Buffer {
  const data = encodeRecord(record);
  if (data.length > MAX_RECORD_BYTES) throw new RangeError("a record of the log is too long");
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUInt32BE(crc32c(data), 0);
  head.writeUInt32BE(data.length, 4);
  return Buffer.concat([head, data]);
}

/**
 * The record whose frame begins at a place, and where it ends; undefined where none does.
 * @param checksumOf CRC-32C of the bytes from one place to before another
 */
export function recordAt(
  bytes: Buffer,
  at: number,
  checksumOf = (from: number, to: number) => crc32c(bytes.subarray(from, to)),
): { readonly record: WalRecord; readonly end: number } | undefined {
  const end = frameEnd(bytes, at);
  if (end === undefined) return undefined;
  const dataAt = at + FRAME_HEAD_BYTES;
  if (checksumOf(dataAt, end) !== bytes.readUInt32BE(at)) return undefined;
  try {
    return { record: decodeRecord(bytes.subarray(dataAt, end)), end };
  } catch (error) {
    if (error instanceof ChainError) return undefined;
    throw error;
  }
}

/** Where a frame ends by its own length; undefined where that cannot be. */
export function frameEnd(bytes: Buffer, at: number): number | undefined {
  if (at + FRAME_HEAD_BYTES > bytes.length) return undefined;
  const sizeBytes = bytes.readUInt32BE(at + 4);
  const end = at + FRAME_HEAD_BYTES + sizeBytes;
  return sizeBytes === 0 || sizeBytes > MAX_RECORD_BYTES || end > bytes.length ? undefined : end;
}

/** Whether the bytes at a place can be a frame at all: cheap, and true for every record of ours. */
export function looksLikeFrame(bytes: Buffer, at: number): boolean {
  // The first byte of the data is the tag of its one field.
  const tag = bytes[at + FRAME_HEAD_BYTES];
  return tag !== undefined && TAGS.has(tag) && frameEnd(bytes, at) !== undefined;
}

/**
 * Whether a record of ours begins at a place and the bytes end before it does. Two lengths say so, the
 * frame's and that of the one field in it, and no flipped bit makes them agree.
 */
export function isCutShort(bytes: Buffer, at: number): boolean {
  const dataAt = at + FRAME_HEAD_BYTES;
  const tag = bytes[dataAt];
  if (tag === undefined || !TAGS.has(tag)) return false;
  const sizeBytes = bytes.readUInt32BE(at + 4);
  const isBeyond = dataAt + sizeBytes > bytes.length && sizeBytes <= MAX_RECORD_BYTES;
  if (!isBeyond) return false;
  return [1, 2, 3].some((lengthBytes) => {
    const fieldBytes = sizeBytes - 1 - lengthBytes;
    if (fieldBytes < 0) return false;
    return encodeVarint(fieldBytes).equals(bytes.subarray(dataAt + 1, dataAt + 1 + lengthBytes));
  });
}

/** Height that a record is about. */
export function heightOf(record: WalRecord): Height {
  if (record.type !== "message") return record.height;
  const { message } = record;
  if (message.type === "part") return message.height;
  return message.type === "vote" ? message.vote.height : message.proposal.height;
}

function encodeRecord(record: WalRecord): Buffer {
  const writer = new ProtoWriter();
  switch (record.type) {
    case "message": {
      const field = record.isOwn ? FIELD.own : FIELD.peer;
      return writer.message(field, encodeRoundMessage(record.message)).finish();
    }
    case "timeout": {
      const { height, round, step } = record;
      const place = new ProtoWriter().integer(1, height).integer(2, round).integer(3, step);
      return writer.message(FIELD.timeout, place.finish()).finish();
    }
    default: {
      const mark = new ProtoWriter().integer(1, record.height).finish();
      return writer.message(record.type === "gap" ? FIELD.gap : FIELD.end, mark).finish();
    }
  }
}

function decodeRecord(data: Uint8Array): WalRecord {
  const reader = new ProtoReader(data, Object.values(FIELD));
  for (const [field, isOwn] of [[FIELD.own, true] as const, [FIELD.peer, false] as const]) {
    if (!reader.has(field)) continue;
    return { type: "message", isOwn, message: decodeRoundMessage(reader.bytes(field)) };
  }
  for (const [field, type] of [[FIELD.end, "end-height"] as const, [FIELD.gap, "gap"] as const]) {
    if (!reader.has(field)) continue;
    return { type, height: new ProtoReader(reader.bytes(field), [1]).count(1) };
  }
  const place = new ProtoReader(reader.bytes(FIELD.timeout), [1, 2, 3]);
  const step = TIMEOUT_STEPS.find((one) => one === place.count(3));
  if (step === undefined) throw invalidMessage("a timeout of an unknown step");
  return { type: "timeout", height: place.count(1), round: readInt32(place, 2), step };
}
