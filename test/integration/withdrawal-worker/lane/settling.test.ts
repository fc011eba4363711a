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
      const truth = await node.receipts(hashes, options);
      if (answer === "whole") return truth;
      const height = answer === "late" ? truth.height - 1 : truth.height;
      return { ...truth, height, byHash: new Map() };
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

/** What a node says to whom it has no room for an answer. */
const TOO_LARGE = { error: { code: -32_003, message: "response too large" } };

/** The node tells so many receipts in an answer, and none of these payments. */
function tellFew(most: number, untold: ReadonlySet<unknown> = new Set()): void {
  let place = 0;
  house.chain.wireFault = () => {
    place = 0;
    return undefined;
  };
  house.chain.override = (method, [hash]) => {
    if (method !== "eth_getTransactionReceipt") return undefined;
    place += 1;
    return place > most || untold.has(hash) ? TOO_LARGE : undefined;
  };
}

it("is booked with all others whose receipts have no room in one answer", async () => {
  const ids: WithdrawalId[] = [];
  for (let n = 0; n < 10; n += 1) ids.push((await house.accept()).id);
  const lane = house.lane();
  tellFew(2);
  await house.pass(lane, { rounds: 3 });
  const states = await Promise.all(ids.map(async (id) => (await house.read(id)).status));
  expect(states).toEqual(ids.map(() => "settled"));
});

it.each([
  ["first", false],
  ["second", true],
] as const)(
  "whose receipt the %s node has no room for waits, and is not missing",
  async (_, isSecond) => {
    const [large, other] = [await house.accept(), await house.accept()];
    const context = house.context({ receiptPatienceMs: 3_000 });
    const { node } = context;
    const hasNoRoom = new Set<unknown>();
    let answer: "too-large" | "missing" | "whole" = "too-large";
    const second: LaneContext["secondNode"] = {
      ...node,
      receipts: async (hashes, options) => {
        const truth = await node.receipts(hashes, options);
        const hidden = answer === "whole" ? new Set() : hasNoRoom;
        const untold = answer === "missing" ? [] : hashes.filter((hash) => hidden.has(hash));
        return {
          ...truth,
          byHash: new Map([...truth.byHash].filter(([hash]) => !hidden.has(hash))),
          untold: new Map(untold.map((hash) => [hash, "too-large"])),
        };
      },
    };
    const nodes = isSecond ? { secondNode: second } : { node: { ...node, ...second } };
    const lane = house.laneWith({ ...context, ...nodes });
    await lane.runRound(house.signal);
    for (const hash of (await house.read(large.id)).hashes) hasNoRoom.add(hash);
    house.chain.mine();
    const states = async () =>
      Promise.all([large, other].map(async ({ id }) => (await house.read(id)).status));
    const waiting = [isSecond ? "included" : "broadcast", "settled"];
    // Two that say that it is missing, as long apart as that is borne: one between them knows better.
    for (const next of ["missing", "too-large", "too-large", "missing"] as const) {
      answer = next;
      await lane.runRound(house.signal);
      await lane.runRound(house.signal);
      expect([await house.isFrozen(), await states()]).toEqual([false, waiting]);
      if (next === "too-large") house.clock.ms += 3_000;
    }
    answer = "too-large";
    await lane.runRound(house.signal);
    house.clock.ms += 3_000;
    await lane.runRound(house.signal);
    expect(lane.status().blockedReason).toContain(
      `the ${isSecond ? "second node" : "node"} does not tell the receipts of 1 payments`,
    );
    // It holds up nobody else.
    const later = await house.accept();
    await lane.runRound(house.signal);
    expect((await house.read(later.id)).status).toBe("broadcast");
    answer = "whole";
    house.chain.mine();
    await house.pass(lane);
    expect([await states(), lane.status().blockedReason]).toEqual([
      ["settled", "settled"],
      undefined,
    ]);
  },
);
