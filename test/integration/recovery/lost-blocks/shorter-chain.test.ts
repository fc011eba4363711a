/** A chain that lost many blocks, and is shorter than it was long after the recovery. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { bytesToHex } from "../../../../chain/hex.js";
import { signLegacy } from "../../../../chain/transaction.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { Desk, destination, KEY, TOKEN } from "../desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

const ask = (key: string, place: number) =>
  desk.request({ key, customer: "alice", to: destination(place), amountAtoken: TOKEN });

it("is paid on at once, by a worker that saw the longer one, too", async () => {
  const kept = desk.chain.head;
  const lost = await ask("lost", 1);
  await desk.work();
  for (let block = 0; block < 40; block += 1) desk.chain.mine();
  const late = await ask("late", 2);
  await desk.work();
  await desk.watch();
  expect([(await desk.read(lost.id)).status, (await desk.read(late.id)).status]).toEqual([
    "settled",
    "settled",
  ]);
  const former = desk.chain.head;
  // The watcher halts on it, and it comes back once more.
  await desk.loseAbove(kept);
  desk.chain.rollBack(kept);
  desk.chain.mine();
  // The worker goes on looking meanwhile, and does nothing.
  await desk
    .lane()
    .runRound(desk.signal)
    .catch(() => undefined);
  const { code, text } = await desk.causeway("recover", "--apply");
  expect({ code, text: code === 0 ? "" : text }).toEqual({ code: 0, text: "" });
  desk.chain.mine();
  await desk.watch();
  await desk.work(2);
  await desk.causeway("withdrawals", "release");
  const next = await ask("next", 3);
  await desk.work();
  await desk.watch();
  expect((await desk.read(next.id)).status).toBe("settled");
  expect([1, 2, 3].map((place) => desk.paidAtoken(destination(place)))).toEqual([
    TOKEN,
    TOKEN,
    TOKEN,
  ]);
  expect(desk.chain.head).toBeLessThan(former);
  expect(await desk.availableAtoken("alice")).toBe(7n * TOKEN);
  expect(await desk.breaks()).toBe("");
  // Lost once more, from the same block on.
  await desk.loseAbove(kept);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  desk.chain.mine();
  await desk.watch();
  expect([1, 2, 3].map((place) => desk.paidAtoken(destination(place)))).toEqual([
    TOKEN,
    TOKEN,
    TOKEN,
  ]);
  expect(await desk.breaks()).toBe("");
  expect(await desk.breakAtoken()).toBe(0n);
});

it("finds what somebody else signed there, whichever blocks the lost payments were in", async () => {
  const kept = desk.chain.head;
  for (let block = 0; block < 40; block += 1) desk.chain.mine();
  const lost = await ask("lost", 1);
  await desk.work();
  await desk.watch();
  await desk.loseAbove(kept);
  desk.chain.rollBack(kept);
  desk.chain.mine();
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  desk.chain.mine();
  await desk.watch();
  await desk.causeway("withdrawals", "release");
  const intent = { chainId: FAKE_CHAIN_ID, nonce: 1n, gasPriceAtoken: 90_000_000n };
  const rest = { gasLimit: 21_000n, to: destination(7), valueAtoken: 5n, data: new Uint8Array(0) };
  desk.chain.submit(bytesToHex(signLegacy({ ...intent, ...rest }, KEY)));
  desk.chain.mine();
  await desk.watch();
  await desk.work(2);
  expect(desk.lane().status().isFrozen).toBe(true);
  const words = ["withdrawals", "release", "--accept-foreign", "--reason", "looked at the chain"];
  const { code, text } = await desk.causeway(...words);
  expect({ code, text: code === 0 ? "" : text }).toEqual({ code: 0, text: "" });
  const next = await ask("next", 2);
  await desk.work();
  await desk.watch();
  expect([(await desk.read(lost.id)).status, (await desk.read(next.id)).status]).toEqual([
    "settled",
    "settled",
  ]);
  expect([desk.paidAtoken(destination(1)), desk.paidAtoken(destination(2))]).toEqual([
    TOKEN,
    TOKEN,
  ]);
});

it("goes back no further than a second loss, however many payments name blocks of the first", async () => {
  const { address } = await desk.register("bob");
  await desk.watch();
  const kept = desk.chain.head;
  for (let place = 1; place <= 5; place += 1) {
    await ask(`p${place}`, place);
    await desk.work();
  }
  await desk.watch();
  await desk.loseAbove(kept);
  desk.chain.rollBack(kept);
  desk.chain.mine();
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  desk.chain.mine();
  desk.pay([address, 7n]);
  desk.chain.mine();
  const stays = desk.chain.head;
  // As high again as the blocks that the payments go on naming.
  for (let block = 0; block < 30; block += 1) desk.chain.mine();
  await desk.watch();
  expect(await desk.availableAtoken("bob")).toBe(7n);
  await desk.loseAbove(stays);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  const rows = await desk.database.query(
    `SELECT status, count(*)::integer AS count FROM deposit WHERE customer_id = 'bob' GROUP BY status`,
  );
  expect(rows).toEqual([{ status: "credited", count: 1 }]);
});
