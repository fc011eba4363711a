/** What of sign bytes is compared when a validator is asked to sign the same step once more. */
import { describe, expect, it } from "@jest/globals";
import { proposalSignBytes, VOTE_TYPE, voteSignBytes } from "../../../chain/consensus/vote.js";
import type { Hash32 } from "../../../chain/hex.js";
import { delimited, ProtoWriter } from "../../../chain/protobuf/wire.js";
import { takeSignedTime } from "../../../node/consensus/signing/signed-time.js";

const CHAIN_ID = "chain_6940-1";
const TIME_NS = 1_700_000_000_123_456_789n;

const hash = `0x${"a1".repeat(32)}` as Hash32;
const place = { height: 2 ** 40, round: 3, blockId: { hash, parts: { total: 5, hash } } };

const voteOf = (timeNs: bigint) =>
  voteSignBytes(CHAIN_ID, { ...place, type: VOTE_TYPE.precommit, timeNs });
const proposalOf = (timeNs: bigint) =>
  proposalSignBytes(CHAIN_ID, { ...place, polRound: -1, timeNs });

describe("the time of sign bytes", () => {
  it.each([
    ["a vote", voteOf, 5],
    ["a proposal", proposalOf, 6],
  ])("is all that is taken out of those of %s", (_name, signBytesOf, timeField) => {
    const { timeNs, rest } = takeSignedTime(signBytesOf(TIME_NS), timeField);
    expect(timeNs).toBe(TIME_NS);
    expect(takeSignedTime(signBytesOf(1n), timeField)).toEqual({ timeNs: 1n, rest });
    const time = new ProtoWriter().integer(1, 1_700_000_000).integer(2, 123_456_789).finish();
    const field = new ProtoWriter().message(timeField, time).finish();
    const message = signBytesOf(TIME_NS);
    const at = message.indexOf(field);
    const others = Buffer.concat([message.subarray(0, at), message.subarray(at + field.length)]);
    // The length in front is a varint.
    expect(rest).toEqual(others.subarray(message.readInt8(0) < 0 ? 2 : 1));
  });

  it("is not taken out of a number in its place", () => {
    const message = new ProtoWriter().integer(1, 2).integer(5, 7).finish();
    expect(takeSignedTime(delimited(message), 5)).toEqual({ timeNs: 0n, rest: message });
  });

  it.each([
    ["nothing", Buffer.alloc(0)],
    ["the half of them", voteOf(TIME_NS).subarray(0, 40)],
    ["more than them", Buffer.concat([voteOf(TIME_NS), Buffer.of(8)])],
    ["a group", delimited(Buffer.of(0x0b))],
  ])("is not looked for in %s", (_name, bytes) => {
    expect(() => takeSignedTime(bytes, 5)).toThrow(
      expect.objectContaining({
        code: "INVALID_MESSAGE",
        message: "malformed consensus message: sign bytes are damaged",
      }),
    );
  });
});
