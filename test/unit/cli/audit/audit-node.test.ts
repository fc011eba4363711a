/** The node under audit, played by a server of the test: what it leaves unanswered, and what it makes up. */
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type AuditNode, createAuditNode } from "../../../../cli/audit/audit-node.js";
import { parseHash32 } from "../../../../chain/hex.js";
import { RpcFault, startFakeNode } from "../../../helpers/chains/fake-node.js";
import { createJsonRpcClient, type JsonRpcClient } from "../../../../rpc-client/json-rpc.js";

/** What the server says to a method; undefined: nothing, ever. */
let answers: (method: string) => unknown = () => undefined;
/** Methods that it was asked for, in order. */
let asked: string[] = [];
const server = http.createServer((request, response) => {
  const pieces: Buffer[] = [];
  request.on("data", (piece: Buffer) => pieces.push(piece));
  request.on("end", () => {
    const { id, method } = JSON.parse(Buffer.concat(pieces).toString("utf8"));
    asked.push(method);
    const result = answers(method);
    if (result !== undefined) response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  });
});
const { signal } = new AbortController();
let rpc: JsonRpcClient;
let node: AuditNode;

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => {
  rpc.close();
  server.closeAllConnections();
  server.close();
});

function ask(says: typeof answers, timeoutMs = 2_000): void {
  rpc?.close();
  const { port } = server.address() as AddressInfo;
  rpc = createJsonRpcClient({ url: `http://127.0.0.1:${port}`, timeoutMs });
  node = createAuditNode(rpc, signal);
  [answers, asked] = [says, []];
}

const hex = (n: number, bytes: number) => `0x${n.toString(16).padStart(2 * bytes, "0")}`;

describe("receipts of a block", () => {
  const receipt = (n: number) => ({
    transactionHash: hex(n, 32),
    type: "0x0",
    from: hex(1, 20),
    to: null,
    contractAddress: null,
    status: "0x1",
    gasUsed: "0x5208",
    cumulativeGasUsed: "0x5208",
    effectiveGasPrice: "0x1",
    logsBloom: "0x",
    logs: [],
  });

  it("come some at a time where the node has more than an answer holds", async () => {
    const tooLarge = () => {
      throw new RpcFault(-32_003, "response too large");
    };
    const hashes = Array.from({ length: 40 }, (_, n) => hex(n, 32));
    const fake = await startFakeNode({
      eth_getBlockReceipts: tooLarge,
      eth_getBlockByNumber: () => ({ transactions: hashes }),
      eth_getTransactionReceipt: ([hash]) => receipt(Number(hash)),
    });
    const client = createJsonRpcClient({ url: fake.url, timeoutMs: 5_000 });
    const receipts = await createAuditNode(client, signal).receipts(7);
    expect(receipts.map(({ transactionHash }) => transactionHash)).toEqual(hashes);
    fake.methods.set("eth_getTransactionReceipt", tooLarge);
    const refused = createAuditNode(client, signal).receipts(7);
    await expect(refused).rejects.toThrow("The node refuses eth_getTransactionReceipt: response");
    client.close();
    await fake.close();
  });
});

it("a node that is behind the block does not say that nothing is mined", async () => {
  const fake = await startFakeNode({
    eth_getBlockByNumber: ([height]) => (height === "0x7" ? { hash: hex(7, 32) } : null),
    eth_getTransactionReceipt: () => null,
  });
  const client = createJsonRpcClient({ url: fake.url, timeoutMs: 5_000 });
  const behind = createAuditNode(client, signal);
  const hashes = [parseHash32(hex(1, 32))];
  expect(await behind.minedIn(hashes, 7)).toEqual([undefined]);
  await expect(behind.minedIn(hashes, 8)).rejects.toMatchObject({ code: "BAD_ANSWER" });
  client.close();
  await fake.close();
});

describe("a question without an answer", () => {
  it("is asked again of a node that has answered before", async () => {
    let rawBlocks = 0;
    ask((method) => {
      if (method === "eth_blockNumber") return "0x7";
      return rawBlocks++ === 0 ? undefined : "0xc0";
    });
    expect(await node.headHeight()).toBe(7);
    expect(await node.rawBlock(7)).toEqual(Uint8Array.of(0xc0));
    expect(asked).toEqual(["eth_blockNumber", "debug_getRawBlock", "debug_getRawBlock"]);
  });

  it("is not asked again where nobody has ever answered: the address may be wrong", async () => {
    ask(() => undefined);
    await expect(node.headHeight()).rejects.toMatchObject({ code: "NODE_TIMEOUT" });
    expect(asked).toEqual(["eth_blockNumber"]);
  });

  it("is let go where it was about traces: they only save time", async () => {
    ask((method) => (method === "eth_blockNumber" ? "0x7" : undefined));
    await node.headHeight();
    expect(await node.touched(7)).toEqual([]);
    expect(asked).toEqual(["eth_blockNumber", "debug_traceBlockByNumber"]);
  });
});

describe("traces that name more than any block reads", () => {
  const countOf = async () => {
    const touched = await node.touched(7);
    return touched.length + touched.reduce((sum, { slots }) => sum + slots.length, 0);
  };
  const numbers = (count: number) => [...Array(count).keys()];
  const trace = (accounts: number, slots: number, from = 0) => {
    const storage = Object.fromEntries(numbers(slots).map((slot) => [hex(slot, 32), "0x"]));
    const names = numbers(accounts).map((account) => hex(from + account, 20));
    return { result: Object.fromEntries(names.map((name) => [name, { storage }])) };
  };

  it("are cut off, of accounts and of slots", async () => {
    const accounts = [trace(60_000, 0), trace(60_000, 0, 60_000)];
    ask(() => accounts, 60_000);
    expect(await countOf()).toBe(100_000);
    const slots = [trace(1, 60_000), trace(1, 60_000, 1)];
    ask(() => slots, 60_000);
    expect(await countOf()).toBe(100_000);
  });

  it("count what comes again once", async () => {
    const same = Array.from({ length: 30 }, () => trace(2_000, 2));
    ask(() => same, 60_000);
    expect(await countOf()).toBe(6_000);
  });
});
