/** Bytes of proposals, block parts and votes as the log holds them (protobuf). */
import { type BlockPart } from "../../../chain/consensus/consensus-block.js";
import { type PartSetHeader, readHash } from "../../../chain/consensus/block-id.js";
import { decodeMerkleProof, encodeMerkleProof } from "../../../chain/consensus/merkle.js";
import { invalidMessage, ProtoReader, ProtoWriter } from "../../../chain/protobuf/wire.js";
import {
  decodeProposal,
  decodeVote,
  encodeProposal,
  encodeVote,
  readInt32,
} from "../../../chain/consensus/vote.js";
import { hexToBytes } from "../../../chain/hex.js";
import type { ConsensusMessage } from "../consensus-ports.js";

/** Messages that move the machine. */
export type RoundMessage = Extract<ConsensusMessage, { type: "proposal" | "part" | "vote" }>;

type PartMessage = Extract<ConsensusMessage, { type: "part" }>;

const FIELD = { proposal: 1, part: 2, vote: 3 } as const;

/** One message as protobuf. */
export function encodeRoundMessage(message: RoundMessage): Buffer {
  const writer = new ProtoWriter();
  switch (message.type) {
    case "proposal":
      return writer.message(FIELD.proposal, encodeProposal(message.proposal)).finish();
    case "part":
      return writer.message(FIELD.part, encodePart(message)).finish();
    default:
      return writer.message(FIELD.vote, encodeVote(message.vote)).finish();
  }
}

/** Untrusted bytes to a message; nothing but the shape is checked. Throws INVALID_MESSAGE. */
export function decodeRoundMessage(bytes: Uint8Array): RoundMessage {
  const reader = new ProtoReader(bytes, Object.values(FIELD));
  if (reader.has(FIELD.proposal)) {
    return { type: "proposal", proposal: decodeProposal(reader.bytes(FIELD.proposal)) };
  }
  if (reader.has(FIELD.part)) return decodePart(reader.bytes(FIELD.part));
  if (reader.has(FIELD.vote)) return { type: "vote", vote: decodeVote(reader.bytes(FIELD.vote)) };
  throw invalidMessage("a message without content");
}

function encodePart({ height, round, header, part }: PartMessage): Buffer {
  return new ProtoWriter()
    .integer(1, height)
    .integer(2, round)
    .integer(3, header.total)
    .bytes(4, hexToBytes(header.hash))
    .integer(5, part.index)
    .bytes(6, part.bytes)
    .message(7, encodeMerkleProof(part.proof))
    .finish();
}

function decodePart(bytes: Uint8Array): PartMessage {
  const reader = new ProtoReader(bytes, [1, 2, 3, 4, 5, 6, 7]);
  const header: PartSetHeader = { total: reader.count(3), hash: readHash(reader, 4) };
  const part: BlockPart = {
    index: reader.count(5),
    bytes: reader.bytes(6),
    proof: decodeMerkleProof(reader.bytes(7)),
  };
  return { type: "part", height: reader.count(1), round: readInt32(reader, 2), header, part };
}
