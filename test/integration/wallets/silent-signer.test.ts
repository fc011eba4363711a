/** A wallet whose signer says nothing: it begins no further payments, which others can make. */
import { beforeEach, expect, it } from "@jest/globals";
import { keccak256 } from "../../../chain/hashes.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { cancelWithdrawal } from "../../../ledger/withdrawals/cancellation.js";
import type { Lane } from "../../../withdrawal-worker/lane/lane.js";
import type { Signer } from "../../../withdrawal-worker/signers/signer-port.js";
import { registerTestWallets } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";
import { House, houseForEachTest, TOKEN, WALLET } from "../../helpers/exchange/house.js";

const SECOND_KEY = keccak256(Buffer.from("second hot wallet beside a silent signer"));
const SECOND = privateKeyToAddress(SECOND_KEY);

let house: House;
let isSilent: boolean;

houseForEachTest((opened) => {
  house = opened;
});

beforeEach(async () => {
  house.chain.balances.set(SECOND, 20n * TOKEN);
  house.chain.mine();
  await registerTestWallets(house.database, SECOND);
  isSilent = true;
});

/** The first wallet's lane; hardware, or who reaches it, does not answer. */
function silentLane(): Lane {
  const { signer } = house.context();
  const reason = "the token is locked";
  const silent: Signer = {
    address: WALLET,
    sign: async (intents, options) =>
      isSilent
        ? intents.map(() => ({ kind: "unanswered", reason }))
        : signer.sign(intents, options),
    review: (payments) => signer.review(payments),
    trouble: () => (isSilent ? reason : undefined),
  };
  return house.laneWith({ signer: silent });
}

it("leaves to another wallet what it has given no nonce yet, and pays its own once it answers", async () => {
  const lanes = [silentLane(), house.laneOf(SECOND_KEY)];
  for (const lane of lanes) await lane.runRound(house.signal);
  // It has fifty times the coins: all of them would be its own.
  const begun = await house.accept();
  await lanes[0]?.runRound(house.signal);
  expect(await house.read(begun.id)).toMatchObject({ status: "slotted", wallet: WALLET });
  const asked = [await house.accept(), await house.accept(), await house.accept()];
  const stateOf = async ({ id }: { id: typeof begun.id }) => {
    const { status, wallet } = await house.read(id);
    return [status, wallet];
  };
  const pass = async () => {
    for (const lane of lanes) await lane.runRound(house.signal);
    house.chain.mine();
    house.clock.ms += 2_000;
  };
  await until(
    async () => {
      await pass();
      const states = await Promise.all(asked.map(stateOf));
      return states.every(([status]) => status === "settled");
    },
    { timeoutMs: 20_000, what: "all that the silent wallet has not begun is paid" },
  );
  expect(await Promise.all(asked.map(stateOf))).toEqual(asked.map(() => ["settled", SECOND]));
  expect(await stateOf(begun)).toEqual(["slotted", WALLET]);
  expect(lanes[0]?.status().blockedReason).toContain("locked");
  isSilent = false;
  const next = await house.accept();
  for (let round = 0; round < 4; round += 1) await pass();
  expect([await stateOf(begun), await stateOf(next)]).toEqual([
    ["settled", WALLET],
    ["settled", WALLET],
  ]);
});

it("stores what a slow signer has signed in time, and asks for the rest behind it", async () => {
  const { signer, settings } = house.context();
  const askedWithinMs: (number | undefined)[] = [];
  const slow: Signer = {
    address: WALLET,
    sign: (intents, options) => {
      askedWithinMs.push(options.withinMs);
      return signer.sign(intents, { ...options, withinMs: 0 });
    },
    review: (payments) => signer.review(payments),
    trouble: () => signer.trouble(),
  };
  const lane = house.laneWith({ signer: slow });
  const asked = [await house.accept(), await house.accept(), await house.accept()];
  const statuses = () => Promise.all(asked.map(async ({ id }) => (await house.read(id)).status));
  // Rounds that follow at once, as long as there is more.
  let rounds = 1;
  for (; await lane.runRound(house.signal); rounds += 1) expect(rounds).toBeLessThan(10);
  expect(await statuses()).toEqual(asked.map(() => "broadcast"));
  expect(lane.status().blockedReason).toBeUndefined();
  expect(new Set(askedWithinMs)).toEqual(new Set([2 * settings.leaseMs]));
});

it("leaves its wallet to another worker, who can sign for it", async () => {
  const lanes = [silentLane(), house.lane()];
  const { id } = await house.accept();
  await lanes[0]?.runRound(house.signal);
  expect((await house.read(id)).status).toBe("slotted");
  expect(lanes[0]?.status()).toMatchObject({
    holdsLease: true,
    blockedReason: expect.stringContaining("locked"),
  });
  for (let round = 0; round < 3; round += 1) {
    for (const lane of lanes) await lane.runRound(house.signal);
    house.chain.mine();
  }
  expect((await house.read(id)).status).toBe("settled");
  expect(lanes[0]?.status()).toMatchObject({
    holdsLease: false,
    blockedReason: undefined,
    openSlots: 0,
  });
});

it("lets a customer take back at once what waits for it, where it is the only wallet", async () => {
  const lane = silentLane();
  const begun = await house.accept();
  await lane.runRound(house.signal);
  const waiting = await house.accept();
  await lane.runRound(house.signal);
  expect(await cancelWithdrawal(house.database, waiting.id, "drill")).toBe("done");
  expect((await house.read(waiting.id)).status).toBe("cancelled");
  expect((await house.read(begun.id)).status).toBe("slotted");
});

it("is asked anew once another worker has used its nonces, though it signed none of them", async () => {
  const lane = silentLane();
  const begun = await house.accept();
  await lane.runRound(house.signal);
  expect((await house.read(begun.id)).status).toBe("slotted");
  const other = house.lane();
  for (let round = 0; round < 3; round += 1) {
    await other.runRound(house.signal);
    house.chain.mine();
  }
  expect((await house.read(begun.id)).status).toBe("settled");
  await house.database.query(`UPDATE hot_wallet SET lease_owner = NULL WHERE wallet = $1`, [
    WALLET,
  ]);
  isSilent = false;
  const next = await house.accept();
  for (let round = 0; round < 3; round += 1) {
    await lane.runRound(house.signal);
    house.chain.mine();
  }
  expect(await house.read(next.id)).toMatchObject({ status: "settled", wallet: WALLET });
});

it("begins the next payment though a dearer one of those on their way was not signed", async () => {
  isSilent = false;
  const lane = silentLane();
  const [first, ...others] = [
    await house.acceptTo(),
    await house.acceptTo(),
    await house.acceptTo(),
  ];
  for (const { to } of [first, ...others]) house.chain.unmined.add(to);
  await house.pass(lane, { rounds: 2, stepMs: 2_000 });
  const statusOf = async ({ id }: { id: typeof first.id }) => (await house.read(id)).status;
  expect(await statusOf(first)).toBe("broadcast");
  isSilent = true;
  await house.pass(lane, { rounds: 3, stepMs: 15_000 });
  expect((await house.read(first.id)).hashes).toHaveLength(1);
  expect(lane.status().blockedReason).toContain("locked");
  isSilent = false;
  house.chain.unmined.delete(first.to);
  house.chain.mine();
  const next = await house.accept();
  for (let round = 0; round < 2; round += 1) await lane.runRound(house.signal);
  expect(await Promise.all([first, ...others, next].map(statusOf))).toEqual([
    "settled",
    "broadcast",
    "broadcast",
    "broadcast",
  ]);
});
