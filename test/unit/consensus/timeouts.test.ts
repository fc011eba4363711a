/** Time limits of consensus: the defaults follow the chain's pace, what an operator wrote does not. */
import { describe, expect, it } from "@jest/globals";
import { CONFIG_FILE, consensusTimeouts } from "../../../node/settings/config.js";
import { loadConfig } from "../../../runtime/config/config.js";

function timeouts(blockIntervalMs: number, settings: Readonly<Record<string, string>> = {}) {
  const env = Object.fromEntries(
    Object.entries(settings).map(([key, text]) => {
      return [`CAUSEWAY_CONFIG_CONSENSUS_${key.toUpperCase()}`, text];
    }),
  );
  return consensusTimeouts(loadConfig({ home: "/nowhere", env }, CONFIG_FILE), blockIntervalMs);
}

const COMETBFT = {
  proposeMs: 3_000,
  proposeDeltaMs: 500,
  prevoteMs: 1_000,
  prevoteDeltaMs: 500,
  precommitMs: 1_000,
  precommitDeltaMs: 500,
};

describe("the time limits of consensus", () => {
  it("are CometBFT's for blocks every two seconds and slower", () => {
    expect(timeouts(2_000)).toEqual(COMETBFT);
    expect(timeouts(60_000)).toEqual(COMETBFT);
  });

  it("shrink with the interval, and end where machines are busy", () => {
    expect(timeouts(1_000)).toEqual({
      proposeMs: 1_500,
      proposeDeltaMs: 250,
      prevoteMs: 500,
      prevoteDeltaMs: 250,
      precommitMs: 500,
      precommitDeltaMs: 250,
    });
    const least = {
      proposeMs: 500,
      proposeDeltaMs: 200,
      prevoteMs: 200,
      prevoteDeltaMs: 200,
      precommitMs: 200,
      precommitDeltaMs: 200,
    };
    expect([timeouts(200), timeouts(50)]).toEqual([least, least]);
  });

  it("stay as they were written, the default in another unit included", () => {
    const settings = { timeout_propose: "3000ms", timeout_precommit: "40ms" };
    expect(timeouts(200, settings)).toMatchObject({ proposeMs: 3_000, precommitMs: 40 });
    expect(timeouts(200, { timeout_propose: "10s" }).proposeMs).toBe(10_000);
  });
});
