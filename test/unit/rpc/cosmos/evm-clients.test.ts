/** Whose the EVM's queries are: clients of REST and gRPC have turns at the call workers. */
import { expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { parseHexBytes } from "../../../../chain/hex.js";
import { MessageReader, type ProtoMessage } from "../../../../chain/protobuf/values.js";
import { evmQueries } from "../../../../node/rpc/cosmos/modules/evm.js";
import { evmTraceQueries } from "../../../../node/rpc/cosmos/modules/evm-traces.js";
import type { QuerySources } from "../../../../node/rpc/cosmos/sources.js";

const CLIENT = "192.0.2.1";
const args = Buffer.from(JSON.stringify({ to: `0x${"11".repeat(20)}` }));

async function minedTransaction(): Promise<ProtoMessage> {
  const wallet = new Wallet(`0x${"41".repeat(32)}`);
  const fields = { type: 0, chainId: 6_940, nonce: 0, gasLimit: 21_000, gasPrice: 1n };
  return { raw: parseHexBytes(await wallet.signTransaction({ ...fields, to: wallet.address })) };
}

function sourcesOf(calls: unknown): QuerySources {
  const view = { head: () => ({ height: 3 }), locate: () => ({ height: 1, index: 0 }) };
  const node = { minimumGasPrices: "0.025atoken" };
  return { chain: { view }, calls, node, evmChainId: 6_940n } as unknown as QuerySources;
}

const { signal } = new AbortController();
const context = { height: 3, signal, client: CLIENT, tellHeight: () => undefined };

it("tells the addresses of the chain's own contracts, and none that is only kept", async () => {
  const query = evmQueries(sourcesOf({}))["/cosmos.evm.vm.v1.Query/Params"];
  const numbers = ["100", "400", "800", "801", "804", "805", "806"];
  expect(await query?.(new MessageReader({}), context)).toMatchObject({
    params: { active_static_precompiles: numbers.map((number) => `0x${number.padStart(40, "0")}`) },
  });
});

it.each([
  ["EthCall", async () => ({ args })],
  ["EstimateGas", async () => ({ args })],
  ["TraceCall", async () => ({ args })],
  ["TraceTx", async () => ({ msg: await minedTransaction() })],
  ["TraceBlock", async () => ({ block_number: 1n })],
])("%s says who asks", async (name, request) => {
  const asked: unknown[] = [];
  const note = (...values: readonly unknown[]) => {
    asked.push(values.at(-1));
    throw new Error("noted");
  };
  const calls = { call: note, estimateGas: note, traceCall: note, traceBlock: note };
  const sources = sourcesOf(calls);
  const queries = { ...evmQueries(sources), ...evmTraceQueries(sources) };
  const query = queries[`/cosmos.evm.vm.v1.Query/${name}`];
  const message = new MessageReader(await request());
  const run = async () => query?.(message, context);
  await expect(run()).rejects.toThrow("noted");
  expect(asked).toEqual([{ signal, client: CLIENT }]);
});
