/** An address is given out while the watcher stands still at blocks that a chain has lost. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { derivation, Desk, TOKEN } from "../desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

it("holds no recovery up, and all that it ever got is booked once", async () => {
  const bob = await desk.register("bob");
  const kept = desk.chain.head;
  desk.pay([bob.address, 5n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  await desk.loseAbove(kept);
  const carol = await desk.register("carol");
  expect(carol.fromHeight).toBeGreaterThan(kept + 1);
  const { code, text } = await desk.causeway("recover", "--apply");
  expect({ code, text: code === 0 ? "" : text }).toEqual({ code: 0, text: "" });
  desk.pay([carol.address, 3n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  expect(await desk.availableAtoken("carol")).toBe(3n * TOKEN);
  expect(await desk.breaks()).toBe("");
});

it("has what came in blocks that are watched anew booked by the watcher alone", async () => {
  const bob = await desk.register("bob");
  const kept = desk.chain.head;
  desk.pay([bob.address, 5n * TOKEN]);
  for (let block = 0; block < 4; block += 1) desk.chain.mine();
  await desk.watch();
  const lost = desk.chain.head;
  desk.chain.rollBack(kept);
  // On the chain that came back the next address has coins below the block that it is given out at.
  const address = derivation.addressAt(bob.index + 1);
  desk.pay([address, 2n * TOKEN]);
  while (desk.chain.head <= lost) desk.chain.mine();
  await desk.watch();
  const carol = await desk.register("carol");
  expect(carol.address).toBe(address);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  const rows = await desk.database.query(`SELECT status FROM deposit WHERE address = $1`, [
    address,
  ]);
  expect(rows).toHaveLength(1);
  expect(await desk.breaks()).toBe("");
});
