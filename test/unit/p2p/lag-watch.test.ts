/** When a node that takes part believes that it has fallen behind. */
import { afterEach, describe, expect, it } from "@jest/globals";
import type { Height } from "../../../chain/hex.js";
import type { DecidedBlock } from "../../../node/consensus/consensus-ports.js";
import type { BlockSource } from "../../../node/p2p/blocks/block-protocol.js";
import { type HeightClaim, LagWatch } from "../../../node/p2p/blocks/lag-watch.js";
import type { NodeId } from "../../../node/p2p/node-key.js";
import { P2pError } from "../../../node/p2p/p2p-error.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { until } from "../../helpers/until.js";
import { inVirtualTime } from "../../helpers/virtual-time.js";
import { hashOf, trueBlock } from "../../integration/p2p/fakes.js";
import { TestClock } from "./clock.js";

type Mode = "honest" | "forged" | "empty" | "silent" | "garbled" | "other";

const stopping = new Set<AbortController>();

afterEach(() => {
  for (const one of stopping) one.abort(new Error("over"));
  stopping.clear();
});

function answerOf(height: Height, mode: Mode): DecidedBlock {
  const decided = trueBlock(mode === "other" ? height - 1 : height);
  if (mode !== "forged") return decided;
  const blockId = { hash: hashOf("forged"), parts: { total: 1, hash: hashOf("x") } };
  return { ...decided, commit: { ...decided.commit, blockId } };
}

function claimOf(name: string, options: { height: Height; mode?: Mode }) {
  const asked: Height[] = [];
  const { mode = "honest" } = options;
  const claim: HeightClaim & {
    source: { range: BlockSource["range"]; blocks: BlockSource["blocks"] };
  } = {
    nodeId: name as NodeId,
    height: options.height,
    source: {
      range: () => Promise.reject(new Error("nobody asks for it")),
      blocks: async ({ from }, { signal, onBlock }) => {
        asked.push(from);
        if (mode === "empty") return 0;
        if (mode === "garbled") throw new P2pError("PEER_PROTOCOL", "garbled");
        if (mode === "silent") {
          await new Promise((_resolve, reject) => {
            signal.addEventListener("abort", () => reject(signal.reason));
          });
        }
        onBlock(answerOf(from, mode), 100);
        return 1;
      },
    },
  };
  return { claim, asked };
}

/** Limits that the clock of the test reaches; only looks and rests take real time. */
const LIMITS = {
  lookMs: 1,
  patienceMs: 1_000,
  standstillMs: 600_000,
  proofMs: 40,
  doubtMs: 30_000,
  restMs: 1_000,
};

function stage(own: Height, claims: HeightClaim[]) {
  const state = { own, isProved: false, looks: 0 };
  const clock = new TestClock();
  const reports: string[] = [];
  const watch = new LagWatch({
    height: () => state.own,
    claims: () => {
      state.looks++;
      return claims;
    },
    report: (nodeId, offence) => reports.push(`${nodeId} ${offence}`),
    clock,
    log: createLogger({ component: "test", level: "silent" }),
    limits: LIMITS,
  });
  const witness = {
    // Only the chain's true commits are signed by its validators.
    isProof: (commit: DecidedBlock["commit"]) =>
      commit.blockId?.hash === trueBlock(commit.height).commit.blockId?.hash,
  };
  const run = async (): Promise<void> => {
    const controller = new AbortController();
    stopping.add(controller);
    state.isProved = false;
    await watch.proved(witness, controller.signal);
    state.isProved = true;
  };
  /** Moves the clock, and lets the watch look at it. */
  const pass = async (ms: number) => {
    clock.timeMs += ms;
    const { looks } = state;
    await until(() => state.isProved || state.looks >= looks + 3, { timeoutMs: 5_000 });
  };
  return { state, reports, run, pass, claims };
}

