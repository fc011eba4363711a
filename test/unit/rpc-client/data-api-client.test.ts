import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  createDataApiClient,
  type DataApiClient,
} from "../../../rpc-client/data-api/data-api-client.js";
import { NodeFault } from "../../../rpc-client/errors.js";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { ALICE, BOB, hashOf, startFakeChain, TOKEN } from "../../helpers/chains/journal-chain.js";
import type { FakeNode } from "../../helpers/chains/fake-node.js";
import { NETWORK, type Online, onlineServer } from "../sidecar/servers.js";

const signal = new AbortController().signal;

let node: FakeNode;
let online: Online;
let client: DataApiClient;

beforeAll(async () => {
  node = await startFakeChain();
  online = onlineServer(node.url);
  await online.server.start();
  client = createDataApiClient({ url: `http://127.0.0.1:${online.server.port}`, network: NETWORK });
});

afterAll(async () => {
  client.close();
  await online.server.stop();
  await online.rpc.close();
  await node.close();
});

describe("the Data API's client against the real sidecar", () => {
  it("reads a block with signed amounts and relations", async () => {
    const block = await client.block(1, { signal });
    expect(block).toMatchObject({
      height: 1,
      hash: hashOf("block 1"),
      parentHash: hashOf("block 0"),
      timestampMs: 1_790_000_002_123,
    });
    const all = (await block?.transactions(() => true, { signal })) ?? [];
    expect(all.map(({ hash, index }) => [hash, index])).toEqual([
      [hashOf("plain"), 0],
      [hashOf("memo"), 1],
      [hashOf("block 1"), 2],
    ]);
    const count = all.reduce((sum, { operations }) => sum + operations.length, 0);
    expect(block).toMatchObject({ transactionCount: 3, accountCount: count });
    expect(all[0]?.operations.slice(2)).toEqual([
      {
        index: 2,
        type: "CALL",
        status: "SUCCESS",
        address: ALICE,
        amountAtoken: -TOKEN,
        isNative: true,
        relatedIndexes: [],
      },
      {
        index: 3,
        type: "CALL",
        status: "SUCCESS",
        address: BOB,
        amountAtoken: TOKEN,
        isNative: true,
        relatedIndexes: [2],
      },
    ]);
  });

  it("reads genesis as its own parent, and nothing above the tip", async () => {
    expect(await client.block(0, { signal })).toMatchObject({ parentHash: hashOf("block 0") });
    expect(await client.block(3, { signal })).toBeUndefined();
  });

  it("reads the status", async () => {
    expect(await client.networkStatus({ signal })).toEqual({
      height: 2,
      hash: hashOf("block 2"),
      timestampMs: 1_790_000_004_123,
      genesisHash: hashOf("block 0"),
      synced: true,
    });
  });

  it("reports a listed error with its number", async () => {
    const wrong = createDataApiClient({
      url: `http://127.0.0.1:${online.server.port}`,
      network: { blockchain: "token", network: "mainnet" },
    });
    const thrown = await wrong.block(1, { signal }).catch((error) => error);
    expect(thrown).toMatchObject({ code: "DATA_API_ERROR", retriable: false });
    expect(thrown.details).toMatchObject({ rosettaCode: 2 });
    wrong.close();
  });
});

it("reads a Data API below a path, by a key in its query", async () => {
  const asked: (string | undefined)[] = [];
  const gate = createServer((request, response) => {
    asked.push(request.url);
    response.statusCode = request.url?.startsWith("/rosetta/") ? 200 : 404;
    response.end(JSON.stringify({ block: null }));
  });
  await new Promise<void>((resolve) => gate.listen(0, "127.0.0.1", resolve));
  const { port } = gate.address() as AddressInfo;
  for (const base of ["/rosetta", "/rosetta/", "/rosetta?key=a%20b"]) {
    const below = createDataApiClient({ url: `http://127.0.0.1:${port}${base}`, network: NETWORK });
    expect(await below.block(1, { signal })).toBeUndefined();
    below.close();
  }
  expect(asked).toEqual(["/rosetta/block", "/rosetta/block", "/rosetta/block?key=a%20b"]);
  gate.close();
  gate.closeAllConnections();
});

