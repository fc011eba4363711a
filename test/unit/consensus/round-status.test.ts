/** What a node gives to a peer that has less: what is missing, bounded, and nothing else. */
import { describe, expect, it } from "@jest/globals";
import { COMMIT_FLAG, type Commit } from "../../../chain/consensus/commit.js";
import { PART_BYTES, splitIntoParts } from "../../../chain/consensus/consensus-block.js";
import type { Hash32 } from "../../../chain/hex.js";
import type { ConsensusMessage, RoundStatus } from "../../../node/consensus/consensus-ports.js";
import { STEP } from "../../../node/consensus/machine/consensus-state.js";
import { HeightBlocks } from "../../../node/consensus/proposals/height-blocks.js";
import {
  idleStatus,
  repairDecided,
  repairSameHeight,
  roundStatus,
} from "../../../node/consensus/machine/round-status.js";
import { orderedValidators, Scenario } from "./scenario.js";

const NONE = [false, false, false, false];

function status(change: Partial<RoundStatus> = {}): RoundStatus {
  return { ...idleStatus(1), step: STEP.prevote, prevotes: NONE, precommits: NONE, ...change };
}

/** Messages in short: "proposal", "part 3", "prevote 0/2" (round, validator). */
function brief(messages: readonly ConsensusMessage[]): string[] {
  return messages.map((message) => {
    if (message.type === "part") return `part ${message.part.index}`;
    if (message.type !== "vote") return message.type;
    const { type, round, validatorIndex } = message.vote;
    return `${type === 1 ? "prevote" : "precommit"} ${round}/${validatorIndex}`;
  });
}

const upTo = (to: number, from: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i);

/** A block of some parts, here whole. */
function wholeBlock(count: number) {
  const { header, parts } = splitIntoParts(Buffer.alloc(count * PART_BYTES, 3));
  const id = { hash: `0x${"41".repeat(32)}` as Hash32, parts: header };
  const blocks = new HeightBlocks();
  blocks.want(header);
  blocks.keep({ id, parts, block: undefined, executed: undefined });
  return { id, header, parts, blocks };
}

describe("a peer at the same height", () => {
  it("gets proposal and parts, then only the parts that are missing", () => {
    const { id, header, blocks } = wholeBlock(3);
    const { state } = new Scenario({ validators: 4, own: -1 }).start();
    const content = { height: 1, round: 0, polRound: -1, blockId: id, timeNs: 0n };
    const proposal = { ...content, signature: new Uint8Array(64) };
    const own = { ...state, proposal };
    expect(brief(repairSameHeight(own, blocks, status()))).toEqual([
      "proposal",
      "part 0",
      "part 1",
      "part 2",
    ]);
    const parts = { header, have: [true, false, true] };
    const later = status({ hasProposal: true, parts });
    expect(brief(repairSameHeight(own, blocks, later))).toEqual(["part 1"]);
    const other = { header: { ...header, total: 9 }, have: [] };
    expect(repairSameHeight(own, blocks, status({ hasProposal: true, parts: other }))).toEqual([]);
  });

  it("gets the votes that it lacks, of its round and of those it has to follow", () => {
    const scenario = new Scenario({ validators: 4, own: -1 }).start();
    scenario.prevote(0, "nil", 0, 1).precommit(1, "nil", 0, 1, 2);
    const { state } = scenario;
    expect(state.round).toBe(1);
    const blocks = new HeightBlocks();
    const all = brief(repairSameHeight(state, blocks, status()));
    expect(all).toHaveLength(5);
    expect(all.filter((one) => one.startsWith("prevote 0/"))).toHaveLength(2);
    expect(all.filter((one) => one.startsWith("precommit 1/"))).toHaveLength(3);
    const own = roundStatus(state, blocks);
    expect(own.earlier.map(({ round }) => round)).toEqual([0]);
    const half = { ...own, precommits: own.precommits.map((has, at) => has && at > 1) };
    const missing = own.precommits.filter((has, at) => has && at <= 1).length;
    expect(repairSameHeight(state, blocks, half)).toHaveLength(missing);
    const equal = { ...own, step: STEP.commit };
    expect(repairSameHeight(state, blocks, equal)).toEqual([]);
  });

  it("is told of the rounds that were, whatever liars vote in rounds to come", () => {
    const scenario = new Scenario({ validators: 13, own: -1 }).start();
    const honest = [4, 5, 6, 7, 8, 9, 10, 11, 12];
    scenario
      .prevote(0, "A", ...honest)
      .precommit(0, "nil", ...honest)
      .precommit(1, "nil", ...honest);
    for (const liar of [0, 1, 2, 3]) {
      for (const round of [10, 11]) scenario.prevote(round + 2 * liar, "nil", liar);
    }
    const { state } = scenario;
    expect([state.round, state.votes.knownRounds()]).toEqual([1, [0, 1, ...upTo(17, 10)]]);
    const told = roundStatus(state, new HeightBlocks()).earlier.map(({ round }) => round);
    expect(told.toSorted((a, b) => a - b)).toEqual([0, ...upTo(17, 11)]);
  });

  it("gets the votes of a majority again when a liar told it another one", () => {
    const scenario = new Scenario({ validators: 4, own: -1 }).start();
    scenario.prevote(0, "A", 0, 1, 2);
    const blocks = new HeightBlocks();
    // It has three votes too, but does not see two thirds for one block.
    const peer = { ...roundStatus(scenario.state, blocks), parts: undefined, step: STEP.prevote };
    expect(repairSameHeight(scenario.state, blocks, peer)).toHaveLength(3);
    const moved = { ...peer, step: STEP.precommit };
    expect(repairSameHeight(scenario.state, blocks, moved)).toEqual([]);
  });

  it("gets the prevotes that the proposal points to again when it waits for them", () => {
    const scenario = new Scenario({ validators: 4, own: -1 }).start();
    scenario.prevote(0, "A", 0, 1, 2).precommit(0, "nil", 0, 1, 2);
    const { id, header, blocks } = wholeBlock(3);
    const content = { height: 1, round: 1, polRound: 0, blockId: id, timeNs: 0n };
    const proposal = { ...content, signature: new Uint8Array(64) };
    const state = { ...scenario.state, round: 1, proposal };
    const { earlier } = roundStatus(state, blocks);
    const have = [true, true, true];
    // It has a vote of each, a liar's among them, and not two thirds for the block.
    const waiting = status({ round: 1, step: STEP.propose, hasProposal: true, earlier });
    const whole = { ...waiting, parts: { header, have } };
    const all = ["prevote 0/0", "prevote 0/1", "prevote 0/2"];
    expect(brief(repairSameHeight(state, blocks, whole)).toSorted()).toEqual(all);
    // It may go on as soon as the block is whole, or has gone on.
    const part = { ...waiting, parts: { header, have: [true, false, true] } };
    expect(brief(repairSameHeight(state, blocks, part))).toEqual(["part 1"]);
    const gone = { ...whole, step: STEP.prevote };
    expect(repairSameHeight(state, blocks, gone)).toEqual([]);
  });
});

