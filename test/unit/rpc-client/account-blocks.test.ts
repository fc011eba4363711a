/** Blocks that come with the accounts that they name: from the real sidecar, and from servers that err. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import {
  createDataApiClient,
  type DataApiClient,
} from "../../../rpc-client/data-api/data-api-client.js";
import type { DataBlock } from "../../../rpc-client/data-api/data-block.js";
import { ALICE, BOB, hashOf, startFakeChain } from "../../helpers/chains/journal-chain.js";
import type { FakeNode } from "../../helpers/chains/fake-node.js";
import { NETWORK, type Online, onlineServer } from "../sidecar/servers.js";

const { signal } = new AbortController();
const everybody = (block: DataBlock) => block.transactions(() => true, { signal });

describe("the sidecar's accounts of blocks", () => {
  let node: FakeNode;
  let online: Online;
  let client: DataApiClient;

  beforeAll(async () => {
    node = await startFakeChain();
    online = onlineServer(node.url);
    await online.server.start();
    const url = `http://127.0.0.1:${online.server.port}`;
    client = createDataApiClient({ url, network: NETWORK });
  });
  afterAll(async () => {
    client.close();
    await online.server.stop();
    await online.rpc.close();
    await node.close();
  });

  it("make the same blocks as /block, transaction by transaction", async () => {
    const brief = await client.accountBlocks({ from: 0, to: 2 }, { signal });
    expect(brief.map(({ height }) => height)).toEqual([0, 1, 2]);
    let named = 0;
    for (const block of brief) {
      const whole = await client.block(block.height, { signal });
      if (whole === undefined) throw new Error("no block");
      const { height, hash, parentHash, timestampMs, transactionCount } = whole;
      expect(block).toMatchObject({ height, hash, parentHash, timestampMs, transactionCount });
      expect(await everybody(block)).toEqual(await everybody(whole));
      expect(block.addresses()).toEqual(whole.addresses());
      for (const address of whole.addresses()) {
        const isIt = (one: Address) => one === address;
        const own = await whole.transactions(isIt, { signal });
        expect(await block.transactions(isIt, { signal })).toEqual(own);
        named += own.length;
      }
      expect(named).toBeGreaterThan(0);
      const isNobody = (one: Address) => one === `0x${"99".repeat(20)}`;
      expect(await block.transactions(isNobody, { signal })).toEqual([]);
    }
  });

  it("asks once for all that is wanted at a time", async () => {
    const asked: string[] = [];
    const [from, to] = [0, 2];
    const counted = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const body = Buffer.concat(chunks).toString("utf8");
        asked.push(String(JSON.parse(body).method));
        const url = `http://127.0.0.1:${online.server.port}/call`;
        const headers = { "content-type": "application/json" };
        const pass = async () => {
          const reply = await fetch(url, { method: "POST", headers, body });
          response.end(Buffer.from(await reply.arrayBuffer()));
        };
        void pass();
      });
    });
    await new Promise<void>((resolve) => counted.listen(0, "127.0.0.1", resolve));
    const { port } = counted.address() as AddressInfo;
    const through = createDataApiClient({ url: `http://127.0.0.1:${port}`, network: NETWORK });
    const blocks = await through.accountBlocks({ from, to }, { signal });
    const read = await Promise.all(blocks.map(everybody));
    expect(read.flat().length).toBeGreaterThan(3);
    expect(asked).toEqual(["block_accounts", "block_transactions"]);
    through.close();
    counted.close();
    counted.closeAllConnections();
  });

  it("end at the tip, and are missing above it", async () => {
    const blocks = await client.accountBlocks({ from: 1, to: 9 }, { signal });
    expect(blocks.map(({ height }) => height)).toEqual([1, 2]);
    const above = client.accountBlocks({ from: 3, to: 9 }, { signal });
    const thrown = await above.catch((error) => error);
    expect(thrown).toMatchObject({ code: "DATA_API_ERROR", details: { rosettaCode: 202 } });
  });
});

const bytes = (...addresses: string[]) =>
  Buffer.from(addresses.map((address) => address.slice(2)).join(""), "hex").toString("base64");

const numbers = (...values: number[]) => {
  const buffer = Buffer.alloc(values.length * 4);
  values.forEach((value, index) => buffer.writeUInt32BE(value, index * 4));
  return buffer.toString("base64");
};

/** Two transactions: ALICE to BOB, and BOB alone. */
const record = (fields: Record<string, unknown> = {}) => ({
  block_identifier: { index: 1, hash: hashOf("b") },
  parent_block_identifier: { index: 0, hash: hashOf("a") },
  timestamp: 1,
  accounts: bytes(ALICE, BOB),
  transactions: numbers(2, 0, 1, 1, 1),
  ...fields,
});

