/** What a person gave for a payment whose blocks were lost again: its customer has it once, whatever comes back. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { cancelWithdrawal } from "../../../../ledger/withdrawals/cancellation.js";
import type { Withdrawal } from "../../../../ledger/withdrawals/withdrawals.js";
import { Desk, destination, STRANGER, TOKEN } from "../desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

/** Alice's one TOKEN was paid, fails on the chain that came back, and is given back. */
async function failedAndGiven(): Promise<{ kept: number; settled: Withdrawal }> {
  const kept = desk.chain.head;
  const settled = await ask("s", 1, TOKEN);
  await desk.work();
  await desk.watch();
  desk.chain.revertingOnChain.add(destination(1));
  await loseAbove(kept);
  await accept(settled, 1);
  await desk.causeway("withdrawals", "release");
  expect(await alice()).toEqual([10n * TOKEN, 0n]);
  return { kept, settled };
}

it("is given once where the payment fails again, and what was given first is withdrawn", async () => {
  const { kept, settled } = await failedAndGiven();
  await ask("all", 2, 10n * TOKEN);
  await desk.work();
  await desk.watch();
  await loseAbove(kept);
  await accept(settled, 2);
  expect([1, 2].map((n) => desk.paidAtoken(destination(n)))).toEqual([0n, 10n * TOKEN]);
  expect(await alice()).toEqual([0n, 0n]);
  expect(await desk.breaks()).toBe("");
  // It pays in the end: what was given is missing, once.
  desk.chain.revertingOnChain.clear();
  await loseAbove(kept);
  expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
  expect(await alice()).toEqual([0n, TOKEN]);
  // And fails once more.
  desk.chain.revertingOnChain.add(destination(1));
  await loseAbove(kept);
  await accept(settled, 4);
  expect(await alice()).toEqual([0n, 0n]);
  expect(await desk.breaks()).toBe("");
});

it("comes out of a hold that comes back, where the payment pays", async () => {
  const { kept } = await failedAndGiven();
  desk.chain.unmined.add(destination(2));
  const { id } = await ask("all", 2, 10n * TOKEN);
  await desk.lane().runRound(desk.signal);
  desk.chain.revertingOnChain.clear();
  expect(await loseAbove(kept)).toContain("customers have withdrawn 1 TOKEN");
  await desk.causeway("withdrawals", "release");
  expect(await alice()).toEqual([0n, TOKEN]);
  await cancelWithdrawal(desk.database, id, "not wanted");
  await desk.work(4);
  await desk.watch();
  expect((await desk.read(id)).status).toBe("cancelled");
  expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
  expect(await alice()).toEqual([9n * TOKEN, 0n]);
  expect(await desk.breaks()).toBe("");
});

it("is taken before the deposit that is lost with it, which fills the rest when it is mined again", async () => {
  const { address } = await desk.register("bob");
  const below = desk.chain.head;
  const deposit = desk.chain.payment(STRANGER, address, 5n * TOKEN);
  desk.chain.mine([deposit]);
  desk.chain.mine();
  await desk.watch();
  const kept = desk.chain.head;
  const settled = await ask("s", 1, 4n * TOKEN, "bob");
  await desk.work();
  await desk.watch();
  desk.chain.revertingOnChain.add(destination(1));
  await loseAbove(kept);
  await accept(settled, 1, "bob");
  expect(await desk.availableAtoken("bob")).toBe(5n * TOKEN);
  desk.chain.revertingOnChain.clear();
  await loseAbove(below);
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
  desk.chain.mine([deposit]);
  desk.chain.mine();
  await desk.watch();
  expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([TOKEN, 0n]);
  expect(await desk.breaks()).toBe("");
});

const alice = async () => [await desk.availableAtoken("alice"), await desk.breakAtoken()];

function ask(key: string, to: number, amountAtoken: bigint, customer = "alice") {
  return desk.request({ key, customer, to: destination(to), amountAtoken });
}

async function accept({ id }: Withdrawal, loss: number, customer = "alice"): Promise<void> {
  const account = `liability:customer:${customer}`;
  const words = ["ledger", "accept-remined", `${id}-r${loss}`, "--account", account];
  await desk.causeway(...words, "--reason", "looked at the chain");
}

/** The chain comes back without the blocks above a height, and a person recovers. */
async function loseAbove(height: number): Promise<string> {
  await desk.loseAbove(height);
  const { code, text } = await desk.causeway("recover", "--apply");
  expect({ code, text: code === 0 ? "" : text }).toEqual({ code: 0, text: "" });
  desk.chain.mine();
  await desk.watch();
  return text;
}
