/**
 * Bytes of what peers say to each other (protobuf). Everything that is read is untrusted and
 * bounded; of each message only the one canonical encoding is accepted, so that nobody can send
 * the same thing twice under two names.
 */
import { MAX_BLOCK_BYTES, PART_BYTES } from "../../../chain/consensus/consensus-block.js";
import { decodeDuplicateVote, encodeDuplicateVote } from "../../../chain/consensus/evidence.js";
import { readHash } from "../../../chain/consensus/block-id.js";
import { invalidMessage, ProtoReader, ProtoWriter } from "../../../chain/protobuf/wire.js";
import { readInt32 } from "../../../chain/consensus/vote.js";
import { type Hash32, type Height, hexToBytes } from "../../../chain/hex.js";
import type { ConsensusMessage, RoundStatus } from "../../consensus/consensus-ports.js";
import { STEP, type Step } from "../../consensus/machine/consensus-state.js";
import { MAX_OTHER_ROUNDS } from "../../consensus/machine/round-status.js";
import { decodeRoundMessage, encodeRoundMessage } from "../../consensus/log/message-codec.js";

/** What a node says of itself when a connection comes up; shown by `net_info`. */
export interface Hello {
  /** Chain id; peers of another chain are let go. */
  readonly network: string;
  /** Hash of the genesis block. */
  readonly genesisHash: Hash32;
  readonly moniker: string;
  readonly version: string;
  /** `host:port` where the peer takes connections, as it says itself; "" for none. */
  readonly listenAddress: string;
  /** Where its consensus RPC listens, as it says itself. */
  readonly rpcAddress: string;
}

/** One message on the stream between two peers. */
export type PeerFrame =
  | { readonly type: "hello"; readonly hello: Hello }
  | { readonly type: "consensus"; readonly message: Uint8Array }
  | { readonly type: "transactions"; readonly raws: readonly Uint8Array[] }
  | { readonly type: "ping" };

const FRAME = { hello: 1, consensus: 2, transactions: 3, ping: 4 } as const;
const MESSAGE = { round: 1, evidence: 2, status: 3 } as const;

/** Longest text in a hello, bytes. */
const MAX_TEXT_BYTES = 256;

/** Parts of the largest block. */
const MAX_PARTS = Math.ceil(MAX_BLOCK_BYTES / PART_BYTES);

/** Transactions in one batch; as many of the smallest size as its bytes hold. */
export const MAX_BATCH_COUNT = 1_024;

/** A frame as protobuf. */
export function encodeFrame(frame: PeerFrame): Buffer {
  const writer = new ProtoWriter();
  switch (frame.type) {
    case "hello":
      return writer.message(FRAME.hello, encodeHello(frame.hello)).finish();
    case "consensus":
      return writer.message(FRAME.consensus, frame.message).finish();
    case "transactions":
      return writer.message(FRAME.transactions, encodeTransactions(frame.raws)).finish();
    default:
      return writer.message(FRAME.ping, new Uint8Array(0)).finish();
  }
}

/** Untrusted bytes to a frame. Throws INVALID_MESSAGE. */
export function decodeFrame(bytes: Uint8Array): PeerFrame {
  const reader = new ProtoReader(bytes, Object.values(FRAME));
  if (reader.has(FRAME.consensus)) {
    return { type: "consensus", message: reader.bytes(FRAME.consensus) };
  }
  if (reader.has(FRAME.transactions)) {
    return { type: "transactions", raws: decodeTransactions(reader.bytes(FRAME.transactions)) };
  }
  if (reader.has(FRAME.hello)) {
    return { type: "hello", hello: decodeHello(reader.bytes(FRAME.hello)) };
  }
  if (reader.has(FRAME.ping)) return { type: "ping" };
  throw invalidMessage("a frame without content");
}

/** A batch of raw transactions. */
export function encodeTransactions(raws: readonly Uint8Array[]): Buffer {
  const writer = new ProtoWriter();
  for (const raw of raws) writer.message(1, raw);
  return writer.finish();
}

