/** Balances of tokens: what a contract does is a result, what the node does is an error. */
import { describe, expect, it } from "@jest/globals";
import { Interface } from "ethers";
import { parseAddress } from "../../../chain/address.js";
import { NodeFault, RpcError } from "../../../rpc-client/errors.js";
import type { JsonRpcClient, RpcCall, RpcOutcome } from "../../../rpc-client/json-rpc.js";
import { tokenCalls } from "../../../rpc-client/tokens/token-balances.js";

const signal = new AbortController().signal;
const TOKEN = parseAddress(`0x${"70".repeat(20)}`);
const ACCOUNT = parseAddress(`0x${"a1".repeat(20)}`);
const word = (value: bigint) => `0x${value.toString(16).padStart(64, "0")}`;
const failed = (text: string): RpcOutcome => ({
  ok: false,
  error: new RpcError(text, { rpcCode: -32000, method: "eth_call" }),
});
const refused = (rpcCode: number, data?: unknown): RpcOutcome => ({
  ok: false,
  error: new RpcError("no", {
    rpcCode,
    method: "eth_call",
    ...(data === undefined ? {} : { data }),
  }),
});

/** A client over scripted outcomes; each batch that it sent. */
function clientWith(answer: (call: RpcCall, batch: number) => RpcOutcome) {
  const batches: (readonly RpcCall[])[] = [];
  const rpc: JsonRpcClient = {
    request: () => Promise.reject(new Error("not used")),
    batch(calls) {
      batches.push(calls);
      return Promise.resolve(calls.map((call) => answer(call, batches.length)));
    },
    close: () => undefined,
  };
  return { client: tokenCalls(rpc), batches };
}

const query = (at: number | "latest" = 7) => ({ token: TOKEN, account: ACCOUNT, at });

describe("token balances", () => {
  it("ask balanceOf as ethers encodes it, with fixed gas, at the height", async () => {
    const { client, batches } = clientWith(() => ({ ok: true, result: word(2n ** 256n - 1n) }));
    expect(await client.tokenBalances([query(), query("latest")], { signal })).toEqual([
      2n ** 256n - 1n,
      2n ** 256n - 1n,
    ]);
    const erc20 = new Interface(["function balanceOf(address) view returns (uint256)"]);
    const message = {
      to: TOKEN,
      gas: "0x186a0",
      data: erc20.encodeFunctionData("balanceOf", [ACCOUNT]),
    };
    expect(batches).toEqual([
      [
        { method: "eth_call", params: [message, "0x7"] },
        { method: "eth_call", params: [message, "latest"] },
      ],
    ]);
  });

  it("give undefined where the contract fails, is not there, or answers another size", async () => {
    const outcomes: RpcOutcome[] = [
      refused(3, "0x"),
      failed("out of gas"),
      failed("invalid opcode: opcode 0x2f not defined"),
      { ok: true, result: "0x" },
      { ok: true, result: `0x${"00".repeat(31)}` },
      { ok: true, result: `0x${"00".repeat(33)}` },
      { ok: true, result: word(0n) },
    ];
    let next = 0;
    const { client } = clientWith(() => outcomes[next++] ?? refused(-1));
    const queries = outcomes.map(() => query());
    expect(await client.tokenBalances(queries, { signal })).toEqual([
      ...Array.from({ length: 6 }, () => undefined),
      0n,
    ]);
  });

  it.each([
    ["header not found", refused(-32000)],
    ["a halted pool", refused(-32000, { reason: "NODE_HALTED" })],
    ["a time-out", refused(-32002)],
    ["a full queue", refused(-32005)],
    ["pruned history", refused(4444)],
    ["a number", { ok: true, result: 5 } as const],
  ])("throw when the node cannot answer: %s", async (_name, outcome) => {
    const { client } = clientWith(() => outcome);
    await expect(client.tokenBalances([query()], { signal })).rejects.toThrow();
  });

  it("ask few at a time, because a contract may make each of them dear", async () => {
    const { client, batches } = clientWith(({ params: [, at] }) => ({
      ok: true,
      result: word(BigInt(String(at))),
    }));
    const queries = Array.from({ length: 60 }, (_, at) => query(at));
    const balances = await client.tokenBalances(queries, { signal });
    expect(balances).toEqual(queries.map(({ at }) => BigInt(at)));
    expect(batches.map(({ length }) => length)).toEqual([25, 25, 10]);
  });

  it("ask again, a few at a time, what did not fit into one reply", async () => {
    const { client, batches } = clientWith(({ params: [, at] }, batch) =>
      batch === 1 && Number(at) >= 5
        ? refused(-32003)
        : { ok: true, result: word(BigInt(String(at))) },
    );
    const queries = Array.from({ length: 25 }, (_, at) => query(at));
    const balances = await client.tokenBalances(queries, { signal });
    expect(balances).toEqual(queries.map(({ at }) => BigInt(at)));
    expect(batches.map(({ length }) => length)).toEqual([25, 16, 4]);
    const stubborn = clientWith(() => refused(-32003));
    await expect(stubborn.client.tokenBalances([query()], { signal })).rejects.toThrow();
  });
});

