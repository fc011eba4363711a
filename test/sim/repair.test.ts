/**
 * Progress by nothing but what nodes tell of themselves, after a network was hostile for a while.
 * CAUSEWAY_SIM_SCHEDULES sets how many are tried, CAUSEWAY_SIM_SEED where the seeds begin.
 */
import { describe, expect, it } from "@jest/globals";
import type { BlockId } from "../../chain/consensus/block-id.js";
import { ValidatorSet } from "../../chain/consensus/validator-set.js";
import { VOTE_TYPE, type VoteType } from "../../chain/consensus/vote.js";
import { type Input, STEP } from "../../node/consensus/machine/consensus-state.js";
import { createRandom } from "../helpers/random.js";
import { RepairNetwork, type RepairResult } from "./repair-network.js";
import { identityOf } from "./sim-identities.js";

const SCHEDULES = Number(process.env["CAUSEWAY_SIM_SCHEDULES"] ?? 300);
const FIRST_SEED = Number(process.env["CAUSEWAY_SIM_SEED"] ?? 1);

/** Longest way of a perfect network to the next heights. */
const RECOVERY_MS = 60_000;

function runSchedule(seed: number): RepairResult {
  const random = createRandom(seed);
  const validators = random.pick([4, 5, 7]);
  const hostileMs = 400 + random.integer(4_000);
  return new RepairNetwork({
    random,
    validators,
    liars: Math.floor((validators - 1) / 3),
    heights: 2,
    dropShare: random.pick([0, 0.3, 0.6]),
    partitionShare: random.pick([0, 0.5, 1]),
    hostileMs,
    maxMs: hostileMs + RECOVERY_MS,
  }).run();
}

const { prevote, precommit } = VOTE_TYPE;
const set = ValidatorSet.genesis(
  [0, 1, 2, 3].map((index) => ({ publicKey: identityOf(index).publicKey, power: 10n })),
);

/** Votes of all four validators of height 1, in their order. */
function votesOf(
  type: VoteType,
  round: number,
  blockIds: readonly (BlockId | undefined)[],
): readonly Input[] {
  return blockIds.map((blockId, index) => {
    const validatorAddress = identityOf(index).address;
    const validatorIndex = set.indexOf(validatorAddress);
    const content = { type, height: 1, round, blockId, timeNs: 0n };
    const vote = { ...content, validatorAddress, validatorIndex, signature: new Uint8Array(64) };
    return { type: "vote", vote };
  });
}

/**
 * Two rounds in which a liar, the first of four, showed a polka for one block to the last validator
 * alone, then one for another block to the two others alone: both sides are locked, and need each other.
 */
function runTwoLocks(): RepairResult {
  const network = new RepairNetwork({
    random: createRandom(FIRST_SEED),
    validators: 4,
    liars: 1,
    heights: 1,
    // What comes of what is given here reaches nobody: all of that is given, too.
    dropShare: 1,
    partitionShare: 0,
    hostileMs: 1,
    maxMs: RECOVERY_MS,
  });
  const [early, late] = [network.newBlock("early"), network.newBlock("late")];
  const proposal = { height: 1, polRound: -1, timeNs: 0n, signature: new Uint8Array(64) };
  for (const index of [1, 2, 3]) {
    const isLast = index === 3;
    const inputs: readonly Input[] = [
      { type: "timeout", step: STEP.newHeight, round: 0 },
      { type: "proposal", proposal: { ...proposal, round: 0, blockId: early } },
      { type: "block", block: { id: early, isValid: true } },
      ...votesOf(prevote, 0, [isLast ? early : undefined, undefined, early, early]),
      { type: "timeout", step: STEP.prevoteWait, round: 0 },
      ...votesOf(precommit, 0, [undefined, undefined, undefined, early]),
      { type: "timeout", step: STEP.precommitWait, round: 0 },
      { type: "proposal", proposal: { ...proposal, round: 1, blockId: late } },
      { type: "block", block: { id: late, isValid: true } },
      ...votesOf(prevote, 1, [isLast ? undefined : late, late, late, early]),
      { type: "timeout", step: STEP.prevoteWait, round: 1 },
      ...votesOf(precommit, 1, [undefined, late, late, undefined]),
      { type: "timeout", step: STEP.precommitWait, round: 1 },
    ];
    for (const input of inputs) network.give(index, input);
  }
  return network.run();
}

describe("what nodes send to those who lack it", () => {
  it(`lets all go on in ${SCHEDULES} schedules`, () => {
    const failures: string[] = [];
    let [rounds, conflicts] = [0, 0];
    for (let seed = FIRST_SEED; seed < FIRST_SEED + SCHEDULES; seed++) {
      const result = runSchedule(seed);
      rounds += result.maxRound;
      conflicts += result.conflicts;
      failures.push(...result.faults.map((fault) => `seed ${seed}: ${fault}`));
      if (!result.isFinished) failures.push(`seed ${seed}: ${result.places.join(", ")}`);
    }
    expect(failures).toEqual([]);
    // The schedules were hostile: rounds were lost, and liars were seen.
    expect(rounds).toBeGreaterThan(SCHEDULES / 4);
    expect(conflicts).toBeGreaterThan(0);
  });

  it("lifts a lock in the next rounds, whatever a liar told of the polka that does", () => {
    const result = runTwoLocks();
    expect([result.faults, result.isFinished]).toEqual([[], true]);
    // One of those who have seen the later polka proposes within four rounds.
    expect(result.maxRound).toBeLessThanOrEqual(5);
  });
});
