/** Encodings and hashes held against vectors made by CometBFT's own Go code. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { type BlockId, formatTime } from "../../../../chain/consensus/block-id.js";
import { hashCommit } from "../../../../chain/consensus/commit.js";
import {
  blockIdOf,
  consensusBlockBytes,
  decodeConsensusBlock,
  encodeConsensusBlock,
  hashTransactions,
  isPartOf,
  splitIntoParts,
} from "../../../../chain/consensus/consensus-block.js";
import { hashEvidence, hashEvidenceList } from "../../../../chain/consensus/evidence.js";
import {
  decodeMerkleProof,
  encodeMerkleProof,
  provenRootSteps,
  merkleRootOf,
  verifyMerkleProof,
} from "../../../../chain/consensus/merkle.js";
import { validatorAddress, ValidatorSet } from "../../../../chain/consensus/validator-set.js";
import {
  decodeProposal,
  decodeVote,
  encodeProposal,
  encodeVote,
  proposalSignBytes,
  voteSignBytes,
} from "../../../../chain/consensus/vote.js";
import { bytesToHex, hexToBytes } from "../../../../chain/hex.js";
import { allAtOnce } from "../../../../chain/steps/steps.js";

interface BlockIdVector {
  readonly hash: string;
  readonly total: number;
  readonly partsHash: string;
}

interface StepVector {
  readonly op: "genesis" | "advance" | "update";
  readonly times?: number;
  readonly key?: number;
  readonly power?: string;
  readonly proposer: string;
  readonly hash: string;
  readonly validators: readonly {
    readonly address: string;
    readonly power: string;
    readonly priority: string;
  }[];
}

interface Vectors {
  readonly chainId: string;
  readonly keys: readonly { readonly publicKey: string; readonly address: string }[];
  readonly votes: readonly (Record<"timeNs" | "signBytes" | "bytes" | "signature", string> & {
    readonly type: number;
    readonly height: number;
    readonly round: number;
    readonly blockId: BlockIdVector | null;
    readonly validatorAddress: string;
    readonly validatorIndex: number;
  })[];
  readonly proposals: readonly (Record<"timeNs" | "signBytes" | "bytes", string> & {
    readonly polRound: number;
    readonly blockId: BlockIdVector;
  })[];
  readonly trees: readonly {
    readonly leaves: readonly string[] | null;
    readonly root: string;
    readonly proofs: readonly { readonly bytes: string }[] | null;
  }[];
  readonly validatorSets: readonly {
    readonly genesis: readonly { readonly key: number; readonly power: string }[];
    readonly steps: readonly StepVector[];
  }[];
  readonly blocks: readonly (Record<
    "bytes" | "hash" | "dataHash" | "lastCommitHash" | "evidenceHash" | "time",
    string
  > & {
    readonly parts: { readonly total: number; readonly hash: string };
    readonly firstEvidenceHash?: string;
  })[];
}

const file = new URL("../../../fixtures/consensus/cometbft.json", import.meta.url);
const vectors = JSON.parse(readFileSync(file, "utf8")) as Vectors;
const { chainId } = vectors;

const toVector = (blockId: BlockId | undefined): BlockIdVector | null =>
  blockId === undefined
    ? null
    : { hash: blockId.hash, total: blockId.parts.total, partsHash: blockId.parts.hash };

const keyOf = (index: number | undefined) =>
  hexToBytes(vectors.keys[index ?? -1]?.publicKey ?? "0x");

describe("votes and proposals", () => {
  it("decode, encode and sign as CometBFT's", () => {
    for (const vector of vectors.votes) {
      const vote = decodeVote(hexToBytes(vector.bytes));
      expect({ ...vote, blockId: toVector(vote.blockId) }).toEqual({
        type: vector.type,
        height: vector.height,
        round: vector.round,
        blockId: vector.blockId,
        timeNs: BigInt(vector.timeNs),
        validatorAddress: vector.validatorAddress,
        validatorIndex: vector.validatorIndex,
        signature: hexToBytes(vector.signature),
      });
      expect(bytesToHex(encodeVote(vote))).toBe(vector.bytes);
      expect(bytesToHex(voteSignBytes(chainId, vote))).toBe(vector.signBytes);
    }
    expect(vectors.votes.some(({ blockId }) => blockId === null)).toBe(true);
  });

  it("keep a proposal's polka round, -1 included", () => {
    for (const vector of vectors.proposals) {
      const proposal = decodeProposal(hexToBytes(vector.bytes));
      expect(proposal.polRound).toBe(vector.polRound);
      expect(toVector(proposal.blockId)).toEqual(vector.blockId);
      expect(bytesToHex(encodeProposal(proposal))).toBe(vector.bytes);
      expect(bytesToHex(proposalSignBytes(chainId, proposal))).toBe(vector.signBytes);
    }
  });

  it("refuse every truncation and unknown fields", () => {
    const bytes = hexToBytes(vectors.votes[0]?.bytes ?? "0x");
    for (let length = 0; length < bytes.length; length++) {
      expect(() => decodeVote(bytes.subarray(0, length))).toThrow(/malformed consensus message/);
    }
    const unknown = Buffer.concat([bytes, Buffer.from([0x7a, 0x00])]);
    expect(() => decodeVote(unknown)).toThrow(/field 15 is unknown/);
  });

  it("have no extensions, which are disabled (VoteExtensionEnableHeight)", () => {
    const bytes = hexToBytes(vectors.votes[0]?.bytes ?? "0x");
    for (const [field, tag] of [[9, 0x4a] as const, [10, 0x52] as const]) {
      const extended = Buffer.concat([bytes, Buffer.from([tag, 1, 7])]);
      expect(() => decodeVote(extended)).toThrow(`field ${field} is unknown`);
    }
  });
});

describe("Merkle trees", () => {
  it("have CometBFT's roots and proofs", () => {
    for (const { leaves, root, proofs } of vectors.trees) {
      const bytes = (leaves ?? []).map(hexToBytes);
      expect(bytesToHex(merkleRootOf(bytes))).toBe(root);
      const ours = allAtOnce(provenRootSteps(bytes)).proofs;
      expect(ours.map((proof) => bytesToHex(encodeMerkleProof(proof)))).toEqual(
        (proofs ?? []).map((proof) => proof.bytes),
      );
      for (const [index, leaf] of bytes.entries()) {
        const proof = decodeMerkleProof(hexToBytes(proofs?.[index]?.bytes ?? "0x"));
        expect(verifyMerkleProof(proof, hexToBytes(root), leaf)).toBe(true);
        const other = Uint8Array.of(...leaf, 1);
        expect(verifyMerkleProof(proof, hexToBytes(root), other)).toBe(false);
        const moved = { ...proof, index: (index + 1) % bytes.length };
        if (bytes.length > 1) {
          expect(verifyMerkleProof(moved, hexToBytes(root), leaf)).toBe(false);
        }
      }
    }
  });
});

describe("validator sets", () => {
  it("derive addresses from keys", () => {
    for (const { publicKey, address } of vectors.keys) {
      expect(validatorAddress(hexToBytes(publicKey))).toBe(address);
    }
  });

  it("take turns, change and hash as CometBFT's", () => {
    for (const { genesis, steps } of vectors.validatorSets) {
      let set = ValidatorSet.genesis(
        genesis.map(({ key, power }) => ({ publicKey: keyOf(key), power: BigInt(power) })),
      );
      for (const step of steps) {
        if (step.op === "advance") set = set.advance(step.times ?? 0);
        if (step.op === "update") {
          set = set.update([{ publicKey: keyOf(step.key), power: BigInt(step.power ?? 0) }]);
        }
        const state = set.validators.map(({ address, power, priority }) => ({
          address: address as string,
          power: power.toString(),
          priority: priority.toString(),
        }));
        expect(state).toEqual(step.validators);
        expect(set.hash()).toBe(step.hash);
        expect(set.proposer.address).toBe(step.proposer);
      }
    }
  });

  it("refuse what would break the chain", () => {
    const set = ValidatorSet.genesis([{ publicKey: keyOf(0), power: 10n }]);
    const refuse = (...updates: { publicKey: Uint8Array; power: bigint }[]) =>
      expect(() => set.update(updates)).toThrow(/validator set refused/);
    refuse({ publicKey: keyOf(0), power: 0n });
    refuse({ publicKey: keyOf(1), power: 0n });
    refuse({ publicKey: keyOf(1), power: -1n });
    refuse({ publicKey: keyOf(1), power: 1n }, { publicKey: keyOf(1), power: 2n });
    refuse({ publicKey: keyOf(1), power: 1n << 62n });
  });
});

describe("blocks", () => {
  it("have CometBFT's bytes, hashes and parts", () => {
    for (const vector of vectors.blocks) {
      const bytes = hexToBytes(vector.bytes);
      const block = decodeConsensusBlock(bytes);
      expect(bytesToHex(encodeConsensusBlock(block))).toBe(vector.bytes);
      const parts = splitIntoParts(bytes);
      expect(blockIdOf(block, parts)).toEqual({ hash: vector.hash, parts: vector.parts });
      expect(hashTransactions(block.transactions)).toBe(vector.dataHash);
      expect(hashCommit(block.lastCommit)).toBe(vector.lastCommitHash);
      expect(hashEvidenceList(block.evidence)).toBe(vector.evidenceHash);
      expect(formatTime(block.header.timeNs)).toBe(vector.time);
      expect(consensusBlockBytes(block)).toBe(bytes.length);
      const [first] = block.evidence;
      expect(first && hashEvidence(first)).toBe(vector.firstEvidenceHash);
      expect(parts.parts.every((part) => isPartOf(part, parts.header))).toBe(true);
    }
    expect(Math.max(...vectors.blocks.map(({ parts }) => parts.total))).toBeGreaterThan(1);
    expect(vectors.blocks.some(({ firstEvidenceHash }) => firstEvidenceHash !== undefined)).toBe(
      true,
    );
  });

  it("refuse parts that were altered or moved", () => {
    const bytes = hexToBytes(vectors.blocks.at(-1)?.bytes ?? "0x");
    const { parts, header } = splitIntoParts(bytes);
    const [first, second] = parts;
    if (first === undefined || second === undefined) throw new Error("the block has one part");
    const altered = Uint8Array.from(first.bytes);
    altered[100] = (altered[100] ?? 0) ^ 1;
    expect(isPartOf({ ...first, bytes: altered }, header)).toBe(false);
    expect(isPartOf({ ...first, index: 1 }, header)).toBe(false);
    expect(isPartOf({ ...second, bytes: first.bytes }, header)).toBe(false);
  });

  it("are measured rightly where lengths take one more byte", () => {
    const block = decodeConsensusBlock(hexToBytes(vectors.blocks[0]?.bytes ?? "0x"));
    for (const size of [0, 1, 127, 128, 16_383, 16_384, 2_097_152]) {
      for (const transactions of [
        [],
        [new Uint8Array(size)],
        [new Uint8Array(size), new Uint8Array(1)],
      ]) {
        const other = { ...block, transactions };
        expect([size, consensusBlockBytes(other)]).toEqual([
          size,
          encodeConsensusBlock(other).length,
        ]);
      }
    }
  });

  it("refuse other encodings of the same block", () => {
    const bytes = hexToBytes(vectors.blocks[0]?.bytes ?? "0x");
    // Field 2 (data) once more, empty.
    const doubled = Buffer.concat([bytes, Buffer.from([0x12, 0x00])]);
    expect(() => decodeConsensusBlock(doubled)).toThrow(/malformed consensus message/);
  });
});