/** Untrusted bytes to raw transactions, at least one. Throws INVALID_MESSAGE. */
export function decodeTransactions(bytes: Uint8Array): readonly Uint8Array[] {
  const raws = new ProtoReader(bytes, [], { 1: MAX_BATCH_COUNT }).repeated(1);
  const isEmpty = raws.length === 0 || raws.some(({ length }) => length === 0);
  if (isEmpty) throw invalidMessage("a batch without transactions");
  return raws;
}

/** Bytes from the first transaction of a batch on, of which nothing else is read; whatever they are. */
export function firstOfBatch(bytes: Uint8Array): Uint8Array {
  const [tagBytes, mostLengthBytes] = [1, 5];
  const length = bytes.subarray(tagBytes, tagBytes + mostLengthBytes);
  return bytes.subarray(tagBytes + length.findIndex((byte) => byte < 0x80) + 1);
}

/** A consensus message as protobuf. */
export function encodeConsensusMessage(message: ConsensusMessage): Buffer {
  const writer = new ProtoWriter();
  switch (message.type) {
    case "evidence":
      return writer.message(MESSAGE.evidence, encodeDuplicateVote(message.evidence)).finish();
    case "status":
      return writer.message(MESSAGE.status, encodeStatus(message.status)).finish();
    default:
      return writer.message(MESSAGE.round, encodeRoundMessage(message)).finish();
  }
}

/** Size of the validator set of a height; undefined where this node does not know it. */
export type SetSizes = (height: Height) => number | undefined;

/**
 * Untrusted bytes to what a peer says to this node alone: a status, or a message that everybody
 * may hear. Only the shape is checked.
 * @param setSizeAt bounds what a status may say of votes; of a height without a known set nothing
 * of it is read, because nothing could be made of it
 * @throws INVALID_MESSAGE
 */
export function decodeConsensusMessage(bytes: Uint8Array, setSizeAt: SetSizes): ConsensusMessage {
  const reader = new ProtoReader(bytes, Object.values(MESSAGE));
  if (!reader.has(MESSAGE.status)) return canonical(readSharedMessage(reader), bytes);
  // Never passed on, so that a second encoding of the same gains nobody anything.
  return { type: "status", status: decodeStatus(reader.bytes(MESSAGE.status), setSizeAt) };
}

/** Untrusted bytes to a message of gossip, which a status never is. Throws INVALID_MESSAGE. */
export function decodeSharedMessage(bytes: Uint8Array): SharedMessage {
  return canonical(readSharedMessage(new ProtoReader(bytes, Object.values(MESSAGE))), bytes);
}

/** A message that is passed on from node to node. */
export type SharedMessage = Exclude<ConsensusMessage, { type: "status" }>;

function canonical(message: SharedMessage, bytes: Uint8Array): SharedMessage {
  if (Buffer.compare(encodeConsensusMessage(message), bytes) !== 0) {
    throw invalidMessage("the message is not in its canonical encoding");
  }
  return message;
}

function readSharedMessage(reader: ProtoReader): SharedMessage {
  if (reader.has(MESSAGE.round)) return decodeRoundMessage(reader.bytes(MESSAGE.round));
  if (reader.has(MESSAGE.evidence)) {
    const evidence = decodeDuplicateVote(reader.bytes(MESSAGE.evidence));
    return { type: "evidence", evidence };
  }
  throw invalidMessage("a message without content");
}

function encodeHello(hello: Hello): Buffer {
  return new ProtoWriter()
    .bytes(1, hello.network)
    .bytes(2, hexToBytes(hello.genesisHash))
    .bytes(3, hello.moniker)
    .bytes(4, hello.version)
    .bytes(5, hello.listenAddress)
    .bytes(6, hello.rpcAddress)
    .finish();
}