const paying = (name: string, ...addresses: string[]) => ({
  transaction_identifier: { hash: hashOf(name) },
  operations: addresses.map((address, index) => ({
    operation_identifier: { index },
    type: "CALL",
    status: "SUCCESS",
    account: { address },
    amount: { value: "5", currency: { symbol: "TOKEN", decimals: 18 } },
  })),
});

describe("an answer about accounts", () => {
  let server: Server;
  let client: DataApiClient;
  let blocks: unknown[] = [record()];
  /** Answers to `block_transactions`, one after the other. */
  let transactions: unknown[][] = [];
  const asked: unknown[] = [];

  beforeAll(async () => {
    server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const { method, parameters } = JSON.parse(Buffer.concat(chunks).toString("utf8"));
        asked.push(parameters);
        const result =
          method === "block_accounts" ? { blocks } : { transactions: transactions.shift() };
        response.end(JSON.stringify({ result, idempotent: true }));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    client = createDataApiClient({ url: `http://127.0.0.1:${port}`, network: NETWORK });
  });
  afterEach(() => {
    blocks = [record()];
    asked.length = 0;
  });
  afterAll(() => {
    client.close();
    server.close();
    server.closeAllConnections();
  });

  const read = () => client.accountBlocks({ from: 1, to: 2 }, { signal });
  const one = async () => {
    const [block] = await read();
    if (block === undefined) throw new Error("no block");
    return block;
  };

  it("is asked again for the transactions that did not fit into it", async () => {
    transactions = [[paying("first", ALICE, BOB)], [paying("second", BOB)]];
    const found = await everybody(await one());
    expect(found.map(({ hash, index }) => [hash, index])).toEqual([
      [hashOf("first"), 0],
      [hashOf("second"), 1],
    ]);
    const block_identifier = { index: 1, hash: hashOf("b") };
    expect(asked.slice(1)).toEqual([
      { blocks: [{ block_identifier, positions: [0, 1] }] },
      { blocks: [{ block_identifier, positions: [1] }] },
    ]);
  });

  it.each<[string, unknown[][]]>([
    ["none", [[]]],
    ["more than were asked for", [[1, 2, 3].map(() => paying("first", ALICE, BOB))]],
    ["of another account", [[paying("first", ALICE, BOB), paying("second", ALICE)]]],
    ["without one of its accounts", [[paying("first", ALICE), paying("second", BOB)]]],
    ["without operations", [[{ transaction_identifier: { hash: hashOf("first") } }]]],
  ])("is refused with transactions that do not fit the block: %s", async (_name, answers) => {
    transactions = answers;
    await expect(everybody(await one())).rejects.toMatchObject({ code: "BAD_ANSWER" });
  });

  it.each<[string, unknown[]]>([
    ["no block", []],
    ["another block", [record({ block_identifier: { index: 2, hash: hashOf("b") } })]],
    ["more blocks", [record(), record(), record()]],
    ["a parent two below", [record({ parent_block_identifier: { index: 3, hash: hashOf("a") } })]],
    ["accounts that break off", [record({ accounts: bytes(ALICE, "0x1234") })]],
    ["text that is no base64", [record({ accounts: `${bytes(ALICE, BOB)}*` })]],
    ["numbers that break off", [record({ transactions: numbers(2, 0) })]],
    ["half a number", [record({ transactions: Buffer.alloc(5).toString("base64") })]],
    ["an account that is not there", [record({ transactions: numbers(1, 2) })]],
    ["no numbers", [record({ transactions: undefined })]],
  ])("is refused: %s", async (_name, answer) => {
    blocks = answer;
    await expect(read()).rejects.toMatchObject({ code: "BAD_ANSWER" });
  });

  it("finds nobody in a block that names nobody", async () => {
    blocks = [record({ accounts: "", transactions: numbers(0, 0) })];
    const block = await one();
    expect([block.transactionCount, await everybody(block), asked.length]).toEqual([2, [], 1]);
  });
});
