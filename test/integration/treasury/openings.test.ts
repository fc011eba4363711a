/** Tokens that a deposit address held before they counted: they are swept like deposits. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { derivation } from "../../helpers/services/watcher.js";
import { until } from "../../helpers/until.js";
import { callOf } from "../tokens/token-bench.js";
import { WALLET } from "../withdrawal-worker/house.js";
import { TreasuryBench } from "./treasury-bench.js";

let bench: TreasuryBench;

beforeEach(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 10n ** 17n }]);
  await bench.mine();
});
afterEach(() => bench.close());

/** Everything of the token is in the hot wallet after some rounds. */
async function expectSwept(address: Address, asset: string, units: bigint): Promise<void> {
  for (let round = 0; round < 8 && (await bench.units(address, asset)) > 0n; round += 1) {
    await bench.rounds(1);
  }
  const left = [await bench.units(address, asset), await bench.units(WALLET, asset)];
  expect(left).toEqual([0n, units]);
}

it("that lay there before the address was given out", async () => {
  const address = derivation.addressAt(0);
  await bench.bench.mine([callOf("PlainToken", "mint", [address, 700n])]);
  await bench.mine();
  expect(await bench.bench.register("alice")).toBe(address);
  const { database } = bench.bench;
  await until(
    async () =>
      (await database.query(`SELECT 1 FROM deposit_address WHERE NOT backfilled`)).length === 0,
    { timeoutMs: 30_000, what: "the past of the address is booked" },
  );
  await expectSwept(address, "PLAIN", 700n);
});
