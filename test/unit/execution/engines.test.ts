/**
 * Our own EVM against @ethereumjs/evm: the same random programs over the same state must come to the
 * same gas, output, logs, coins moved and state. Ethereum's own state tests are beside this
 * (`npm run test:evm`).
 */
import { NEWEST_WEIGHTS, weightsOf } from "../../../chain/evm/compute-weights.js";
import { describe, expect, it } from "@jest/globals";
import { bytesToHex, hexToBytes, ZERO_HASH } from "../../../chain/hex.js";
import { createMachine, type BlockContext } from "../../../node/execution/evm/evm.js";
import { LibraryEngine } from "../../../node/execution/evm/library-engine.js";
import { Engine } from "../../../node/execution/interpreter/engine.js";
import { EXACT_STEPS } from "../../../node/execution/interpreter/watcher.js";
import type { RunTerms, TransactionEngine } from "../../../node/execution/transaction-engine.js";
import { BalanceRecorder } from "../../../node/state/balance-recorder.js";
import { JournaledState } from "../../../node/state/journaled-state.js";
import { ALICE, COINBASE, CONTRACT, MemoryState, OTHER, TEN } from "./call-fixture.js";
import { program, randomOf, THIRD } from "./random-programs.js";

const PROGRAMS = Number(process.env["CAUSEWAY_PROGRAMS"] ?? 300);
const FIRST_SEED = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 1);
const GAS = 400_000n;
const CHAIN_ID = 6_940n;
console.log(`engines: seeds from ${FIRST_SEED}, ${PROGRAMS} programs (CAUSEWAY_PROGRAMS)`);

const BLOCK: BlockContext = {
  height: 7,
  timestampSeconds: 1_750_000_000,
  coinbase: COINBASE,
  gasLimit: 600_000_000n,
  mixHash: ZERO_HASH,
  blockHash: () => `0x${"07".repeat(32)}` as typeof ZERO_HASH,
};

const ENGINES = {
  own: async (state: JournaledState) =>
    new Engine({ chainId: CHAIN_ID, state, weights: weightsOf(NEWEST_WEIGHTS) }),
  library: async (state: JournaledState) => new LibraryEngine(await createMachine(CHAIN_ID, state)),
};

/** Everything that a run leaves behind. */
async function outcomeOf(
  codes: readonly [string, string, string],
  open: (state: JournaledState) => Promise<TransactionEngine>,
  terms: Omit<RunTerms, "recorder"> = { limitNs: Number.POSITIVE_INFINITY },
) {
  const reader = new MemoryState({
    [ALICE]: { balanceAtoken: TEN },
    [CONTRACT]: { code: codes[0], balanceAtoken: 40n, storage: { 1: 5n, 7: 9n } },
    [OTHER]: { code: codes[1], balanceAtoken: 5n },
    [THIRD]: { code: codes[2] },
  });
  const state = new JournaledState(reader);
  const engine = await open(state);
  const recorder = new BalanceRecorder();
  const message = {
    from: ALICE,
    to: CONTRACT,
    valueAtoken: 3n,
    data: hexToBytes(`0x${"c0ffee".repeat(11)}`),
    gasLimit: GAS,
    gasPriceAtoken: 1n,
    accessList: [],
  };
  state.checkpoint();
  const result = await engine.run(message, BLOCK, { recorder, ...terms });
  await engine.finish(true);
  state.commit();
  // Which failure it was may differ: a block of code is checked as a whole.
  const endOf = (error: string | undefined) =>
    error === undefined || error === "revert" ? error : "failure";
  return {
    end: endOf(result.error),
    gasUsed: result.gasUsed,
    gasRefund: result.gasRefund,
    output: bytesToHex(result.output),
    logs: result.logs.map(({ address, topics, data }) => [address, topics, bytesToHex(data)]),
    destroyed: result.destroyed.toSorted(),
    moved: recorder.changes().map((change) => ({ ...change, error: endOf(change.error) })),
    accounts: new Map(
      [...state.changedAccounts()].toSorted(([left], [right]) => (left < right ? -1 : 1)),
    ),
    storage: new Map(
      [...state.changedStorage()].map(([address, slots]) => [
        address,
        [...slots].map(([slot, value]) => `${slot} ${bytesToHex(value)}`).toSorted(),
      ]),
    ),
    stepsBack: state.depth(),
    compute: { ns: result.computeNs, isOut: result.isOutOfCompute },
  };
}

describe("our own EVM", () => {
  it("does what the library's does, on random programs", async () => {
    const ends = new Map<string, number>();
    for (let seed = FIRST_SEED; seed < FIRST_SEED + PROGRAMS; seed++) {
      const random = randomOf(seed);
      const codes = [program(random, 40), program(random, 15), program(random, 15)] as const;
      const { compute, ...own } = await outcomeOf(codes, ENGINES.own);
      const { compute: none, ...library } = await outcomeOf(codes, ENGINES.library);
      expect([none.isOut, compute.isOut]).toEqual([false, false]);
      expect({ seed, ...own }).toEqual({ seed, ...library });
      const end = library.end ?? "success";
      ends.set(end, (ends.get(end) ?? 0) + 1);
    }
    // The programs must reach their ends in all ways, else they show nothing.
    expect(ends.size).toBe(3);
    expect(ends.get("success")).toBeGreaterThan(PROGRAMS / 20);
  });

  it("comes to the same, compute units too, where it is watched step by step", async () => {
    let outs = 0;
    for (let seed = FIRST_SEED; seed < FIRST_SEED + PROGRAMS; seed++) {
      const random = randomOf(seed);
      const codes = [program(random, 40), program(random, 15), program(random, 15)] as const;
      const limitNs = seed % 3 === 0 ? Number.POSITIVE_INFINITY : 1_000 + random(120_000);
      const plain = await outcomeOf(codes, ENGINES.own, { limitNs });
      const watched = await outcomeOf(codes, ENGINES.own, {
        limitNs,
        watcher: { steps: EXACT_STEPS },
      });
      expect({ seed, ...watched }).toEqual({ seed, ...plain });
      if (plain.compute.isOut) outs++;
    }
    expect(outs).toBeGreaterThan(PROGRAMS / 20);
  });
});
