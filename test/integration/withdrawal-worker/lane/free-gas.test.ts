/** A chain that takes gas for nothing, as a foreign one may, with `price-floor-atoken = 0`. */
import { afterAll, beforeAll, beforeEach, expect, it } from "@jest/globals";
import { cancelWithdrawal } from "../../../../ledger/withdrawals/cancellation.js";
import type { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import { House, TOKEN } from "../../../helpers/exchange/house.js";

let house: House;
let worker: Lane;

beforeAll(async () => {
  house = await House.withAlice();
  const { settings } = house.context();
  worker = house.lane({ gas: { ...settings.gas, priceFloorAtoken: 0n } });
});
afterAll(() => house.close());

beforeEach(() => {
  house.chain.gasPriceAtoken = 0n;
  house.chain.minimumPriceAtoken = 0n;
});

it("has payments settled without a fee, and cancelled by what is dearer than nothing", async () => {
  const { id, to } = await house.acceptTo();
  await worker.runRound(house.signal);
  house.chain.mine();
  await house.pass(worker, { rounds: 3, stepMs: 2_000 });
  expect((await house.read(id)).status).toBe("settled");
  expect(house.chain.balances.get(to)).toBe(TOKEN);

  house.chain.unmined.add(to);
  const wished = await house.acceptTo();
  house.chain.unmined.add(wished.to);
  await worker.runRound(house.signal);
  expect(await cancelWithdrawal(house.database, wished.id, "changed my mind")).toBe("done");
  await house.pass(worker, { rounds: 4, stepMs: 2_000 });
  expect((await house.read(wished.id)).status).toBe("cancelled");
});

it("has payments made dearer once it takes nothing for nothing any more", async () => {
  const { id, to } = await house.acceptTo();
  house.chain.minimumPriceAtoken = 7n;
  await house.pass(worker, { rounds: 6, stepMs: 2_000 });
  expect((await house.read(id)).status).toBe("settled");
  expect(house.chain.balances.get(to)).toBe(TOKEN);
});