describe("the watch over the own height", () => {
  it("asks a peer that is far ahead for a block between, and believes its commit", async () => {
    const { claim, asked } = claimOf("ahead", { height: 40 });
    const { run, pass } = stage(10, [claim]);
    const done = run();
    await pass(0);
    expect(asked).toEqual([]);
    await pass(1_000);
    await done;
    expect(asked).toEqual([26]);
  });

  it("asks nobody who is a few heights ahead, or who was ahead for a moment", async () => {
    const near = claimOf("near", { height: 26 });
    const brief = claimOf("brief", { height: 40 });
    const { run, pass, claims } = stage(10, [near.claim, brief.claim]);
    run().catch(() => undefined);
    await pass(999);
    claims.pop();
    await pass(5_000);
    claims.push(brief.claim);
    await pass(999);
    expect([...near.asked, ...brief.asked]).toEqual([]);
  });

  it("asks for the very next height where the own one has stood still for long", async () => {
    const { claim, asked } = claimOf("next", { height: 12 });
    const equal = claimOf("equal", { height: 11 });
    const { state, run, pass } = stage(9, [equal.claim, claim]);
    const done = run();
    done.catch(() => undefined);
    await pass(0);
    await pass(300_000);
    // A height that came in between: it does not stand still.
    state.own = 10;
    await pass(0);
    await pass(599_999);
    expect(asked).toEqual([]);
    await pass(1);
    await pass(1_000);
    expect([asked, equal.asked]).toEqual([[11], []]);
    await done;
  });

  it("goes on where the next height came while its proof was awaited", async () => {
    const { claim, asked } = claimOf("next", { height: 12 });
    const { state, run, pass } = stage(10, [claim]);
    run().catch(() => undefined);
    const give = claim.source.blocks;
    claim.source.blocks = async (request, options) => {
      const count = await give(request, options);
      state.own = 11;
      return count;
    };
    await pass(0);
    await pass(600_000);
    await pass(1_000);
    await pass(1_000);
    expect([asked, state.isProved]).toEqual([[11], false]);
  });

  it("believes the oldest block of a peer that has deleted those between", async () => {
    const { claim, asked } = claimOf("pruned", { height: 90_000 });
    const give = claim.source.blocks;
    claim.source.range = async () => ({ base: 50_000, height: 89_999 });
    claim.source.blocks = async (request, options) => {
      if (request.from >= 50_000) return give(request, options);
      asked.push(request.from);
      return 0;
    };
    const { run, pass } = stage(10, [claim]);
    const done = run();
    await pass(0);
    await pass(1_000);
    await done;
    expect(asked).toEqual([26, 50_000]);
  });

  it("waits longer for a peer that says that its proof comes later, and not for ever", async () => {
    const { claim, asked } = claimOf("busy", { height: 40 });
    const give = claim.source.blocks;
    const tries: { readonly giveMs: number; wasGivenUp: boolean }[] = [];
    claim.source.blocks = async (request, options) => {
      options.onLater?.();
      // Timers fire in the order of their times, however late that is.
      const one = { giveMs: LIMITS.proofMs * (tries.length === 0 ? 4 : 2), wasGivenUp: false };
      tries.push(one);
      await new Promise((resolve) => setTimeout(resolve, one.giveMs));
      one.wasGivenUp = options.signal.aborted;
      options.signal.throwIfAborted();
      return give(request, options);
    };
    const { reports, run, pass } = stage(10, [claim]);
    const done = run();
    await pass(0);
    await pass(1_000);
    await until(() => tries[0]?.wasGivenUp === true, { timeoutMs: 10_000 });
    await pass(30_000);
    await done;
    expect(tries.map(({ wasGivenUp }) => wasGivenUp)).toEqual([true, false]);
    expect([asked, reports]).toEqual([[26], []]);
  });

  const unproved: Mode[] = ["forged", "empty", "silent", "garbled", "other"];
  it.each(unproved)(
    "is not moved by a claim of 10^9 (%s), and asks ever more rarely",
    async (mode) => {
      const { claim, asked } = claimOf("liar", { height: 1_000_000_000, mode });
      const { state, reports, run, pass } = stage(10, [claim]);
      run().catch(() => undefined);
      await pass(0);
      await pass(1_000);
      expect(asked.length).toBe(1);
      await pass(29_999);
      expect(asked.length).toBe(1);
      await pass(1);
      expect(asked.length).toBe(2);
      // After the second doubt the pause is twice as long.
      await pass(59_999);
      expect(asked.length).toBe(2);
      await pass(1);
      expect(asked.length).toBe(3);
      expect(state.isProved).toBe(false);
      const isOffence = mode === "garbled";
      expect(reports).toEqual(isOffence ? asked.map(() => "liar malformed") : []);
    },
  );

  it("hears an honest peer beside liars, after all of those have been asked", async () => {
    const modes: Mode[] = ["forged", "silent", "empty", "silent", "garbled"];
    const liars = modes.map((mode, index) => {
      return claimOf(`liar ${index}`, { height: 1_000_000_000, mode });
    });
    const honest = claimOf("honest", { height: 60 });
    const { run, pass } = stage(10, [...liars.map(({ claim }) => claim), honest.claim]);
    const done = run();
    await pass(0);
    await pass(1_000);
    await done;
    expect(honest.asked).toEqual([26]);
    expect(liars.map(({ asked }) => asked)).toEqual(modes.map(() => [26]));
  });

  it("does not hurry back when catching up brought nothing", () =>
    inVirtualTime(async () => {
      const { claim, asked } = claimOf("ahead", { height: 900 });
      const { state, run, pass } = stage(10, [claim]);
      const proveMs = async () => {
        const startMs = performance.now();
        const done = run();
        await pass(0);
        await pass(1_000);
        await done;
        return performance.now() - startMs;
      };
      await proveMs();
      expect(await proveMs()).toBeGreaterThanOrEqual(LIMITS.restMs);
      state.own = 500;
      expect(await proveMs()).toBeLessThan(LIMITS.restMs);
      expect(asked).toEqual([26, 26, 516]);
    }));
});
