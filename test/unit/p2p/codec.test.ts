/** Bytes between peers: what goes in comes out, and nothing else is let in. */
import { describe, expect, it } from "@jest/globals";
import * as fc from "fast-check";
import type { BlockId } from "../../../chain/consensus/block-id.js";
import { ChainError } from "../../../chain/errors.js";
import type { ConsensusMessage, RoundStatus } from "../../../node/consensus/consensus-ports.js";
import { STEP } from "../../../node/consensus/machine/consensus-state.js";
import {
  decodeConsensusMessage,
  decodeFrame,
  decodeSharedMessage,
  decodeTransactions,
  encodeConsensusMessage,
  encodeFrame,
  encodeTransactions,
  firstOfBatch,
  MAX_BATCH_COUNT,
  type PeerFrame,
} from "../../../node/p2p/peers/peer-codec.js";
import { hashOf, part, vote } from "../../integration/p2p/fakes.js";

const bits = (max: number) => fc.array(fc.boolean(), { maxLength: max });

const status: fc.Arbitrary<RoundStatus> = fc.record({
  height: fc.nat(),
  round: fc.nat(),
  step: fc.constantFrom(...Object.values(STEP)),
  hasProposal: fc.boolean(),
  parts: fc.option(
    fc.array(fc.boolean(), { minLength: 1, maxLength: 40 }).map((have) => ({
      header: { total: have.length, hash: hashOf("parts") },
      have,
    })),
    { nil: undefined },
  ),
  prevotes: bits(30),
  precommits: bits(30),
  earlier: fc.array(fc.record({ round: fc.nat(), prevotes: bits(9), precommits: bits(9) }), {
    maxLength: 4,
  }),
});

const statusOf = (height: number): RoundStatus => ({
  height,
  round: 0,
  step: STEP.propose,
  hasProposal: false,
  parts: undefined,
  prevotes: [],
  precommits: [],
  earlier: [],
});
const anySize = () => 10_000;
const sizeOfFour = () => 4;
const statusOrMessage = (bytes: Uint8Array) => decodeConsensusMessage(bytes, sizeOfFour);

