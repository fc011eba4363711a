/**
 * CometBFT's block header: what validators sign. `appHash` of height H + 1 is the EVM block hash
 * of H (D8), so a commit proves the EVM chain.
 */
import { type Address, addressToBytes } from "../address.js";
import { bytesToHash32, type Hash32, type Height, hexToBytes } from "../hex.js";
import {
  type BlockId,
  decodeBlockId,
  decodeTime,
  encodeBlockId,
  encodeTime,
  readHash,
} from "./block-id.js";
import { merkleRootOf } from "./merkle.js";
import { invalidMessage, ProtoReader, ProtoWriter } from "../protobuf/wire.js";
import { readAddress } from "./vote.js";

/** Version of the block protocol, CometBFT 0.38's. */
export const BLOCK_PROTOCOL_VERSION = 11;

/** The 14 hashed fields (version counts as one). */
export interface ConsensusHeader {
  readonly blockVersion: number;
  readonly appVersion: number;
  readonly chainId: string;
  readonly height: Height;
  readonly timeNs: bigint;
  /** Undefined only at height 1. */
  readonly lastBlockId: BlockId | undefined;
  readonly lastCommitHash: Hash32;
  readonly dataHash: Hash32;
  readonly validatorsHash: Hash32;
  readonly nextValidatorsHash: Hash32;
  readonly consensusHash: Hash32;
  /** EVM block hash of the height before. */
  readonly appHash: Hash32;
  readonly lastResultsHash: Hash32;
  readonly evidenceHash: Hash32;
  readonly proposerAddress: Address;
}

/** Merkle root over the encoded fields: the consensus block hash. */
export function hashConsensusHeader(header: ConsensusHeader): Hash32 {
  const wrapped = (bytes: Uint8Array | string) => new ProtoWriter().bytes(1, bytes).finish();
  const hash = (value: Hash32) => wrapped(hexToBytes(value));
  return bytesToHash32(
    merkleRootOf([
      encodeVersion(header),
      wrapped(header.chainId),
      new ProtoWriter().integer(1, header.height).finish(),
      encodeTime(header.timeNs),
      encodeBlockId(header.lastBlockId),
      hash(header.lastCommitHash),
      hash(header.dataHash),
      hash(header.validatorsHash),
      hash(header.nextValidatorsHash),
      hash(header.consensusHash),
      hash(header.appHash),
      hash(header.lastResultsHash),
      hash(header.evidenceHash),
      wrapped(addressToBytes(header.proposerAddress)),
    ]),
  );
}

/** `tendermint.types.Header`. */
export function encodeConsensusHeader(header: ConsensusHeader): Buffer {
  return new ProtoWriter()
    .message(1, encodeVersion(header))
    .bytes(2, header.chainId)
    .integer(3, header.height)
    .message(4, encodeTime(header.timeNs))
    .message(5, encodeBlockId(header.lastBlockId))
    .bytes(6, hexToBytes(header.lastCommitHash))
    .bytes(7, hexToBytes(header.dataHash))
    .bytes(8, hexToBytes(header.validatorsHash))
    .bytes(9, hexToBytes(header.nextValidatorsHash))
    .bytes(10, hexToBytes(header.consensusHash))
    .bytes(11, hexToBytes(header.appHash))
    .bytes(12, hexToBytes(header.lastResultsHash))
    .bytes(13, hexToBytes(header.evidenceHash))
    .bytes(14, addressToBytes(header.proposerAddress))
    .finish();
}

const FIELDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];

/** Untrusted bytes to a header. Throws INVALID_MESSAGE. */
export function decodeConsensusHeader(bytes: Uint8Array): ConsensusHeader {
  const reader = new ProtoReader(bytes, FIELDS);
  const version = new ProtoReader(reader.bytes(1), [1, 2]);
  const height = reader.count(3);
  if (height === 0) throw invalidMessage("height 0");
  return {
    blockVersion: version.count(1),
    appVersion: version.count(2),
    chainId: reader.text(2),
    height,
    timeNs: decodeTime(reader.bytes(4)),
    lastBlockId: decodeBlockId(reader.bytes(5)),
    lastCommitHash: readHash(reader, 6),
    dataHash: readHash(reader, 7),
    validatorsHash: readHash(reader, 8),
    nextValidatorsHash: readHash(reader, 9),
    consensusHash: readHash(reader, 10),
    appHash: readHash(reader, 11),
    lastResultsHash: readHash(reader, 12),
    evidenceHash: readHash(reader, 13),
    proposerAddress: readAddress(reader, 14),
  };
}

function encodeVersion({ blockVersion, appVersion }: ConsensusHeader): Buffer {
  return new ProtoWriter().integer(1, blockVersion).integer(2, appVersion).finish();
}
