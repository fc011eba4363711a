/** Coins of cold storage that a chain has lost: what they had filled asks for them again. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { nameColdAddresses } from "../../../../ledger/treasury/moves.js";
import { askForRefill, openRefills, withdrawRefill } from "../../../../ledger/treasury/refills.js";
import { holdKeys } from "../../../helpers/exchange/held-keys.js";
import { Desk, STRANGER, TOKEN, WALLET } from "../../recovery/desk.js";

/** A hot wallet of another home. */
const OTHER = `0x${"5e".repeat(20)}`;

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.open();
  await desk.watch();
  await nameColdAddresses(desk.database, [{ asset: "TOKEN", address: STRANGER }]);
  await askForRefill(desk.database, { asset: "TOKEN", amountUnits: 10n * TOKEN });
});
afterEach(() => desk.close());

/** Somebody sends from cold storage. */
async function send(amountAtoken: bigint) {
  const payment = desk.chain.payment(STRANGER, WALLET, amountAtoken);
  desk.chain.mine([payment]);
  await desk.watch();
  return payment;
}

/** A block that the ledger has a hash of, and that stays: the watcher goes back no further. */
async function keep(): Promise<number> {
  const { address } = await desk.register("bob");
  desk.pay([address, 1n]);
  await desk.watch();
  return desk.chain.head;
}

async function loseAbove(height: number): Promise<void> {
  await desk.loseAbove(height);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
}

/** Requests as they are shown while a worker holds the wallet's key. */
async function shown() {
  await holdKeys(desk.database, [WALLET]);
  return openRefills(desk.database);
}

async function cameAtoken(): Promise<bigint | undefined> {
  return (await shown())[0]?.cameUnits;
}

it("asks again for a part that the chain has lost, and counts it once when it is mined again", async () => {
  await send(2n * TOKEN);
  const kept = desk.chain.head;
  const lost = await send(3n * TOKEN);
  expect(await cameAtoken()).toBe(5n * TOKEN);
  await loseAbove(kept);
  expect(await cameAtoken()).toBe(2n * TOKEN);
  desk.chain.mine([lost]);
  await desk.watch();
  expect(await cameAtoken()).toBe(5n * TOKEN);
  expect(await desk.breaks()).toBe("");
});

it("is open again where what had filled it is gone", async () => {
  await send(4n * TOKEN);
  const kept = await keep();
  const lost = await send(6n * TOKEN);
  expect(await shown()).toEqual([]);
  await loseAbove(kept);
  expect(await cameAtoken()).toBe(4n * TOKEN);
  desk.chain.mine([lost]);
  await desk.watch();
  expect(await shown()).toEqual([]);
  expect(await desk.breaks()).toBe("");
});

it("leaves alone what had not filled it", async () => {
  await send(10n * TOKEN);
  expect(await shown()).toEqual([]);
  const kept = await keep();
  // Nobody asks for it any more, or nobody yet.
  await send(7n * TOKEN);
  await loseAbove(kept);
  expect(await shown()).toEqual([]);
  const before = await keep();
  await send(5n * TOKEN);
  await askForRefill(desk.database, { asset: "TOKEN", amountUnits: 8n * TOKEN });
  const between = await keep();
  await send(3n * TOKEN);
  expect(await cameAtoken()).toBe(3n * TOKEN);
  await loseAbove(between);
  expect(await cameAtoken()).toBe(0n);
  await send(2n * TOKEN);
  await loseAbove(before);
  expect(await cameAtoken()).toBe(0n);
  expect(await desk.breaks()).toBe("");
});

it("is the newest one where several had been filled", async () => {
  const kept = await keep();
  await send(10n * TOKEN);
  await askForRefill(desk.database, { asset: "TOKEN", amountUnits: 8n * TOKEN });
  const lost = await send(8n * TOKEN);
  await loseAbove(kept);
  expect(await shown()).toMatchObject([{ amountUnits: 8n * TOKEN, cameUnits: 0n }]);
  desk.chain.mine([lost]);
  await desk.watch();
  expect(await shown()).toEqual([]);
  expect(await desk.breaks()).toBe("");
});

it("asks for nothing again that another wallet than the named one had got", async () => {
  await send(2n * TOKEN);
  await desk.database.query(`UPDATE refill_request SET wallet = $1`, [OTHER]);
  const kept = await keep();
  await send(3n * TOKEN);
  const came = () => desk.database.query(`SELECT came_units::text AS came FROM refill_request`);
  expect(await came()).toEqual([{ came: `${2n * TOKEN}` }]);
  await loseAbove(kept);
  expect(await came()).toEqual([{ came: `${2n * TOKEN}` }]);
  expect(await desk.breaks()).toBe("");
});

it("does not wait for a block that is gone to be taken back where it is needless", async () => {
  const kept = await keep();
  for (let block = 0; block < 5; block += 1) desk.chain.mine();
  await desk.watch();
  const takeBack = (seenHeight: number) =>
    withdrawRefill(desk.database, { asset: "TOKEN", seenHeight, kind: "all" });
  // The wallets are seen to have enough in a block that is not booked yet.
  expect(await takeBack(desk.chain.head + 1)).toBe(false);
  await desk.loseAbove(kept);
  desk.chain.rollBack(kept);
  desk.chain.mine();
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  expect(await takeBack(desk.chain.head)).toBe(true);
  expect(await shown()).toEqual([]);
});