describe("a consensus message", () => {
  it("comes out as it went in", () => {
    const one = vote({ height: 9 });
    const other = { ...vote({ height: 9, mark: 2 }), blockId: blockId("b") };
    const messages: ConsensusMessage[] = [
      part(3),
      { type: "vote", vote: one },
      {
        type: "proposal",
        proposal: {
          height: 4,
          round: 2,
          polRound: -1,
          blockId: blockId("p"),
          timeNs: 17n,
          signature: new Uint8Array(64).fill(1),
        },
      },
      {
        type: "evidence",
        evidence: { voteA: one, voteB: other, totalPower: 4n, validatorPower: 1n, timeNs: 8n },
      },
    ];
    for (const message of messages) {
      const bytes = encodeConsensusMessage(message);
      const again = decodeConsensusMessage(bytes, anySize);
      expect(again.type).toBe(message.type);
      expect(encodeConsensusMessage(again)).toEqual(bytes);
    }
    expect(decodeSharedMessage(encodeConsensusMessage({ type: "vote", vote: other }))).toEqual({
      type: "vote",
      vote: other,
    });
  });

  it("of any status comes out as it went in", () => {
    fc.assert(
      fc.property(status, (value) => {
        const message = { type: "status" as const, status: value };
        expect(decodeConsensusMessage(encodeConsensusMessage(message), anySize)).toEqual(message);
      }),
    );
  });

  it("is refused in any other encoding than the canonical one", () => {
    const bytes = encodeConsensusMessage({ type: "vote", vote: vote({}) });
    expect(() => decodeSharedMessage(Buffer.concat([bytes, bytes]))).toThrow(ChainError);
    // A varint with a needless last byte means the same and has another hash.
    const padded = Buffer.concat([bytes.subarray(0, 1), lengthPadded(bytes.subarray(1))]);
    expect(() => decodeSharedMessage(padded)).toThrow("canonical");
  });

  it("is refused with more bits, parts or rounds than there can be", () => {
    const base = statusOf(1);
    const refused = (change: Partial<RoundStatus>) => {
      const bytes = encodeConsensusMessage({ type: "status", status: { ...base, ...change } });
      expect(() => decodeConsensusMessage(bytes, sizeOfFour)).toThrow(ChainError);
    };
    const many = (count: number) => Array.from({ length: count }, () => false);
    refused({ prevotes: many(5) });
    refused({ precommits: many(10_000) });
    refused({ parts: { header: { total: 337, hash: hashOf("x") }, have: many(337) } });
    const round = { round: 1, prevotes: [], precommits: [] };
    refused({ earlier: Array.from({ length: 9 }, () => round) });
    refused({ step: 9 as never });
  });

  it("tells nothing of votes at a height whose validators are not known", () => {
    const said = { ...statusOf(9_000), prevotes: [true, true], hasProposal: true };
    const bytes = encodeConsensusMessage({ type: "status", status: said });
    expect(decodeConsensusMessage(bytes, () => undefined)).toEqual({
      type: "status",
      status: { ...statusOf(9_000), hasProposal: true },
    });
  });

  it("that is a status is not taken as gossip", () => {
    const bytes = encodeConsensusMessage({ type: "status", status: statusOf(1) });
    expect(() => decodeSharedMessage(bytes)).toThrow(ChainError);
  });

  it("of random or damaged bytes is refused, never anything else", () => {
    const good = encodeConsensusMessage({ type: "vote", vote: vote({}) });
    const damaged = fc
      .tuple(fc.nat(good.length - 1), fc.nat(255))
      .map(([at, value]) => Buffer.from(good).fill(value, at, at + 1));
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 300 }), damaged), (bytes) => {
        for (const decode of [
          statusOrMessage,
          decodeSharedMessage,
          decodeFrame,
          decodeTransactions,
        ]) {
          try {
            decode(bytes);
          } catch (error) {
            expect(error).toMatchObject({ code: "INVALID_MESSAGE" });
          }
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("a frame", () => {
  it("comes out as it went in", () => {
    const frames: PeerFrame[] = [
      {
        type: "hello",
        hello: {
          network: "chain_6941-1",
          genesisHash: hashOf("genesis"),
          moniker: "näme",
          version: "1",
          listenAddress: "1.2.3.4:26656",
          rpcAddress: "",
        },
      },
      { type: "ping" },
      { type: "consensus", message: Buffer.from([1, 2, 3]) },
      { type: "transactions", raws: [Buffer.from("a"), Buffer.from("bc")] },
    ];
    for (const frame of frames) expect(decodeFrame(encodeFrame(frame))).toEqual(frame);
  });

  it("shows the first transaction of a batch without its being read, and takes any bytes", () => {
    for (const length of [1, 127, 128, 20_000, 131_072]) {
      const batch = encodeTransactions([Buffer.alloc(length, 0x0b), Buffer.from([0x0a])]);
      expect([length, firstOfBatch(batch)[0]]).toEqual([length, 0x0b]);
    }
    for (const hex of ["", "0a", "0a80", "0a8080808080808001"]) {
      const bytes = Buffer.from(hex, "hex");
      expect(firstOfBatch(bytes).length).toBeLessThanOrEqual(bytes.length);
    }
  });

  it("is refused when a text or a batch is too large, or there is nothing in it", () => {
    const hello = {
      network: "n".repeat(257),
      genesisHash: hashOf("g"),
      moniker: "",
      version: "",
      listenAddress: "",
      rpcAddress: "",
    };
    expect(() => decodeFrame(encodeFrame({ type: "hello", hello }))).toThrow("too long");
    const many = Array.from({ length: MAX_BATCH_COUNT + 1 }, () => Buffer.from("x"));
    expect(() => decodeTransactions(encodeTransactions(many))).toThrow(ChainError);
    expect(() => decodeTransactions(encodeTransactions([]))).toThrow(ChainError);
    expect(() => decodeTransactions(encodeTransactions([Buffer.alloc(0)]))).toThrow(ChainError);
    expect(() => decodeFrame(Buffer.alloc(0))).toThrow(ChainError);
  });
});

function blockId(name: string): BlockId {
  return { hash: hashOf(name), parts: { total: 1, hash: hashOf(`${name} parts`) } };
}

/** The bytes with their leading length (one byte or two) written with a byte more. */
function lengthPadded(bytes: Buffer): Buffer {
  const size = (bytes[0] ?? 0) < 0x80 ? 1 : 2;
  const head = Buffer.from(bytes.subarray(0, size));
  head[size - 1] = (head[size - 1] ?? 0) | 0x80;
  return Buffer.concat([head, Buffer.from([0]), bytes.subarray(size)]);
}
