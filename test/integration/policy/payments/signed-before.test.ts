/** Payments that the signer of a home has signed, or another one, and that its own memory does not tell it of. */
import { beforeEach, expect, it } from "@jest/globals";
import type { Withdrawal } from "../../../../ledger/withdrawals/withdrawals.js";
import type { LaneSettings } from "../../../../withdrawal-worker/lane/lane-context.js";
import type { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { freshAddress, House, houseForEachTest, TOKEN } from "../../../helpers/exchange/house.js";
import { policyOf } from "../terms.js";

let house: House;
let signed: readonly Withdrawal[];

houseForEachTest((opened) => {
  house = opened;
});

beforeEach(async () => {
  house.files.policy = policyOf({ signerDayMaxUnits: 3n * TOKEN });
  signed = [await accept(), await accept()];
  await house.lane().runRound(house.signal);
  expect(await statuses()).toEqual(["broadcast", "broadcast"]);
  house.chain.gasPriceAtoken *= 2n;
});

/** To somebody who is not paid at the first price. */
function accept(): Promise<Withdrawal> {
  const to = freshAddress();
  house.chain.unmined.add(to);
  return house.accept({ destination: to, destinationText: to });
}

const statuses = () => Promise.all(signed.map(async ({ id }) => (await house.read(id)).status));

/** Takes over with totals that know none of them, and have room for nothing. */
async function laneWithoutRoom(settings: Partial<LaneSettings>): Promise<Lane> {
  const { signer, settings: usual } = house.context(settings);
  const destination = freshAddress();
  const other = {
    kind: "payment" as const,
    chainId: FAKE_CHAIN_ID,
    nonce: 9_999n,
    to: destination,
    destination,
    valueAtoken: 3n * TOKEN,
    amountUnits: 3n * TOKEN,
    data: new Uint8Array(0),
    gasLimit: 25_200n,
    gasPriceAtoken: 1n,
    withdrawalId: "wd_other",
    customerId: "bob",
    asset: "TOKEN",
    approvals: [],
  };
  expect(await signer.sign([other], { signal: house.signal })).toMatchObject([{ kind: "signed" }]);
  await house.database.query(`UPDATE hot_wallet SET lease_owner = NULL`);
  return house.laneWith({ signer, settings: usual });
}

it("are made dearer without counting once more", async () => {
  const stall = { repriceAfterMs: 60_000, giveUpAfterMs: 86_400_000, alarmAfterMs: 86_400_000 };
  const lane = await laneWithoutRoom({ stall });
  await house.pass(lane, { rounds: 3, stepMs: 40_000 });
  house.chain.unmined.clear();
  await house.pass(lane, { rounds: 2 });
  expect(await statuses()).toEqual(["settled", "settled"]);
  const paid = await Promise.all(signed.map(({ id }) => house.read(id)));
  expect(paid.map(({ hashes }) => hashes.length)).toEqual([2, 2]);
});

it("are not given up for a total of the day behind one that is", async () => {
  const stall = { repriceAfterMs: 86_400_000, giveUpAfterMs: 60_000, alarmAfterMs: 86_400_000 };
  const lane = await laneWithoutRoom({ stall });
  await house.pass(lane, { rounds: 3, stepMs: 40_000 });
  expect(await statuses()).toEqual(["failed", "broadcast"]);
  house.chain.unmined.clear();
  await house.pass(lane, { rounds: 2 });
  expect(await statuses()).toEqual(["failed", "settled"]);
});
