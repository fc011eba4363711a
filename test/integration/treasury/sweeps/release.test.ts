/** `causeway sweeps release` on a ledger that was put back. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import {
  freezeSweep,
  intendSweeps,
  listSweeps,
  voidSweep,
} from "../../../../ledger/treasury/sweeps.js";
import { Desk, TOKEN, WALLET } from "../../recovery/desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.open();
});
afterEach(() => desk.close());

const stateOf = async () => (await listSweeps(desk.database, { afterId: 0, limit: 1 }))[0]?.state;

/** A frozen sweep of alice's address, whose nonce is free. */
async function freeze(): Promise<void> {
  const { address } = await desk.register("alice");
  desk.pay([address, TOKEN]);
  desk.chain.mine();
  await desk.watch();
  const gas = { nonce: 0n, gasPriceAtoken: 1n };
  const wanted = { address, asset: "TOKEN", wallet: WALLET, amountUnits: TOKEN, gasLimit: 21_000n };
  await intendSweeps(desk.workerDatabase, [{ ...wanted, gas }], desk.chain.head);
  const [sweep] = await listSweeps(desk.database, { afterId: 0, limit: 1 });
  await freezeSweep(desk.workerDatabase, sweep?.id ?? 0, "looked at by a person");
}

const release = () => desk.causeway("sweeps", "release", "1", "--reason", "looked at the chain");

it("lets a frozen sweep go on", async () => {
  await freeze();
  expect(await release()).toEqual({ code: 0, text: "Its nonce is free: it is signed." });
  expect(await stateOf()).toBe("ready");
});

it("keeps who let it go on, and why, whatever becomes of the sweep", async () => {
  await freeze();
  const typed = (reason: string) =>
    desk.causeway("sweeps", "release", "1", "--operator", "ann", "--reason", reason);
  await expect(typed(" ")).rejects.toMatchObject({ code: "USAGE" });
  expect(await stateOf()).toBe("frozen");
  await typed("looked at the chain");
  await freezeSweep(desk.workerDatabase, 1, "again");
  await typed("looked once more");
  const end = { reason: "nothing was signed for nonce 0", delayMs: 0 };
  expect(await voidSweep(desk.workerDatabase, 1, end)).toBe(true);
  const { text } = await desk.causeway("ledger", "decisions");
  expect(text.split("\n")).toEqual([
    "1 done release-sweep sweepId 1, isNonceUsed false; by ann: looked at the chain",
    "2 done release-sweep sweepId 1, isNonceUsed false; by ann: looked once more",
  ]);
});

it("holds the ledger against the home before it decides anything", async () => {
  await freeze();
  const backup = await desk.backup();
  await desk.register("bob");
  await desk.useDatabase(backup);
  await expect(release()).rejects.toMatchObject({ code: "RECOVERY" });
  expect(await stateOf()).toBe("frozen");
});
