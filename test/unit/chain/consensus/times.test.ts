/** Times that validators choose: what is counted can also be shown. */
import { describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { decodeTime, encodeTime, ZERO_TIME_NS } from "../../../../chain/consensus/block-id.js";
import {
  type Commit,
  COMMIT_FLAG,
  decodeCommit,
  encodeCommit,
} from "../../../../chain/consensus/commit.js";
import { decodeVote, encodeVote, VOTE_TYPE } from "../../../../chain/consensus/vote.js";
import type { Hash32 } from "../../../../chain/hex.js";
import { commitJson, voteJson } from "../../../../node/rpc/comet/json/encode.js";
import { time } from "../../../../node/rpc/comet/json/evidence-json.js";

const NS = 1_000_000_000n;
/** Seconds of the last moment that Timestamp has: 9999-12-31T23:59:59. */
const LAST = 253_402_300_799n;

const hash = `0x${"ab".repeat(32)}` as Hash32;
const blockId = { hash, parts: { total: 1, hash } };
const validatorAddress = parseAddress(`0x${"cd".repeat(20)}`);
const signature = new Uint8Array(64);

const voteAt = (timeNs: bigint) => ({
  type: VOTE_TYPE.precommit,
  height: 7,
  round: 0,
  blockId,
  timeNs,
  validatorAddress,
  validatorIndex: 0,
  signature,
});
const commitAt = (timeNs: bigint): Commit => ({
  height: 7,
  round: 0,
  blockId,
  signatures: [{ flag: COMMIT_FLAG.commit, validatorAddress, timeNs, signature }],
});

describe("times in votes and commits", () => {
  it("reach from year 1 to 9999, as far as their texts do", () => {
    for (const timeNs of [ZERO_TIME_NS + 1n, -1n, 0n, LAST * NS + 999_999_999n]) {
      const vote = decodeVote(encodeVote(voteAt(timeNs)));
      expect(vote.timeNs).toBe(timeNs);
      expect(time.parse(voteJson(vote).timestamp)).toBe(timeNs);
      const commit = decodeCommit(encodeCommit(commitAt(timeNs)));
      const [entry] = commitJson(commit).signatures;
      expect(time.parse(entry?.timestamp)).toBe(timeNs);
    }
  });

  it("are refused beyond that: a commit with one could be shown to nobody", () => {
    const far = [ZERO_TIME_NS - 1n, (LAST + 1n) * NS, 8_640_000_000_001n * NS, 2n ** 62n * NS];
    for (const timeNs of [...far, -(2n ** 62n) * NS]) {
      expect(() => decodeTime(encodeTime(timeNs))).toThrow("malformed");
      expect(() => decodeVote(encodeVote(voteAt(timeNs)))).toThrow("malformed");
      expect(() => decodeCommit(encodeCommit(commitAt(timeNs)))).toThrow("malformed");
    }
  });
});
