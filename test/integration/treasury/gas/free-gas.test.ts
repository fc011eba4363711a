/** Sweeps on a chain that asks nothing for gas: what they cost is no sign that they were mined. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import type { Sweep } from "../../../../ledger/treasury/sweeps.js";
import type { Sweeper } from "../../../../withdrawal-worker/treasury/sweeper.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { callOf } from "../../tokens/token-bench.js";
import { TreasuryBench } from "../treasury-bench.js";

let bench: TreasuryBench;

beforeAll(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 10n ** 18n }]);
  await bench.bench.caughtUp();
});
afterAll(() => bench.close());

/** A treasury whose node suggests no price. */
function forNothing(): Sweeper {
  return bench.sweeper({
    settings: { ...bench.settings, gas: { ...bench.settings.gas, priceFloorAtoken: 0n } },
    node: {
      ...bench.node,
      view: async (wallet, options) => {
        return { ...(await bench.node.view(wallet, options)), suggestedPriceAtoken: 0n };
      },
    },
  });
}

async function sweepsOf(address: Address): Promise<readonly Sweep["state"][]> {
  const sweeps = await bench.sweeps();
  return sweeps.filter((sweep) => sweep.address === address).map(({ state }) => state);
}

it("end where they moved nothing, and leave the way to the next one", async () => {
  const address = await bench.bench.register("customer");
  await bench.bench.mine([callOf("MoodyToken", "mint", [address, 10n])]);
  await bench.mine();
  const treasury = forNothing();
  await bench.rounds(1, treasury);
  expect(await sweepsOf(address)).toEqual(["ready"]);
  // It says yes, and moves nothing.
  await bench.bench.mine([callOf("MoodyToken", "setMood", [2])]);
  await bench.rounds(1, treasury);
  expect(await bench.nonce(address)).toBe(1n);
  await bench.rounds(2, treasury);
  expect(await sweepsOf(address)).toEqual(["failed"]);
  await bench.bench.mine([callOf("MoodyToken", "setMood", [0])]);
  // As an hour later.
  await bench.bench.ledger.owner.query(`UPDATE sweep_due SET due_at = now()`);
  await bench.rounds(3, treasury);
  expect(await sweepsOf(address)).toEqual(["failed", "settled"]);
  expect(await bench.units(address, "MOODY")).toBe(0n);
});

it("are shown as ended where the chain had come back older before they were mined", async () => {
  const head = () => bench.bench.chain.chain.view.head().height;
  const kept = head();
  await bench.bench.mine([{ to: WALLET, value: 1n }]);
  await bench.mine();
  const lost = head();
  bench = await bench.without(kept);
  while (head() <= lost) await bench.bench.mine([]);
  await bench.bench.recover();
  await bench.mine();
  const address = await bench.bench.register("later");
  await bench.bench.mine([callOf("MoodyToken", "mint", [address, 10n])]);
  await bench.mine();
  const treasury = forNothing();
  await bench.rounds(1, treasury);
  await bench.bench.mine([callOf("MoodyToken", "setMood", [2])]);
  await bench.rounds(3, treasury);
  const [sweep] = (await bench.sweeps()).filter((each) => each.address === address);
  expect([sweep?.state, sweep?.reason]).toEqual(["failed", "it was mined and moved nothing"]);
  expect(sweep?.blockNumber).toBeGreaterThan(kept);
  // What is lost after that is lost.
  const below = (sweep?.blockNumber ?? 0) - 1;
  const former = head();
  bench = await bench.without(below);
  while (head() <= former) await bench.bench.mine([]);
  await bench.bench.recover();
  expect((await sweepsOf(address)).at(0)).toBe("sent");
});
