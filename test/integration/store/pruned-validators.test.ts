/** Validators of old heights while they are being deleted: there or not there, and never half. */
import { afterEach, expect, it } from "@jest/globals";
import { ConsensusStore } from "../../../node/store/consensus-store.js";
import { validatorDeletions } from "../../../node/store/pruning/block-prune.js";
import { SnapshotChain } from "../../helpers/chains/snapshot-chain.js";

let chain: SnapshotChain;

afterEach(() => chain.close());

it("can be asked for at any time", async () => {
  chain = await SnapshotChain.open();
  await chain.take();
  // Sets of their own at three heights.
  await chain.take([], [chain.chain.doubleVote(3, 1)]);
  await chain.take();
  await chain.take([], [chain.chain.doubleVote(2, 1)]);
  while (chain.node.height < 8) await chain.take();
  const { database } = chain.node.stores;
  const heights = Array.from({ length: 10 }, (_, index) => index + 1);
  const sets = () => {
    const store = new ConsensusStore(database);
    return heights.map((height) => store.validators(height)?.hash());
  };
  const before = sets();
  expect(new Set(before).size).toBe(3);
  for (let slices = 0; ; slices++) {
    const deletions = await validatorDeletions(database, { from: 0, base: 7, limit: 1 });
    if (deletions.length === 0) break;
    await database.write(deletions, { durable: false });
    expect(slices).toBeLessThan(20);
    const deleted = sets().findIndex((hash) => hash !== undefined);
    expect(sets()).toEqual(before.map((hash, index) => (index < deleted ? undefined : hash)));
  }
  expect(sets()).toEqual(before.map((hash, index) => (index < 6 ? undefined : hash)));
});
