/** What is mined is booked, whatever a node does not say about other payments. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { Hash32 } from "../../../../chain/hex.js";
import type { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import type { WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { feesOfDay, readHotWallet } from "../../../../ledger/wallets/wallet-lease.js";
import type { LaneContext } from "../../../../withdrawal-worker/lane/lane-context.js";
import { House, WALLET } from "../../../helpers/exchange/house.js";

let house: House;

beforeEach(async () => {
  house = await House.withAlice();
});
afterEach(() => house.close());

/** Payments without a receipt. */
const lost = new Set<Hash32 | undefined>();

/** No block is confirmed, so that nothing is booked. */
let isSilent = true;

/** A lane with batches of two, whose node says less than there is. */
function deafLane(): Lane {
  const context = house.context({ batchSize: 2 });
  const { node } = context;
  const silent: LaneContext["node"] = {
    ...node,
    headers: async (heights, options) =>
      isSilent ? heights.map(() => undefined) : node.headers(heights, options),
    receipts: async (hashes, options) => {
      const { byHash, ...rest } = await node.receipts(hashes, options);
      return { ...rest, byHash: new Map([...byHash].filter(([hash]) => !lost.has(hash))) };
    },
  };
  return house.laneWith({ ...context, node: silent });
}

async function rounds(lane: Lane, count: number): Promise<boolean> {
  let hasMore = false;
  for (let round = 0; round < count; round += 1) {
    house.clock.ms += 2_000;
    hasMore = await lane.runRound(house.signal);
    house.chain.mine();
  }
  return hasMore;
}

it("is not hidden by payments whose receipts a node has lost since they were recorded", async () => {
  const ids: WithdrawalId[] = [];
  for (let n = 0; n < 8; n += 1) ids.push((await house.accept()).id);
  const states = async () => Promise.all(ids.map(async (id) => (await house.read(id)).status));
  const lane = deafLane();
  // Mined and recorded, and none is booked.
  await rounds(lane, 6);
  expect(await states()).toEqual(ids.map(() => "included"));
  for (const id of ids.slice(0, 3)) lost.add((await house.read(id)).txHash);
  isSilent = false;
  const hasMore = await rounds(lane, 3);
  const expected = ids.map((_, place) => (place < 3 ? "included" : "settled"));
  expect(await states()).toEqual(expected);
  expect(lane.status().blockedReason).toContain("no receipts of 3 payments");
  // What cannot be booked is no reason to go round at once.
  expect(hasMore).toBe(false);
  lost.clear();
  await rounds(lane, 2);
  expect(await states()).toEqual(ids.map(() => "settled"));
  expect(lane.status().blockedReason).toBeUndefined();
});

it("is waited for from the look on at which a late node has come to its block", async () => {
  const { id } = await house.accept();
  const context = house.context({ receiptPatienceMs: 3_000 });
  const { node } = context;
  let answer: "late" | "unindexed" | "whole" = "late";
  const late: LaneContext["node"] = {
    ...node,
    receipts: async (hashes, options) => {
      const { height, byHash } = await node.receipts(hashes, options);
      if (answer === "whole") return { height, byHash };
      return { height: answer === "late" ? height - 1 : height, byHash: new Map() };
    },
  };
  const lane = house.laneWith({ ...context, node: late });
  await lane.runRound(house.signal);
  house.chain.mine();
  // Another node of the same balancer, which is a block behind for a while.
  for (let round = 0; round < 5; round += 1) {
    await lane.runRound(house.signal);
    house.clock.ms += 2_000;
  }
  answer = "unindexed";
  await lane.runRound(house.signal);
  expect([await house.isFrozen(), (await house.read(id)).status]).toEqual([false, "broadcast"]);
  house.clock.ms += 2_000;
  // What it says of a block that it has not come to takes nothing back either.
  answer = "late";
  await lane.runRound(house.signal);
  house.clock.ms += 2_000;
  answer = "unindexed";
  await lane.runRound(house.signal);
  expect([await house.isFrozen(), (await house.read(id)).status]).toEqual([true, "frozen"]);
});

it("counts its fees to the day behind midnight where another commit has begun that before", async () => {
  const { id } = await house.accept();
  const lane = house.lane();
  await lane.runRound(house.signal);
  house.chain.mine();
  // Its transaction began behind midnight, and had the wallet first.
  await house.ledger.owner.query(
    `UPDATE hot_wallet SET fee_day = (now() AT TIME ZONE 'UTC')::date + 1, fee_day_atoken = 700`,
  );
  await lane.runRound(house.signal);
  expect((await house.read(id)).status).toBe("settled");
  const feeAtoken = await house.accountAtoken("expense:network_fee");
  expect(feeAtoken).toBeGreaterThan(0n);
  const days = await house.database.query(
    `SELECT (fee_day - (now() AT TIME ZONE 'UTC')::date) AS ahead, fee_day_atoken::text AS fees
       FROM hot_wallet`,
  );
  expect(days).toEqual([{ ahead: 1, fees: (700n + feeAtoken).toString() }]);
});

it("leaves the budget what a day behind midnight has cost, whoever began before that", async () => {
  const lane = house.lane();
  await lane.runRound(house.signal);
  await house.ledger.owner.query(
    `UPDATE hot_wallet SET fee_day = (now() AT TIME ZONE 'UTC')::date + 1, fee_day_atoken = 700`,
  );
  expect(await feesOfDay(house.database)).toBe(700n);
  expect((await readHotWallet(house.database, WALLET))?.feesOfDayAtoken).toBe(700n);
  await house.ledger.owner.query(`UPDATE hot_wallet SET fee_day = fee_day - 2`);
  expect(await feesOfDay(house.database)).toBe(0n);
});
