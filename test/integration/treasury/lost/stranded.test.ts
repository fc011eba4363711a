/** Moves whose nonce stands on a wallet that was retired because its key is lost: they stop no others. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { present } from "../../../../chain/errors.js";
import { toWithdrawalId, type WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { listSweeps } from "../../../../ledger/treasury/sweeps.js";
import { readTreasury } from "../../../../ledger/treasury/treasury-figures.js";
import type { Signer } from "../../../../withdrawal-worker/signers/signer-port.js";
import { type Desk, KEY, STRANGER, TOKEN, WALLET } from "../../recovery/desk.js";
import {
  COLD,
  HouseOfWallets,
  KEYS,
  PLAIN,
  WALLETS,
} from "../../recovery/histories/house-of-wallets.js";
import { ANY_SWEEP } from "../treasury-bench.js";

const REASON = ["--reason", "the HSM is gone", "--operator", "ann"];
const [, SECOND = KEY] = KEYS;
const [, SECOND_WALLET = WALLET] = WALLETS;

let house: HouseOfWallets;
let desk: Desk;

beforeEach(async () => {
  house = await HouseOfWallets.open();
  desk = house.desk;
  house.clock.ms = Date.now();
  // A wallet that nobody has looked at may hold anything.
  await desk.work(
    1,
    KEYS.map((key) => desk.laneOf(key)),
  );
  await desk.watch();
});
afterEach(() => house.close());

/** What is above `targetUnits` goes to cold storage, of coins; tokens are swept. */
async function setPolicy(targetUnits: bigint): Promise<void> {
  const band = { lowUnits: 0n, targetUnits, highUnits: targetUnits + TOKEN };
  const coins = { ...ANY_SWEEP, sweepMinimumUnits: 10n ** 30n, coldAddress: COLD, band };
  const assets = new Map([
    ["TOKEN", coins],
    [PLAIN, ANY_SWEEP],
  ]);
  await house.setPolicy({}, { topUpMaxAtoken: 10n ** 15n, assets });
}

async function moves(): Promise<{ id: WithdrawalId; kind: string; state: string }[]> {
  const rows = await desk.database.query<Record<"id" | "kind" | "state", string>>(
    `SELECT withdrawal_id AS id, kind, state FROM treasury_move ORDER BY treasury_move.id`,
  );
  return rows.map((row) => ({ ...row, id: toWithdrawalId(row.id) }));
}

const states = async (kind: string) =>
  (await moves()).filter((move) => move.kind === kind).map(({ state }) => state);

async function figures() {
  const found = await readTreasury(desk.database);
  return present(
    found.find(({ asset }) => asset === "TOKEN"),
    "coins",
  );
}

/** The first wallet gives the newest move its nonce, and its key is gone. */
async function loseKey({ isSigned }: { readonly isSigned: boolean }): Promise<WithdrawalId> {
  const { id } = present((await moves()).at(-1), "a move");
  const { signer } = desk.rulesOf(KEY);
  const silent: Signer = {
    address: WALLET,
    sign: async (intents) => intents.map(() => ({ kind: "unanswered", reason: "no HSM" })),
    review: (payments) => payments.map(() => undefined),
    trouble: () => "no HSM",
  };
  const lane = desk.makeLane(WALLET, { signer: isSigned ? signer : silent, hasKey: () => true });
  await lane.runRound(desk.signal);
  expect(await desk.read(id)).toMatchObject({
    status: isSigned ? "broadcast" : "slotted",
    wallet: WALLET,
  });
  await desk.causeway("wallets", "drain", WALLET, ...REASON);
  if (!isSigned) await desk.causeway("withdrawals", "cancel", id, "--reason", "the key is lost");
  await desk.causeway("wallets", "retire", WALLET, "--leave-behind", ...REASON);
  return id;
}

/** Rounds of the treasury and of the other wallet, a block after each. */
async function goOn(rounds = 4): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    await house.treasury();
    await desk.work(1, [desk.laneOf(SECOND)]);
    await desk.watch();
  }
  expect(await desk.breaks()).toBe("");
}

/** The key is found, and the wallet does what it has begun. */
async function findKey(): Promise<void> {
  await desk.causeway("wallets", "drain", WALLET, ...REASON);
  const { signer } = desk.rulesOf(KEY);
  await desk.work(4, [desk.makeLane(WALLET, { signer, hasKey: () => true })]);
  await desk.watch();
}

it("to cold storage let another one go, and end where the key turns up", async () => {
  await setPolicy(250n * TOKEN);
  await desk.watch();
  await house.treasury();
  const id = await loseKey({ isSigned: false });
  desk.pay([SECOND_WALLET, 200n * TOKEN]);
  await goOn();
  expect(await states("cold")).toEqual(["stranded", "arrived"]);
  const { coldUnits, strandedUnits, inTransitUnits } = await figures();
  expect([coldUnits, strandedUnits]).toEqual([desk.paidAtoken(COLD), inTransitUnits]);
  const { text } = await desk.causeway("treasury", "status");
  expect(text).toContain("STRANDED: ");

  await findKey();
  expect((await desk.read(id)).status).toBe("cancelled");
  await goOn(1);
  expect(await states("cold")).toEqual(["void", "arrived"]);
  expect(await figures()).toMatchObject({ strandedUnits: 0n, inTransitUnits: 0n });
});

it("to cold storage that are mined after all arrive beside the other one", async () => {
  desk.chain.unmined.add(COLD);
  await setPolicy(250n * TOKEN);
  await desk.watch();
  await house.treasury();
  const id = await loseKey({ isSigned: true });
  desk.pay([SECOND_WALLET, 200n * TOKEN]);
  await desk.watch();
  await house.treasury();
  expect(await states("cold")).toEqual(["stranded", "open"]);
  desk.chain.unmined.clear();
  await desk.work(4, [desk.laneOf(SECOND), desk.laneOf(KEY, false)]);
  await goOn(1);
  expect((await desk.read(id)).status).toBe("settled");
  expect(await states("cold")).toEqual(["arrived", "arrived"]);
  expect(await figures()).toMatchObject({ coldUnits: desk.paidAtoken(COLD), inTransitUnits: 0n });
});

it("of gas give their place back, and their address is given other gas", async () => {
  await setPolicy(10n ** 6n * TOKEN);
  const { address } = await desk.register("bob");
  const tokens = { from: undefined, to: address, units: 77n };
  desk.chain.mine([desk.chain.tokenPayment(STRANGER, tokens)]);
  desk.chain.mine();
  await desk.watch();
  for (let round = 0; round < 2; round += 1) await house.treasury();
  expect(await states("top-up")).toEqual(["open"]);
  const id = await loseKey({ isSigned: false });
  await goOn(8);
  expect(await states("top-up")).toEqual(["stranded", "arrived"]);
  const sweeps = await listSweeps(desk.database, { afterId: 0, limit: 10 });
  expect(sweeps.map(({ state, reason }) => [state, reason ?? ""])).toEqual([
    ["void", "its gas has a nonce of a retired wallet"],
    ["settled", ""],
  ]);
  expect(desk.chain.units.get(address) ?? 0n).toBe(0n);

  await findKey();
  expect((await desk.read(id)).status).toBe("cancelled");
  await goOn(1);
  expect(await states("top-up")).toEqual(["void", "arrived"]);
  expect(await figures()).toMatchObject({ strandedUnits: 0n, inTransitUnits: 0n });
});
