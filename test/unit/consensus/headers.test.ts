/** What headers cover beside the block itself, held against CometBFT 0.38.17's own Go code. */
import fs from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { COMMIT_FLAG, type CommitSignature } from "../../../chain/consensus/commit.js";
import {
  executionResult,
  FAILED_CODE,
  executionResultSteps,
} from "../../../chain/consensus/execution-result.js";
import { allAtOnce } from "../../../chain/steps/steps.js";
import { ValidatorSet } from "../../../chain/consensus/validator-set.js";
import { medianTimeNs } from "../../../node/blocks/commit-verification.js";
import { dataBytesOf, hashConsensusParams } from "../../../chain/consensus/consensus-params.js";
import { consensusParamsOf } from "../../../node/settings/genesis.js";
import { MAX_BLOCK_BYTES } from "../../../chain/consensus/consensus-block.js";
import { signingKeyOf } from "../../../chain/consensus/ed25519.js";
import { nextStartMs, timeoutMs } from "../../../node/consensus/machine/schedule.js";
import { validatorGenesis } from "../../helpers/chains/validator-node.js";

const vectors = JSON.parse(
  fs.readFileSync(new URL("../../fixtures/consensus/cometbft-state.json", import.meta.url), "utf8"),
) as {
  params: { maxBytes: string; maxGas: string; hash: string }[];
  results: string[];
  medians: { powers: string[]; timesNs: string[]; flags: number[]; medianNs: string }[];
};

describe("consensus_hash", () => {
  it.each(vectors.params)("of $maxBytes bytes and $maxGas gas is CometBFT's", (vector) => {
    const params = {
      ...consensusParamsOf(validatorGenesis(1).genesis.params),
      blockMaxBytes: Number(vector.maxBytes),
      blockMaxGas: BigInt(vector.maxGas),
    };
    expect(hashConsensusParams(params)).toBe(`0x${vector.hash}`);
  });
});

describe("a block's room for transactions", () => {
  it("is never more than a block can be sent with, whatever the genesis allows", () => {
    const params = consensusParamsOf(validatorGenesis(1).genesis.params);
    const room = dataBytesOf(params, 4, 100);
    expect(room).toBe(params.blockMaxBytes - 1_024 - 4 * 128 - 100);
    const most = dataBytesOf({ ...params, blockMaxBytes: MAX_BLOCK_BYTES }, 4, 100);
    const beyond = { ...params, blockMaxBytes: 10 * MAX_BLOCK_BYTES };
    expect(dataBytesOf(beyond, 4, 100)).toBe(most);
  });
});

describe("last_results_hash", () => {
  it("is CometBFT's for any number of results", () => {
    const results = [
      executionResult({ gasLimit: 21_000n }, { status: 1, gasUsed: 21_000n }),
      executionResult({ gasLimit: 100_000n }, { status: 0, gasUsed: 53_124n }),
      executionResult({ gasLimit: 0n }, { status: 1, gasUsed: 0n }),
    ];
    expect(results[1]?.code).toBe(FAILED_CODE);
    for (const [count, hash] of vectors.results.entries()) {
      expect(allAtOnce(executionResultSteps(results.slice(0, count)))).toBe(`0x${hash}`);
    }
  });
});

describe("the median time", () => {
  it.each(vectors.medians)("of powers $powers is CometBFT's", (vector) => {
    const set = ValidatorSet.genesis(
      vector.powers.map((power, index) => ({
        publicKey: signingKeyOf(Buffer.alloc(32, index + 1)).publicKey,
        power: BigInt(power),
      })),
    );
    // Powers fall in the set's order; equal ones may change places without any effect.
    const signatures = set.validators.map(({ address, power }, index): CommitSignature => {
      expect(power.toString()).toBe(vector.powers[index]);
      const flag = vector.flags[index];
      if (flag === COMMIT_FLAG.absent) return { flag };
      return {
        flag: flag === COMMIT_FLAG.nil ? COMMIT_FLAG.nil : COMMIT_FLAG.commit,
        validatorAddress: address,
        timeNs: BigInt(vector.timesNs[index] ?? ""),
        signature: new Uint8Array(64),
      };
    });
    const commit = { height: 1, round: 0, blockId: undefined, signatures };
    expect(medianTimeNs(commit, set)).toBe(BigInt(vector.medianNs));
  });
});

describe("the schedule", () => {
  it("keeps to one grid, however long blocks take", () => {
    expect(nextStartMs(undefined, 10_150, 200)).toBe(10_200);
    expect(nextStartMs(10_200, 10_260, 200)).toBe(10_400);
    expect(nextStartMs(10_400, 10_590, 200)).toBe(10_600);
    // Late by less than a tick: at once, and the grid stays.
    expect(nextStartMs(10_600, 10_850, 200)).toBe(10_800);
  });

  it("skips missed ticks instead of catching up", () => {
    expect(nextStartMs(10_000, 13_730, 200)).toBe(13_600);
  });

  it("waits one interval at most when the clock is set back", () => {
    expect(nextStartMs(90_000, 10_050, 200)).toBe(10_200);
  });

  it("gives each round more time than the one before", () => {
    const timeouts = {
      proposeMs: 3_000,
      proposeDeltaMs: 500,
      prevoteMs: 1_000,
      prevoteDeltaMs: 400,
      precommitMs: 2_000,
      precommitDeltaMs: 300,
    };
    expect([3, 5, 7].map((step) => timeoutMs(timeouts, step as 3, 2))).toEqual([
      4_000, 1_800, 2_600,
    ]);
  });
});