describe("many balances of one token in one state", () => {
  const queries = Array.from({ length: 30 }, (_, index) => ({
    token: TOKEN,
    account: parseAddress(`0x${(index + 1).toString(16).padStart(40, "0")}`),
    at: 7,
  }));
  const units = queries.map((_, index) => BigInt(index + 1));

  /** A client of a node that answers single questions, and to calls for many what is told. */
  function clientOf(answer: () => unknown) {
    const asked: { together: number; alone: number } = { together: 0, alone: 0 };
    const rpc: JsonRpcClient = {
      async request() {
        asked.together += 1;
        const given = answer();
        if (given instanceof Error) throw given;
        return given;
      },
      async batch(calls) {
        asked.alone += calls.length;
        return calls.map(({ params: [message] }) => {
          const { data } = message as { readonly data: string };
          return { ok: true, result: word(BigInt(`0x${data.slice(-40)}`)) };
        });
      },
      close: () => undefined,
    };
    return { client: tokenCalls(rpc), asked };
  }
  const refusal = (rpcCode: number, text: string) =>
    new RpcError(text, { rpcCode, method: "eth_call" });

  it("are asked one by one of a node that knows no overrides, which is not tried again", async () => {
    const node = clientOf(() => refusal(-32602, "too many arguments, want at most 2"));
    expect(await node.client.tokenBalances(queries, { signal })).toEqual(units);
    expect(await node.client.tokenBalances(queries, { signal })).toEqual(units);
    expect(node.asked).toEqual({ together: 1, alone: 60 });
  });

  it.each([
    ["passes over overrides", "0x"],
    ["answers something else", word(30n)],
    ["stops it", refusal(-32000, "out of compute")],
  ])("are asked one by one where the node %s, and together the next time", async (_name, given) => {
    const node = clientOf(() => given);
    expect(await node.client.tokenBalances(queries, { signal })).toEqual(units);
    expect(await node.client.tokenBalances(queries, { signal })).toEqual(units);
    expect(node.asked).toEqual({ together: 2, alone: 60 });
  });

  it("are asked alone where the call left them out", async () => {
    const answered = (index: number) => (index === 3 ? [0n, 0n] : [1n, BigInt(index + 1)]);
    const node = clientOf(
      () =>
        `0x${queries.flatMap((_, index) => answered(index).map((value) => word(value).slice(2))).join("")}`,
    );
    expect(await node.client.tokenBalances(queries, { signal })).toEqual(units);
    expect(node.asked).toEqual({ together: 1, alone: 1 });
  });

  it("fail where the node does not answer at all", async () => {
    const node = clientOf(
      () => new NodeFault("NODE_TIMEOUT", "no answer in time", { retriable: true }),
    );
    await expect(node.client.tokenBalances(queries, { signal })).rejects.toMatchObject({
      code: "NODE_TIMEOUT",
    });
  });
});
