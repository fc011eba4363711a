/** Tokens at a deposit address of which no deposit tells: they are swept like all others. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import type { Hex } from "../../../../chain/hex.js";
import { derivation } from "../../../helpers/services/watcher.js";
import { until } from "../../../helpers/until.js";
import { callOf, ISSUER } from "../../tokens/token-bench.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { TreasuryBench } from "../treasury-bench.js";

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

it("that came unsaid beside a sweep", async () => {
  const address = await bench.bench.register("alice");
  const [issuer, token] = [ISSUER.address, "MoodyToken"] as const;
  await bench.bench.mine([
    callOf(token, "mint", [address, 10n]),
    callOf(token, "mint", [issuer, 50n]),
    { to: address, value: 10n ** 15n },
  ]);
  await bench.mine();
  const raws: Hex[] = [];
  const send = async (sent: readonly Hex[]) => {
    raws.push(...sent);
    return [];
  };
  const sweeper = bench.sweeper({ node: { ...bench.node, send } });
  for (let round = 0; round < 4 && raws.length === 0; round += 1) {
    await sweeper.round(new AbortController().signal);
  }
  expect(raws).toHaveLength(1);
  await bench.bench.mine(
    [
      callOf(token, "setMood", [4n]),
      callOf(token, "transfer", [address, 50n]),
      callOf(token, "setMood", [0n]),
    ],
    raws,
  );
  await bench.mine();
  expect(await bench.units(address, "MOODY")).toBe(50n);
  await expectSwept(address, "MOODY", 60n);
});
