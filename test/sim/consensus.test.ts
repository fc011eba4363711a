/**
 * Thousands of seeded schedules: agreement and validity always, progress once the network is
 * stable. CAUSEWAY_SIM_SCHEDULES sets how many, CAUSEWAY_SIM_SEED runs a single one again.
 */
import { describe, expect, it } from "@jest/globals";
import { VOTE_TYPE } from "../../chain/consensus/vote.js";
import { advance } from "../../node/consensus/machine/state-machine.js";
import { createRandom } from "../helpers/random.js";
import { ConsensusNetwork } from "./consensus-network.js";
import { simAddress } from "./sim-identities.js";
import type { Machine, SimResult } from "./sim-options.js";

const SCHEDULES = Number(process.env["CAUSEWAY_SIM_SCHEDULES"] ?? 300);
const FIRST_SEED = Number(process.env["CAUSEWAY_SIM_SEED"] ?? 1);
const HEIGHTS = 3;

/** Enough that some of them fork when the machine is broken. */
const BROKEN_SCHEDULES = 50;

/** A network whose hostility follows from the seed. */
function runSchedule(seed: number, machine?: Machine): SimResult {
  const random = createRandom(seed);
  const validators = 4 + random.integer(4);
  const mayLie = Math.floor((validators - 1) / 3);
  return new ConsensusNetwork({
    random,
    validators,
    liars: random.integer(mayLie + 1),
    heights: HEIGHTS,
    dropShare: random.pick([0, 0.05, 0.2, 0.5]),
    deafShare: random.pick([0, 0.3, 0.5]),
    areDecisionsHidden: random.integer(2) === 0,
    maxDelayMs: random.pick([10, 100, 400]),
    crashShare: random.pick([0, 0.005, 0.03]),
    partitionShare: random.pick([0, 0.2, 0.6]),
    ...(machine === undefined ? {} : { machine }),
  }).run();
}

/**
 * The adversary of the proofs: in round 0 one node gets no proposal and does not hear another,
 * the decider, whose precommit nobody hears; so the decider alone learns the decision.
 */
function runSplitSchedule(seed: number, machine: Machine): SimResult {
  const random = createRandom(seed);
  const ignorant = random.integer(4);
  const decider = (ignorant + 1 + random.integer(3)) % 4;
  return new ConsensusNetwork({
    random,
    validators: 4,
    liars: 0,
    heights: 1,
    dropShare: 0,
    deafShare: 0,
    isDeaf: (to, message) => {
      if (message.kind === "proposal") return message.proposal.round === 0 && to === ignorant;
      const { round, type, validatorAddress } = message.vote;
      if (round > 0 || validatorAddress !== simAddress(decider)) return false;
      return type === VOTE_TYPE.precommit || to === ignorant;
    },
    areDecisionsHidden: true,
    maxDelayMs: 10,
    crashShare: 0,
    partitionShare: 0,
    machine,
  }).run();
}

/** What is wrong with a run; empty when nothing is. */
function faultsOf(result: SimResult): string[] {
  const faults = [...result.faults];
  if (!result.isFinished) faults.push(`no progress: ${result.timeMs} ms, round ${result.maxRound}`);
  return faults;
}

/** Forgets its lock before every input: the rule that keeps two rounds from deciding two blocks. */
const withoutLock: Machine = (state, input) =>
  advance({ ...state, lockedBlock: undefined, lockedRound: -1 }, input);

describe("consensus under hostile schedules", () => {
  it(`agrees and goes on in ${SCHEDULES} schedules`, () => {
    const failures: string[] = [];
    let rounds = 0;
    let conflicts = 0;
    let crashes = 0;
    for (let seed = FIRST_SEED; seed < FIRST_SEED + SCHEDULES; seed++) {
      const result = runSchedule(seed);
      rounds += result.maxRound;
      conflicts += result.conflicts;
      crashes += result.crashes;
      failures.push(...faultsOf(result).map((fault) => `seed ${seed}: ${fault}`));
    }
    expect(failures).toEqual([]);
    // The schedules were hostile: rounds were lost, liars were seen, nodes went down.
    expect(rounds).toBeGreaterThan(SCHEDULES / 4);
    if (SCHEDULES >= 100) {
      expect(conflicts).toBeGreaterThan(0);
      expect(crashes).toBeGreaterThan(0);
    }
  });

  it("would be seen to fork without the lock rule", () => {
    const forksOf = (machine: Machine) => {
      let forks = 0;
      for (let seed = 1; seed <= BROKEN_SCHEDULES; seed++) {
        const { faults } = runSplitSchedule(seed, machine);
        forks += faults.filter((fault) => fault.startsWith("fork")).length;
      }
      return forks;
    };
    expect(forksOf(withoutLock)).toBeGreaterThan(0);
    expect(forksOf(advance)).toBe(0);
  });
});
