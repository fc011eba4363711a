/** What `causeway recover` calls missing of a chain that lost blocks: what the chain does not have alone. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { Desk, STRANGER, TOKEN, WALLET } from "../desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

it("names as missing no inflow, and no deposit, that the chain has", async () => {
  const { chain } = desk;
  const { address } = await desk.register("bob");
  // No block above alice's deposit can be proven, and this one is not lost.
  const kept = chain.payment(STRANGER, WALLET, 3n);
  const { height } = chain.mine([kept]);
  const [gone, again] = [5n, 7n].map((amount) => chain.payment(STRANGER, WALLET, amount));
  const [goneDeposit, againDeposit] = [1n, 2n].map((amount) =>
    chain.payment(STRANGER, address, amount * TOKEN),
  );
  if (!gone || !again || !goneDeposit || !againDeposit) throw new Error("four payments");
  chain.mine([gone, again, goneDeposit, againDeposit]);
  chain.mine();
  await desk.watch();
  const lost = chain.head;
  chain.rollBack(height);
  chain.mine();
  chain.mine([again, againDeposit]);
  while (chain.head <= lost) chain.mine();
  await desk.watch();

  const { code, text } = await desk.causeway("recover");
  const lines = text
    .split("\n")
    .filter((line) => line.includes(" 0x") && /inflow|deposit/.test(line));
  const inflow = (hash: string) => lines.filter((line) => line.includes(hash));
  expect(code).toBe(1);
  expect(inflow(gone.hash)).toEqual([
    `missing inflow of a hot wallet ${gone.hash}: will be reversed`,
  ]);
  expect(inflow(goneDeposit.hash)).toEqual([
    expect.stringMatching(/^missing deposit .*: 1 TOKEN of bob, credited, .*: will be reversed$/),
  ]);
  const there = "it is on the chain: will be reversed, and booked again as the watcher comes by";
  for (const { hash } of [kept, again]) {
    expect(inflow(hash)).toEqual([`inflow of a hot wallet ${hash}: ${there}`]);
  }
  expect(inflow(againDeposit.hash)).toEqual([
    expect.stringMatching(new RegExp(`^deposit .*: 2 TOKEN of bob, credited, .*: ${there}$`)),
  ]);
  const json = JSON.parse((await desk.causeway("recover", "--json")).text) as {
    readonly rewind: { readonly onChain: readonly string[] };
  };
  expect(json.rewind.onChain.toSorted()).toEqual(
    [kept.hash, again.hash, againDeposit.hash].toSorted(),
  );

  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  expect(await desk.availableAtoken("bob")).toBe(2n * TOKEN);
  expect(await desk.breaks()).toBe("");
});
