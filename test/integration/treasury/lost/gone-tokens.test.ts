/**
 * Sweeps whose tokens are gone before they were given gas: the ledger was put back to where it had only
 * begun them, and the chain has the transfer.
 */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { createEvmClient } from "../../../../rpc-client/evm-client.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { callOf } from "../../tokens/token-bench.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { PRICE, TreasuryBench } from "../treasury-bench.js";

const { signal } = new AbortController();

/** Enough for one transfer of a token, and less than a second one is given. */
const GAS_LIMIT = 60_000n;

let bench: TreasuryBench;

beforeAll(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 10n ** 18n }]);
  await bench.bench.caughtUp();
});
afterAll(() => bench.close());

it("are given up without gas, and what comes later is swept", async () => {
  const sweeper = bench.sweeper({
    node: {
      ...bench.node,
      view: async (wallet, options) => ({
        ...(await bench.node.view(wallet, options)),
        suggestedPriceAtoken: 2n * PRICE,
      }),
    },
  });
  const address = await bench.bench.register("alice");
  await bench.bench.mine([callOf("PlainToken", "mint", [address, 5n])]);
  await bench.mine();
  await sweeper.round(signal);
  const [begun] = await bench.sweeps();
  expect([begun?.state, begun?.topUp]).toEqual(["needs-gas", "none"]);

  const key = bench.keys.privateKeyAt(begun?.index ?? 0);
  const from = new Wallet(`0x${Buffer.from(key).toString("hex")}`);
  await bench.bench.mine([{ to: address, value: GAS_LIMIT * PRICE }]);
  const transfer = callOf("PlainToken", "transfer", [WALLET, 5n]);
  await bench.bench.mine([{ ...transfer, from, gasLimit: GAS_LIMIT }]);
  await bench.mine();
  expect(await bench.units(WALLET, "PLAIN")).toBe(5n);
  await bench.step(sweeper);
  const [given] = await bench.sweeps();
  expect([given?.state, given?.topUp]).toEqual(["void", "none"]);

  await bench.bench.mine([callOf("PlainToken", "mint", [address, 7n])]);
  for (let round = 0; round < 6; round += 1) await bench.step(sweeper);
  expect(await bench.units(WALLET, "PLAIN")).toBe(12n);
  expect((await bench.sweeps()).map(({ state }) => state)).toEqual(["void", "settled"]);
});

it("are begun once in a while, where a token's balances fall by themselves", async () => {
  const evm = createEvmClient(bench.bench.rpc);
  let fallenUnits = 0n;
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const sweeper = bench.sweeper({
    log: createLogger({ component: "test", destination }),
    evm: {
      ...evm,
      async tokenBalances(reads, options) {
        const balances = await evm.tokenBalances(reads, options);
        return balances.map((units) => units && units - fallenUnits);
      },
    },
  });
  const address = await bench.bench.register("bob");
  await bench.bench.mine([callOf("PlainToken", "mint", [address, 1_000n])]);
  await bench.mine();
  for (let round = 0; round < 5; round += 1) {
    await sweeper.round(signal);
    fallenUnits += 1n;
  }
  const begun = (await bench.sweeps()).filter((sweep) => sweep.address === address);
  expect(begun.map(({ state }) => state)).toEqual(["void"]);
  const told = lines.filter((line) => line.includes("a sweep is given up"));
  expect(told).toHaveLength(1);
  expect(told[0]).toContain(address);
});
