/** Sweeps of tokens on a chain that came back without their blocks. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { callOf } from "../../tokens/token-bench.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { ANY_SWEEP, TreasuryBench } from "../treasury-bench.js";

const { signal } = new AbortController();

let bench: TreasuryBench;

beforeEach(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 10n ** 17n }]);
  await bench.mine();
});
afterEach(() => bench.close());

const send = (to: string, units: bigint) => callOf("PlainToken", "mint", [to, units]);

const head = () => bench.bench.chain.chain.view.head().height;

/** Some blocks more than the chain ever had, the watcher gone back, lost payments in the pool. */
async function comeBackTo(height: number): Promise<void> {
  const lost = head();
  bench = await bench.without(height);
  while (head() <= lost) await bench.bench.mine([]);
  const plan = await bench.bench.recover();
  const raws = plan.payments.flatMap(({ raw }) => raw ?? []);
  await bench.bench.mine([], raws);
  await bench.mine();
}

it("goes on with other addresses while one waits for a lost sweep of its own", async () => {
  const alice = await bench.bench.register("alice");
  const bob = await bench.bench.register("bob");
  await bench.bench.mine([{ to: alice, value: 10n ** 16n }]);
  await bench.mine();
  const kept = head();
  await bench.rounds(3);
  expect((await bench.sweeps()).map(({ state }) => state)).toEqual(["settled"]);
  await bench.bench.mine([send(alice, 700n)]);
  await bench.mine();
  await bench.mine();
  const treasury = bench.sweeper();
  await treasury.round(signal);
  expect((await bench.sweeps()).map(({ state }) => state)).toEqual(["settled", "needs-gas"]);

  await comeBackTo(kept);
  await bench.bench.mine([send(alice, 700n), { to: bob, value: 10n ** 16n }]);
  await bench.mine();
  await bench.untilEmpty([alice, bob]);
});

it("does not store again in cold storage what a lost payment takes there", async () => {
  const coldAddress = parseAddress(`0x${"c1".repeat(20)}`);
  const band = { lowUnits: 0n, targetUnits: 600n, highUnits: 700n };
  const keep = () => {
    const assets = { PLAIN: { ...ANY_SWEEP, coldAddress, band } };
    bench.files.policy = bench.policyOf({ assets });
  };
  keep();
  await bench.bench.mine([send(WALLET, 1_000n)]);
  await bench.mine();
  await bench.mine();
  const kept = head();
  await bench.rounds(3);
  expect(await bench.units(coldAddress, "PLAIN")).toBe(400n);

  const lost = head();
  bench = await bench.without(kept);
  keep();
  while (head() <= lost) await bench.bench.mine([]);
  const { payments } = await bench.bench.recover();
  const treasury = bench.sweeper();
  await treasury.round(signal);
  await bench.bench.mine(
    [],
    payments.flatMap(({ raw }) => raw ?? []),
  );
  await bench.mine();
  await bench.rounds(3, treasury);
  const left = [await bench.units(WALLET, "PLAIN"), await bench.units(coldAddress, "PLAIN")];
  expect(left).toEqual([600n, 400n]);
});
