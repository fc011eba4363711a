/** A block that changes one slot in each of many contracts is worked on in many steps, too. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../chain/address.js";
import type { Hash32 } from "../../../chain/hex.js";
import type { Steps } from "../../../chain/steps/steps.js";
import { JournaledState } from "../../../node/state/journaled-state.js";
import { ExecutionChain, testGenesis } from "../../helpers/chains/execution-chain.js";

const CONTRACTS = 400;

/** Contracts at most in one step. */
const AT_ONCE = 8;

const SLOT: Hash32 = `0x${"01".repeat(32)}` as Hash32;
const VALUE = Uint8Array.of(7);

const contracts = Array.from({ length: CONTRACTS }, (_, index): Address => {
  return parseAddress(`0x${(index + 4_096).toString(16).padStart(40, "0")}`);
});

let chain: ExecutionChain;

beforeEach(async () => {
  chain = await ExecutionChain.open(testGenesis(`0x${"5".repeat(40)}`));
});
afterEach(() => chain.close());

function countSteps(steps: Steps<unknown>): number {
  let count = 1;
  while (steps.next().done !== true) count += 1;
  return count;
}

it("finds out what changed, makes the writes and fills the caches", () => {
  const { state } = chain.stores;
  const changed = new JournaledState(state.readerAt(0));
  for (const address of contracts) changed.putStorage(address, SLOT, VALUE);
  expect(countSteps(changed.changedStorageSteps())).toBeGreaterThanOrEqual(CONTRACTS / AT_ONCE);
  const changes = {
    height: 1,
    accounts: new Map(),
    storage: changed.changedStorage(),
    codes: new Map(),
  };
  expect(changes.storage.size).toBe(CONTRACTS);
  const written: unknown[] = [];
  const steps = state.addWrites(changes, (write) => written.push(write));
  expect(countSteps(steps)).toBeGreaterThanOrEqual(CONTRACTS / AT_ONCE);
  expect(written).toHaveLength(2 * CONTRACTS);
  // The first takes over what there was before: nothing.
  state.publish(changes);
  expect(countSteps(state.takeOver())).toBeGreaterThanOrEqual(CONTRACTS / AT_ONCE);
  expect(state.storage(contracts[3] ?? parseAddress(""), SLOT)).toEqual(VALUE);
});