const operation = (fields: Record<string, unknown> = {}) => ({
  operation_identifier: { index: 0 },
  type: "CALL",
  status: "SUCCESS",
  account: { address: BOB },
  amount: { value: "5", currency: { symbol: "TOKEN", decimals: 18 } },
  ...fields,
});

const blockWith = (fields: Record<string, unknown>, operations: unknown[] = []) => ({
  block: {
    block_identifier: { index: 1, hash: hashOf("b") },
    parent_block_identifier: { index: 0, hash: hashOf("a") },
    timestamp: 1,
    transactions: [{ transaction_identifier: { hash: hashOf("t") }, operations }],
    ...fields,
  },
});

describe("an answer that breaks the protocol", () => {
  let server: Server;
  let reply: unknown;
  let odd: DataApiClient;

  beforeAll(async () => {
    server = createServer((_request, response) => response.end(JSON.stringify(reply)));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    odd = createDataApiClient({ url: `http://127.0.0.1:${port}`, network: NETWORK });
  });

  afterAll(() => {
    odd.close();
    server.close();
    server.closeAllConnections();
  });

  const everything = async () =>
    (await (await odd.block(1, { signal }))?.transactions(() => true, { signal })) ?? [];

  it("is accepted when it keeps it", async () => {
    reply = blockWith({}, [operation()]);
    expect((await everything())[0]?.operations).toHaveLength(1);
  });

  it("is no block where there is none", async () => {
    reply = { block: null, other_transactions: [] };
    expect(await odd.block(1, { signal })).toBeUndefined();
  });

  const currencyOf = (fields: Record<string, unknown>) => ({
    amount: { value: "5", currency: { symbol: "TOKEN", decimals: 18, ...fields } },
  });

  it.each<[string, boolean, Record<string, unknown>]>([
    ["native coins", true, { type: "CALL" }],
    ["a native operation of a type to come", true, { type: "REWARD" }],
    ["a token that calls itself TOKEN", false, currencyOf({ metadata: { contractAddress: BOB } })],
    ["a currency with empty metadata", false, currencyOf({ metadata: {} })],
    ["other decimals", false, currencyOf({ decimals: 6 })],
    ["another symbol", false, currencyOf({ symbol: "T0KEN" })],
    ["a sub-account", false, { account: { address: BOB, sub_account: { address: "delegated" } } }],
  ])("tells what is native: %s", async (_name, isNative, fields) => {
    reply = blockWith({}, [operation(fields)]);
    expect((await everything())[0]?.operations[0]).toMatchObject({ isNative, address: BOB });
  });

  it.each<[string, unknown]>([
    ["another height", blockWith({ block_identifier: { index: 2, hash: hashOf("b") } })],
    ["a parent two below", blockWith({ block_identifier: { index: 3, hash: hashOf("b") } })],
    ["a gap in the indexes", blockWith({}, [operation({ operation_identifier: { index: 1 } })])],
    [
      "an amount as a number",
      blockWith({}, [operation({ amount: { value: 5, currency: { symbol: "TOKEN" } } })]),
    ],
    ["a type that is no name", blockWith({}, [operation({ type: "" })])],
    ["no currency", blockWith({}, [operation({ amount: { value: "5" } })])],
    [
      "transactions that are named and not shown",
      { ...blockWith({}, [operation()]), other_transactions: [{ hash: hashOf("o") }] },
    ],
    ["no list of transactions", blockWith({ transactions: undefined })],
    ["a transaction that is no object", blockWith({ transactions: ["cut out"] })],
    ["an unknown status", blockWith({}, [operation({ status: "MAYBE" })])],
    ["an account without address", blockWith({}, [operation({ account: { address: "x" } })])],
  ])("is refused: %s", async (_name, answer) => {
    reply = answer;
    await expect(everything()).rejects.toBeInstanceOf(NodeFault);
  });
});
