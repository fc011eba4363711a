/** Reads of many accounts in one request. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { createEvmClient, type EvmClient } from "../../../rpc-client/evm-client.js";
import { createJsonRpcClient, type JsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { type FakeNode, RpcFault, startFakeNode } from "../../helpers/chains/fake-node.js";

const one = parseAddress(`0x${"01".repeat(20)}`);
const two = parseAddress(`0x${"02".repeat(20)}`);
const options = { signal: new AbortController().signal };

let node: FakeNode;
let rpc: JsonRpcClient;
let client: EvmClient;

beforeAll(async () => {
  node = await startFakeNode({
    eth_getBalance: ([address, at]) => (address === one ? "0x7" : String(at)),
    eth_getTransactionCount: () => "0x3",
    eth_getBlockByNumber: () => ({}),
    causeway_getAccountHeights: ([address]) =>
      address === one ? { heights: [2, 4], next: 5 } : { heights: [], next: null },
  });
  rpc = createJsonRpcClient({ url: node.url });
  client = createEvmClient(rpc);
});

beforeEach(() => node.reset());

afterAll(async () => {
  rpc.close();
  await node.close();
});

describe("the states of many accounts", () => {
  it("come in the order of the queries, each at its height", async () => {
    const queries = [
      { address: two, at: 16 },
      { address: one, at: 1 },
    ];
    expect(await client.accountStates(queries, options)).toEqual([
      { ok: true, balanceAtoken: 16n, nonce: 3n },
      { ok: true, balanceAtoken: 7n, nonce: 3n },
    ]);
    expect(await client.accountStates([], options)).toEqual([]);
  });

  it("leave those alone that the node refuses, and never take a malformed answer", async () => {
    node.methods.set("eth_getTransactionCount", ([address]) => {
      if (address === one) throw new RpcFault(4444, "pruned");
      return "0x3";
    });
    const queries = [one, two].map((address) => ({ address, at: 1 }));
    const [refused, read] = await client.accountStates(queries, options);
    expect(refused).toMatchObject({ ok: false, error: { rpc: { rpcCode: 4444 } } });
    expect(read).toMatchObject({ ok: true, balanceAtoken: 1n });
    node.methods.set("eth_getBalance", () => "seven");
    await expect(client.accountStates(queries.slice(1), options)).rejects.toMatchObject({
      code: "BAD_ANSWER",
    });
  });
});

describe("the heights of many accounts", () => {
  it("come in the order of the accounts with where to go on", async () => {
    const range = { from: 2, to: 9 };
    expect(await client.manyAccountHeights([two, one], range, options)).toEqual([
      { heights: [], next: undefined },
      { heights: [2, 4], next: 5 },
    ]);
  });

  it("come from a node that has the last block, in every exchange", async () => {
    const range = { from: 2, to: 9 };
    const many = Array.from({ length: 500 }, () => two);
    expect(await client.manyAccountHeights(many, range, options)).toHaveLength(500);
    let asked = 0;
    node.methods.set("eth_getBlockByNumber", () => {
      asked += 1;
      return asked === 1 ? {} : null;
    });
    await expect(client.manyAccountHeights(many, range, options)).rejects.toMatchObject({
      code: "BAD_ANSWER",
    });
    expect(asked).toBe(2);
  });

  it("are refused outside of the range", async () => {
    const reading = client.manyAccountHeights([one], { from: 3, to: 9 }, options);
    await expect(reading).rejects.toMatchObject({ code: "BAD_ANSWER" });
  });
});
