/** `causeway sweeps release` on a ledger that was put back. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { freezeSweep, intendSweeps, listSweeps } from "../../../ledger/treasury/sweeps.js";
import { Desk, TOKEN, WALLET } from "../recovery/desk.js";

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

it("holds the ledger against the home before it decides anything", async () => {
  await freeze();
  const backup = await desk.backup();
  await desk.register("bob");
  await desk.useDatabase(backup);
  await expect(release()).rejects.toMatchObject({ code: "RECOVERY" });
  expect(await stateOf()).toBe("frozen");
});
