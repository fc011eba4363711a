/** What is proven of a height before its state is taken: headers around it, commits, and whose turn it is. */
import { describe, expect, it } from "@jest/globals";
import { COMMIT_FLAG } from "../../../../chain/consensus/commit.js";
import { fetchBackfill } from "../../../../node/statesync/backfill.js";
import type { BlockExtras } from "../../../../node/statesync/light/light-json.js";
import { proveState } from "../../../../node/statesync/light/light-state.js";
import { followingSet } from "../../../../node/statesync/light/light-validators.js";
import { HOUR_NS, lightChain, START_NS } from "../../../helpers/chains/light-blocks.js";
import type { LightBlocks } from "../../../helpers/chains/light-server.js";
import { at, client, codeOf, log, signal, twice, validators } from "./light-clients.js";

describe("whose turn it is", () => {
  it("follows from the set before, also where validators come and go", () => {
    const chain = lightChain(6, { validators: 3, change: 1 });
    let before = at(chain, 1).validators;
    for (let height = 2; height <= 6; height++) {
      const next = followingSet(before, at(chain, height).validators);
      expect([height, next.proposer]).toEqual([height, at(chain, height).validators.proposer]);
      before = next;
    }
  });

  it("is not believed where it does not follow", () => {
    expect(() => followingSet(validators, validators)).toThrow(
      expect.objectContaining({ code: "LIGHT_INVALID" }),
    );
  });
});

describe("a state", () => {
  const chain = lightChain(9, { validators: 3, change: 1 });
  const clock = { nowMs: () => 0, monotonicMs: () => 0 };
  const window = { maxAgeBlocks: 1, maxAgeNs: 1n };
  const prove = (height: number, blocks: LightBlocks) => {
    const providers = twice(blocks);
    const light = client({
      servers: providers,
      trusted: at(blocks, 2),
      nowNs: START_NS + HOUR_NS,
    });
    return proveState(height, { light, providers }, signal);
  };

  it("is proven with what was decided before, at and after it", async () => {
    const state = await prove(7, chain);
    expect(state.header).toBe(at(chain, 7).header);
    expect(state.next).toBe(at(chain, 8).header);
    expect(state.blockId).toEqual(at(chain, 7).commit.blockId);
    expect(state.lastCommit).toBe(at(chain, 6).commit);
    const sets = [state.validators, state.nextValidators, state.afterNextValidators];
    for (const [index, set] of sets.entries()) {
      expect(set).toEqual(at(chain, 7 + index).validators);
      expect(set.proposer).toEqual(at(chain, 7 + index).validators.proposer);
    }
    const past = { providers: twice(chain), window, clock, log };
    const { headers } = await fetchBackfill(state.header, past, signal);
    expect(headers.map(({ height }) => height)).toEqual([6, 5, 4, 3, 2, 1]);
  });

  it("has the commit that was decided, not one that was seen early", async () => {
    const four = lightChain(9, { validators: 4, change: 0 });
    const providers = twice(four);
    const seen = at(four, 7);
    const signatures = seen.commit.signatures.with(3, { flag: COMMIT_FLAG.absent });
    const early = { ...seen, commit: { ...seen.commit, signatures } };
    for (const server of providers) server.early.set(7, early);
    const trusted = at(four, 2);
    const light = client({ servers: providers, trusted, nowNs: START_NS + HOUR_NS });
    const parts = { light, providers };
    expect((await proveState(7, parts, signal)).commit).toBe(seen.commit);
    const wrong = twice(new Map([...four, [7, early]]));
    const other = client({ servers: wrong, trusted, nowNs: START_NS + HOUR_NS });
    const proving = proveState(7, { ...parts, light: other, providers: wrong }, signal);
    expect(await codeOf(proving)).toBe("SERVER_ANSWER_INVALID");
    const moved = { ...seen, commit: { ...seen.commit, round: seen.commit.round + 1 } };
    const liars = twice(new Map([...four, [7, moved]]));
    for (const server of liars) server.early.set(7, early);
    const third = client({ servers: liars, trusted, nowNs: START_NS + HOUR_NS });
    const told = proveState(7, { ...parts, light: third, providers: liars }, signal);
    expect(await codeOf(told)).toBe("SERVER_ANSWER_INVALID");
  });

  it("waits for the two heights above it", async () => {
    expect(await codeOf(prove(8, chain))).toBe("SERVER_UNAVAILABLE");
  });

  it("takes no block that is not the decided one", async () => {
    const changes: readonly Partial<BlockExtras>[] = [
      { header: at(chain, 6).header },
      { lastCommit: at(chain, 5).commit },
      { lastCommit: { ...at(chain, 6).commit, signatures: [] } },
      // The header's hash covers the signatures of a commit, and nothing else of it.
      { lastCommit: { ...at(chain, 6).commit, round: 2 } },
      { lastCommit: { ...at(chain, 6).commit, height: 5 } },
      { lastCommit: { ...at(chain, 6).commit, blockId: at(chain, 5).commit.blockId } },
    ];
    for (const change of changes) {
      const providers = twice(chain);
      for (const server of providers) server.extras = change;
      const light = client({
        servers: providers,
        trusted: at(chain, 2),
        nowNs: START_NS + HOUR_NS,
      });
      const proving = proveState(7, { light, providers }, signal);
      expect(await codeOf(proving)).toBe("SERVER_ANSWER_INVALID");
    }
  });
});
