/**
 * The worst block stays bounded in work: no program buys far more of it for its gas than another.
 * Work is counted, not timed; `npm run bench -- --only worst-gas` times the same programs, and the
 * figures behind `max_call_gas` are in docs/adr/0005.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createHook } from "node:async_hooks";
import type { WorstRun } from "../../bench/worst-gas.js";
import { type WorstCase, worstCases } from "../../bench/worst-gas-cases.js";
import { type BlockCounter, countExecutedBlocks } from "../../helpers/executed-blocks.js";

const GAS = 50_000n;

/** Enough to come to the calls in the cases that do something large before. */
const GAS_OF_TWO_STAGES = 2_000_000n;

/**
 * Entries into functions, branches and loop bodies for each unit of gas: at most about 7 everywhere.
 * @ethereumjs/evm as it comes needs 900 for calls of a contract with a jump in 24 KiB of code, 240
 * where those are PUSH32, 75 for bad jumps, 28 for MSTORE, 17 for calls of 24 KiB of JUMPDESTs, 13
 * for MLOAD, JUMPDEST and CALLDATALOAD.
 */
const MOST_ENTRIES_PER_GAS = 10;

/** A round of blake2f costs one unit of gas (EIP-152) and mixes eight times. */
const MOST_ENTRIES_PER_BLAKE2F_GAS = 100;

let counter: BlockCounter;
let openWorstCase: (item: WorstCase, gas: bigint) => Promise<WorstRun>;

beforeAll(async () => {
  counter = await countExecutedBlocks();
  ({ openWorstCase } = await import("../../bench/worst-gas.js"));
});

afterAll(() => counter.stop());

function caseNamed(name: string): WorstCase {
  const found = worstCases().find((item) => item.name === name);
  if (found === undefined) throw new Error(`there is no case ${name}`);
  return found;
}

/** Promises made while `work` ran. */
async function promisesOf(work: () => Promise<unknown>): Promise<number> {
  let count = 0;
  const init = (_id: number, type: string) => {
    if (type === "PROMISE") count++;
  };
  const hook = createHook({ init }).enable();
  await work();
  hook.disable();
  return count;
}

/** Items in the collections that an object has, and in theirs. */
function itemsIn(value: unknown): number {
  if (value instanceof Map) return value.size + itemsIn([...value.values()]);
  if (value instanceof Set) return value.size;
  if (Array.isArray(value)) return value.reduce((sum, item) => sum + itemsIn(item), value.length);
  return 0;
}

describe("work for gas", () => {
  it("is counted: a loop that runs longer counts for more", async () => {
    const loop = async (times: number) => {
      let sum = 0;
      for (let turn = 0; turn < times; turn++) if (turn % 2 === 0) sum += turn;
      return sum;
    };
    await counter.count();
    await loop(10);
    const few = await counter.count();
    await loop(1e4);
    const many = await counter.count();
    // V8 misses some entries while it makes a function faster.
    expect(many).toBeGreaterThan(few + 2_000);
  });

  it("is bounded for all opcodes, precompiles and frames, and all of the gas is used", async () => {
    const dear: { name: string; entriesPerGas: number }[] = [];
    // V8 begins to count in a function when that has run for a while.
    for (const item of worstCases()) await (await openWorstCase(item, GAS)).run();
    await counter.count();
    for (const item of worstCases()) {
      const gas = item.name.includes(", then ") ? GAS_OF_TWO_STAGES : GAS;
      const { run } = await openWorstCase(item, gas);
      expect([item.name, await run()]).toEqual([item.name, gas]);
      const entriesPerGas = (await counter.count()) / Number(gas);
      const isBlake = item.name.startsWith("blake2f");
      const most = isBlake ? MOST_ENTRIES_PER_BLAKE2F_GAS : MOST_ENTRIES_PER_GAS;
      if (entriesPerGas > most) dear.push({ name: item.name, entriesPerGas });
    }
    expect(worstCases().length).toBeGreaterThan(60);
    expect(dear).toEqual([]);
  });

  it.each(["ADD", "JUMPDEST", "PUSH32 POP", "MSTORE", "JUMP"])(
    "waits for nothing in a loop of %s",
    async (name) => {
      const { run } = await openWorstCase(caseNamed(name), GAS);
      // Those of the call around it; the loops have thousands of opcodes.
      expect(await promisesOf(run)).toBeLessThan(200);
    },
  );

  it("keeps nothing for a frame that has ended", async () => {
    const { machine, run } = await openWorstCase(caseNamed("STATICCALL, STOP"), GAS);
    const kept: number[] = [];
    const { journal } = machine.evm;
    machine.evm.events.on("afterMessage", () => kept.push(itemsIn(Object.values(journal))));
    await run();
    expect(kept.length).toBeGreaterThan(400);
    // The warm addresses, however many frames there were.
    expect([kept[100], kept[400]]).toEqual([kept[10], kept[10]]);
  });
});
