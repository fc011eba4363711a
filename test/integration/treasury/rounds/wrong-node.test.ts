/** A balancer that asks a node of another chain for what addresses have: it says nothing is there. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { createEvmClient } from "../../../../rpc-client/evm-client.js";
import { RpcError } from "../../../../rpc-client/errors.js";
import type { JsonRpcClient, RpcCall, RpcOutcome } from "../../../../rpc-client/json-rpc.js";
import { callOf } from "../../tokens/token-bench.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { TreasuryBench } from "../treasury-bench.js";

const { signal } = new AbortController();

let bench: TreasuryBench;

beforeAll(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 10n ** 18n }]);
  await bench.bench.caughtUp();
});
afterAll(() => bench.close());

/** Taller than ours, without our blocks: it refuses what names one. */
function wrongAnswer({ method, params }: RpcCall): RpcOutcome {
  if (params.some((param) => Object.hasOwn(Object(param), "blockHash"))) {
    const error = new RpcError("header for hash not found", { rpcCode: -32_000, method });
    return { ok: false, error };
  }
  return { ok: true, result: method === "eth_call" ? "0x" : "0x0" };
}

const WRONG: JsonRpcClient = {
  request: () => Promise.reject(new Error("all is asked in batches")),
  batch: async (calls) => calls.map(wrongAnswer),
  close: () => undefined,
};

it("takes nothing off the list of what is to be swept", async () => {
  const { rpc } = bench.bench;
  const address = await bench.bench.register("alice");
  await bench.bench.mine([{ to: address, value: 10n ** 16n }]);
  await bench.mine();
  await expect(bench.sweeper({ rpc: WRONG }).round(signal)).rejects.toThrow("header for hash");
  await bench.untilEmpty([address]);
  const holder = await bench.bench.register("bob");
  await bench.bench.mine([
    callOf("PlainToken", "mint", [holder, 5n]),
    { to: holder, value: 10n ** 16n },
  ]);
  await bench.mine();
  const wrong = createEvmClient(WRONG);
  const tokenBalances: typeof wrong.tokenBalances = (...asked) => wrong.tokenBalances(...asked);
  const mixed = bench.sweeper({ evm: { ...createEvmClient(rpc), tokenBalances } });
  await expect(mixed.round(signal)).rejects.toThrow("header for hash");
  await bench.rounds(6);
  expect(await bench.units(holder, "PLAIN")).toBe(0n);
});
