/** Evidence as bytes: CometBFT 0.38.17's types/evidence_test.go and evidence/reactor_test.go. */
import { describe, expect, it } from "@jest/globals";
import {
  decodeDuplicateVote,
  type DuplicateVoteEvidence,
  encodeDuplicateVote,
  hashEvidence,
  hashEvidenceList,
  orderVotes,
} from "../../../chain/consensus/evidence.js";
import { ProtoWriter } from "../../../chain/protobuf/wire.js";
import { encodeVote, voteSignBytes } from "../../../chain/consensus/vote.js";
import { bytesToHex, hexToBytes } from "../../../chain/hex.js";
import { signingKeyOf, verifySignature } from "../../../chain/consensus/ed25519.js";
import { blockIdOfVector, readScenarios } from "./cometbft-scenarios.js";

const { orders } = readScenarios();
const { publicKey } = signingKeyOf(Buffer.alloc(32, 1));
const pieces = orders.map(({ bytes }) => decodeDuplicateVote(hexToBytes(bytes)));

function first(): DuplicateVoteEvidence {
  const [piece] = pieces;
  if (piece === undefined) throw new Error("no vectors");
  return piece;
}

describe("a pair of votes", () => {
  it("is in CometBFT's order, whichever came first (NewDuplicateVoteEvidence)", () => {
    for (const [index, { a, b }] of orders.entries()) {
      const { voteA, voteB } = pieces[index] ?? first();
      expect([voteA.blockId, voteB.blockId]).toEqual([blockIdOfVector(a), blockIdOfVector(b)]);
      expect(orderVotes(voteA, voteB)).toEqual([voteA, voteB]);
      expect(orderVotes(voteB, voteA)).toEqual([voteA, voteB]);
    }
    expect(orders.some(({ a }) => a === null)).toBe(true);
  });

  it("has CometBFT's bytes, hash and signatures (EvidenceVectors, EvidenceProto)", () => {
    for (const [index, { bytes, hash }] of orders.entries()) {
      const piece = pieces[index] ?? first();
      expect(bytesToHex(encodeDuplicateVote(piece))).toBe(bytes);
      expect(hashEvidence(piece)).toBe(hash);
      expect(piece).toMatchObject({ totalPower: 10n, validatorPower: 10n });
      for (const vote of [piece.voteA, piece.voteB]) {
        const signBytes = voteSignBytes("chain_6940-1", vote);
        expect(verifySignature(publicKey, signBytes, vote.signature)).toBe(true);
      }
    }
  });

  it("makes another list by its place and by what is left out (EvidenceList)", () => {
    const [one, other] = [first(), pieces.at(-1) ?? first()];
    const hashes = [[], [one], [other], [one, other], [other, one]].map(hashEvidenceList);
    expect(new Set(hashes).size).toBe(5);
  });
});

describe("evidence that is none", () => {
  const parts = (a: Uint8Array, b: Uint8Array) =>
    new ProtoWriter().message(1, a).message(2, b).integer(3, 10n).integer(4, 10n);
  const { voteA, voteB } = first();
  const [a, b] = [encodeVote(voteA), encodeVote(voteB)];
  const nothing = Buffer.alloc(0);
  const otherType = new ProtoWriter().integer(1, 0).finish();
  const time = new ProtoWriter().integer(1, 1n).finish();

  it.each([
    ["no first vote", nothing, b],
    ["no second vote", a, nothing],
    ["no vote at all", nothing, nothing],
    ["a vote of no type", Buffer.concat([otherType, a.subarray(2)]), b],
    ["votes out of order", b, a],
    ["one vote twice", a, a],
  ])("is refused: %s (DuplicateVoteEvidenceValidation)", (_, left, right) => {
    const bytes = parts(left, right).message(5, time).finish();
    expect(() => decodeDuplicateVote(bytes)).toThrow(/malformed consensus message/);
  });

  it("is none by its votes alone: the same bytes with these are taken", () => {
    const bytes = parts(a, b).message(5, time).finish();
    expect(decodeDuplicateVote(bytes)).toMatchObject({ voteA, voteB, timeNs: 1_000_000_000n });
  });
});
