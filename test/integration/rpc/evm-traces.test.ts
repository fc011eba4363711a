/** Traces of `cosmos.evm.vm.v1.Query` over REST: those of `debug_trace...`, of what was mined. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import fs from "node:fs";
import { JsonRpcProvider, Wallet } from "ethers";
import { StakedNode } from "../../helpers/cosmos/staked-node.js";

/** Pays 0xbb...bb 1 atoken. */
const CALLER = `0x6000600060006000600173${"bb".repeat(20)}5af15000`;
const CALL_TRACER = { tracer: "callTracer" };

let node: StakedNode;
let provider: JsonRpcProvider;
let wallet: Wallet;
let hash: string;
let raw: string;
let block: number;

beforeAll(async () => {
  node = await StakedNode.start({});
  provider = new JsonRpcProvider(node.url("jsonRpc"), 6940, { staticNetwork: true });
  wallet = new Wallet(fs.readFileSync(node.faucetKey, "utf8").trim(), provider);
  const fields = { type: 0, gasPrice: 25_000_000n, gasLimit: 200_000n };
  const sent = await wallet.sendTransaction({ ...fields, to: null, value: 5n, data: CALLER });
  const receipt = await sent.wait(1, 60_000);
  hash = sent.hash;
  raw = base64(String(await provider.send("debug_getRawTransaction", [hash])));
  block = receipt?.blockNumber ?? 0;
});

afterAll(async () => {
  provider?.destroy();
  await node?.close();
});

function base64(hex: string): string {
  return Buffer.from(hex.replace("0x", ""), "hex").toString("base64");
}

async function ask(route: string, query: Readonly<Record<string, string>>) {
  const { status, body } = await node.get(
    `/cosmos/evm/vm/v1/${route}?${new URLSearchParams(query)}`,
  );
  const { data, code, message } = body as { data?: string; code?: number; message?: string };
  if (status !== 200) return { status, code, message };
  return JSON.parse(Buffer.from(data ?? "", "base64").toString("utf8"));
}

describe("traces as SDK chains have them", () => {
  it("of a transaction are those of debug_traceTransaction", async () => {
    const query = { "msg.raw": raw, "trace_config.tracer": "callTracer" };
    const expected = await provider.send("debug_traceTransaction", [hash, CALL_TRACER]);
    expect(expected.calls).toHaveLength(1);
    expect(await ask("trace_tx", query)).toEqual(expected);
    expect(await ask("trace_tx", { ...query, block_number: `${block}` })).toEqual(expected);
    const config = { "trace_config.tracer_json_config": '{"onlyTopCall":true}' };
    const { calls: _calls, ...top } = expected;
    expect(await ask("trace_tx", { ...query, ...config })).toEqual(top);
    expect(await ask("trace_tx", { "msg.raw": raw, "trace_config.limit": "1000" })).toEqual(
      await provider.send("debug_traceTransaction", [hash, { limit: 1_000 }]),
    );
  });

  it("of a block are those of debug_traceBlockByNumber, without hashes", async () => {
    const named = [`0x${block.toString(16)}`, CALL_TRACER];
    const expected: { result: unknown }[] = await provider.send("debug_traceBlockByNumber", named);
    const query = { block_number: `${block}`, "trace_config.tracer": "callTracer" };
    expect(await ask("trace_block", query)).toEqual(expected.map(({ result }) => ({ result })));
  });

  it("of a call are those of debug_traceCall", async () => {
    const call = { from: wallet.address, to: `0x${"cc".repeat(20)}`, value: "0x7", gas: "0x7530" };
    const args = Buffer.from(JSON.stringify(call)).toString("base64");
    const expected = await provider.send("debug_traceCall", [call, "latest", CALL_TRACER]);
    expect(await ask("trace_call", { args, "trace_config.tracer": "callTracer" })).toEqual(
      expected,
    );
  });

  it("of what is not there, or of no kind, are refused", async () => {
    const unsent = await wallet.signTransaction({ type: 0, chainId: 6940, nonce: 999, to: wallet });
    const refusals: readonly (readonly [string, Record<string, string>, number, number, RegExp])[] =
      [
        ["trace_tx", { "msg.raw": base64(unsent) }, 404, 5, /is not mined/],
        ["trace_tx", { "msg.raw": raw, block_number: "1" }, 404, 5, /is not in block 1/],
        ["trace_tx", {}, 400, 3, /empty request/],
        ["trace_block", {}, 400, 3, /block_number must be greater than 0/],
        [
          "trace_block",
          { block_number: "999999" },
          400,
          9,
          /must be less than or equal to current/,
        ],
        [
          "trace_block",
          { block_number: `${block}`, "trace_config.limit": "-1" },
          400,
          3,
          /output limit cannot be negative, got -1/,
        ],
        [
          "trace_block",
          { block_number: `${block}`, "trace_config.tracer": "{step: function() {}}" },
          400,
          3,
          /JavaScript tracers are not served/,
        ],
        ["trace_call", { args: "bm8=" }, 400, 3, /no JSON/],
      ];
    for (const [route, query, status, code, message] of refusals) {
      expect([route, query, await ask(route, query)]).toEqual([
        route,
        query,
        { status, code, message: expect.stringMatching(message) },
      ]);
    }
  });
});

it("calls and estimates with overrides that cannot be are the client's fault", async () => {
  const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64");
  const there = `0x${"aa".repeat(20)}`;
  const query = {
    args: encoded({ from: wallet.address, to: there, gas: "0x7530" }),
    overrides: encoded({ [there]: { movePrecompileToAddress: `0x${"ab".repeat(20)}` } }),
  };
  const message = expect.stringMatching(/^account 0xaa.* is not a precompile$/i);
  for (const route of ["eth_call", "estimate_gas"]) {
    expect(await ask(route, query)).toEqual({ status: 400, code: 3, message });
  }
});