function decodeHello(bytes: Uint8Array): Hello {
  const reader = new ProtoReader(bytes, [1, 2, 3, 4, 5, 6]);
  const text = (field: number): string => {
    if (reader.bytes(field).length > MAX_TEXT_BYTES) throw invalidMessage("a text is too long");
    return reader.text(field);
  };
  return {
    network: text(1),
    genesisHash: readHash(reader, 2),
    moniker: text(3),
    version: text(4),
    listenAddress: text(5),
    rpcAddress: text(6),
  };
}

function encodeStatus(status: RoundStatus): Buffer {
  const writer = new ProtoWriter()
    .integer(1, status.height)
    .integer(2, status.round)
    .integer(3, status.step)
    .integer(4, status.hasProposal ? 1 : 0);
  if (status.parts !== undefined) {
    const { header, have } = status.parts;
    writer.message(
      5,
      new ProtoWriter().bytes(1, hexToBytes(header.hash)).message(2, encodeBits(have)).finish(),
    );
  }
  writer.message(6, encodeBits(status.prevotes)).message(7, encodeBits(status.precommits));
  for (const { round, prevotes, precommits } of status.earlier) {
    writer.message(
      8,
      new ProtoWriter()
        .integer(1, round)
        .message(2, encodeBits(prevotes))
        .message(3, encodeBits(precommits))
        .finish(),
    );
  }
  return writer.finish();
}

function decodeStatus(bytes: Uint8Array, setSizeAt: SetSizes): RoundStatus {
  const reader = new ProtoReader(bytes, [1, 2, 3, 4, 5, 6, 7], { 8: MAX_OTHER_ROUNDS });
  const height = reader.count(1);
  const place = {
    height,
    round: readInt32(reader, 2),
    step: readStep(reader),
    hasProposal: reader.count(4) !== 0,
  };
  const setSize = setSizeAt(height);
  if (setSize === undefined) {
    return { ...place, parts: undefined, prevotes: [], precommits: [], earlier: [] };
  }
  return {
    ...place,
    parts: reader.has(5) ? decodePartStatus(reader.bytes(5)) : undefined,
    prevotes: decodeBits(reader.bytes(6), setSize),
    precommits: decodeBits(reader.bytes(7), setSize),
    earlier: reader.repeated(8).map((one) => {
      const votes = new ProtoReader(one, [1, 2, 3]);
      return {
        round: readInt32(votes, 1),
        prevotes: decodeBits(votes.bytes(2), setSize),
        precommits: decodeBits(votes.bytes(3), setSize),
      };
    }),
  };
}

function decodePartStatus(bytes: Uint8Array): NonNullable<RoundStatus["parts"]> {
  const reader = new ProtoReader(bytes, [1, 2]);
  const have = decodeBits(reader.bytes(2), MAX_PARTS);
  if (have.length === 0) throw invalidMessage("a part set without parts");
  return { header: { total: have.length, hash: readHash(reader, 1) }, have };
}

function readStep(reader: ProtoReader): Step {
  const step = reader.count(3);
  const known = Object.values(STEP).find((value) => value === step);
  if (known === undefined) throw invalidMessage(`step ${step}`);
  return known;
}

/** How many there are, and a bit for each, lowest first. */
function encodeBits(bits: readonly boolean[]): Buffer {
  const bitmap = Buffer.alloc(Math.ceil(bits.length / 8));
  bits.forEach((bit, index) => {
    if (bit) bitmap[index >> 3] = (bitmap[index >> 3] ?? 0) | (1 << (index & 7));
  });
  return new ProtoWriter().integer(1, bits.length).bytes(2, bitmap).finish();
}

function decodeBits(bytes: Uint8Array, max: number): readonly boolean[] {
  const reader = new ProtoReader(bytes, [1, 2]);
  const [count, bitmap] = [reader.count(1), reader.bytes(2)];
  if (count > max || bitmap.length !== Math.ceil(count / 8)) throw invalidMessage("a bit array");
  return Array.from({ length: count }, (_, index) => {
    return (((bitmap[index >> 3] ?? 0) >> (index & 7)) & 1) === 1;
  });
}