describe("a peer at a decided height", () => {
  const { set } = orderedValidators(4);
  const { id, header, parts } = wholeBlock(20);
  const commit: Commit = {
    height: 1,
    round: 2,
    blockId: id,
    signatures: set.validators.map(({ address: validatorAddress }, at) =>
      at === 3
        ? { flag: COMMIT_FLAG.absent }
        : { flag: COMMIT_FLAG.commit, validatorAddress, timeNs: 1n, signature: new Uint8Array(64) },
    ),
  };

  it("gets the commit's votes and the first parts at once, at most 1 MiB", () => {
    const messages = brief(repairDecided(commit, { header, parts }, status()));
    expect(messages.slice(0, 3)).toEqual(["precommit 2/0", "precommit 2/1", "precommit 2/2"]);
    expect(messages.slice(3)).toEqual(parts.slice(0, 16).map(({ index }) => `part ${index}`));
  });

  it("gets the parts that it still lacks", () => {
    const earlier = [{ round: 2, prevotes: NONE, precommits: [true, true, true, false] }];
    const have = parts.map(({ index }) => index < 18);
    const peer = status({ earlier, parts: { header, have } });
    expect(brief(repairDecided(commit, { header, parts }, peer))).toEqual(["part 18", "part 19"]);
  });

  it("gets all votes again when it has some of everybody and did not decide", () => {
    const earlier = [{ round: 2, prevotes: NONE, precommits: [true, true, true, true] }];
    const have = parts.map(() => true);
    const peer = status({ earlier, parts: { header, have } });
    expect(brief(repairDecided(commit, { header, parts }, peer))).toHaveLength(3);
  });

  it("gets those of the largest set with stake, whichever a liar told it otherwise", () => {
    const all = Array.from({ length: 500 }, () => true);
    const [signature] = commit.signatures;
    if (signature === undefined) throw new Error("no signature");
    const large = { ...commit, signatures: all.map(() => signature) };
    const earlier = [{ round: 2, prevotes: all, precommits: all }];
    const peer = status({ earlier, parts: { header, have: parts.map(() => true) } });
    expect(brief(repairDecided(large, { header, parts }, peer))).toEqual(
      all.map((_, index) => `precommit 2/${index}`),
    );
  });
});
