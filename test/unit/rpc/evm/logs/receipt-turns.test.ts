/** A receipt of tens of thousands of logs is made in slices, and is the same as one that is made at once. */
import { isDeepStrictEqual } from "node:util";
import { beforeAll, describe, expect, it, jest } from "@jest/globals";
import { parseAddress } from "../../../../../chain/address.js";
import { BlockJson } from "../../../../../node/rpc/evm/json/block-json.js";
import type { EvmApi } from "../../../../../node/rpc/evm/api.js";
import type { Subscriber } from "../../../../../node/rpc/evm/method.js";
import { RequestContext } from "../../../../../node/rpc/evm/request-context.js";
import { Turns } from "../../../../../runtime/turns/turns.js";
import { turnsOf } from "../../../../helpers/effort/turns.js";
import { ALICE, BOB, createTestNode, signLegacy, type TestTransaction } from "../fixture.js";

const CLIENT = "192.0.2.1";
const LOGS = 20_000;
const FEW = 600;
const node = createTestNode();
const transactions: TestTransaction[] = [];
const hashes: string[] = [];

interface Receipt {
  readonly transactionHash: string;
  readonly logsBloom: string;
  readonly logs: readonly { readonly logIndex: string; readonly transactionHash: string }[];
}

beforeAll(async () => {
  const log = { address: parseAddress(BOB.address), topics: [], data: new Uint8Array(0) };
  const many = [FEW, LOGS, 0, 1].map((count) => Array.from({ length: count }, () => log));
  const raws = [200_000n, 30_000_000n, 21_000n, 1_000_001n].map((gasLimit, nonce) => {
    const fields = { nonce, gasLimit, to: BOB.address };
    return signLegacy(ALICE, fields);
  });
  const signed = await Promise.all(raws);
  transactions.push(...signed.map((raw, index) => ({ raw, logs: many[index] ?? [] })));
  const { block } = node.chain.add(transactions);
  for (const { tx } of block.transactions) hashes.push(tx.hash);
});

describe("others get their turns", () => {
  it.each([
    ["eth_getTransactionReceipt", () => hashes[1]],
    ["eth_getTransactionLogs", () => hashes[1]],
    ["eth_getBlockReceipts", () => "0x1"],
  ])("while %s is answered", async (method, param) => {
    expect(await turnsOf(() => node.call(method, param()))).toBeGreaterThan(10);
  });

  it.each(["the past", "a new block"])("while a subscription is sent %s", async (what) => {
    const own = createTestNode();
    const isPast = what === "the past";
    if (isPast) own.chain.add(transactions);
    let told: unknown;
    const turns = await turnsOf(async () => {
      const options = { transactionHashes: [hashes[1]], fromBlock: "0x1" };
      const first = firstTold(own.api, ["transactionReceipts", options]);
      if (!isPast) own.chain.add(transactions);
      told = await first;
    });
    expectSame(told, [await own.call("eth_getTransactionReceipt", hashes[1])]);
    expect(turns).toBeGreaterThan(10);
  });
});

it.each([
  ["some receipts", "transactionReceipts", () => ({ transactionHashes: [hashes[1]] })],
  ["logs", "logs", () => ({})],
])("%s of the past that are large have turns by client", async (_, kind, wanted) => {
  const enter = jest.spyOn(Turns.prototype, "enter");
  const own = createTestNode();
  const log = { address: parseAddress(BOB.address), topics: [], data: new Uint8Array(10_000) };
  const logs = Array.from({ length: 100 }, () => log);
  own.chain.add(transactions.map((transaction) => ({ ...transaction, logs })));
  await firstTold(own.api, [kind, { ...wanted(), fromBlock: "0x1" }]);
  expect(enter.mock.calls.map(([, client]) => client)).toEqual([CLIENT]);
  enter.mockRestore();
});

it("all receipts of a block have turns by client in the past, and of nobody's line as it comes", async () => {
  const receipts = jest.spyOn(BlockJson.prototype, "receipts");
  const own = createTestNode();
  own.chain.add(transactions);
  await firstTold(own.api, ["transactionReceipts", { fromBlock: "0x1" }]);
  const first = firstTold(own.api, ["transactionReceipts"]);
  own.chain.add(transactions);
  await first;
  expect(receipts.mock.calls.map(([height, { client }]) => [height, client])).toEqual([
    [1, CLIENT],
    [2, ""],
    [2, ""],
  ]);
  receipts.mockRestore();
});

/** Jest's own comparison of so many logs takes seconds. */
function expectSame(told: unknown, expected: unknown): void {
  expect(isDeepStrictEqual(told, expected)).toBe(true);
}

/** The result of what a new subscription is told first. */
async function firstTold(api: EvmApi, params: readonly unknown[]): Promise<unknown> {
  const told = new Promise<string>((resolve, reject) => {
    const subscriber: Subscriber = {
      isBehind: false,
      notify: resolve,
      tooSlow: () => reject(new Error("too slow")),
      failed: (why) => reject(new Error(why)),
      drained: async () => undefined,
      onClose: () => undefined,
    };
    const context = new RequestContext(5_000, subscriber, { remoteAddress: CLIENT });
    const body = { jsonrpc: "2.0", id: 1, method: "eth_subscribe", params };
    void api.dispatcher.handle(Buffer.from(JSON.stringify(body)), context);
    context.finish();
  });
  return (JSON.parse(await told) as { params: { result: unknown } }).params.result;
}

it("the answers are the same, whichever way they are made", async () => {
  const all = await node.call<Receipt[]>("eth_getBlockReceipts", "0x1");
  expect(all.map(({ logs }) => logs.length)).toEqual([FEW, LOGS, 0, 1]);
  const indices = all.flatMap(({ logs }) => logs.map(({ logIndex }) => Number(logIndex)));
  expect(indices).toEqual(Array.from({ length: FEW + LOGS + 1 }, (_, index) => index));
  for (const [index, hash] of hashes.entries()) {
    const receipt = await node.call<Receipt>("eth_getTransactionReceipt", hash);
    expectSame([index, receipt], [index, all[index]]);
    expectSame(await node.call("eth_getTransactionLogs", hash), receipt.logs);
  }
});
