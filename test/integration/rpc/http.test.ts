/** 8545, 26657 and 26660 on live sockets: HTTP rules, and unchanged clients. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { request } from "node:http";
import { JsonRpcProvider, Transaction } from "ethers";
import {
  createPublicClient,
  createWalletClient,
  defineChain,
  getAddress,
  http,
  parseEther,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { parseAddress } from "../../../chain/address.js";
import { EMPTY_CODE_HASH, EMPTY_TRIE_ROOT, parseHash32 } from "../../../chain/hex.js";
import { NETWORKS } from "../../../chain/networks.js";
import { decodeTransaction } from "../../../chain/transaction.js";
import { createClientMemory } from "../../../node/rpc/client-memory.js";
import { startCometServer } from "../../../node/rpc/comet/server.js";
import { startEvmHttpServer } from "../../../node/rpc/evm/http-server.js";
import type { RpcServer } from "../../../node/rpc/http-listener.js";
import { startMetricsServer } from "../../../node/rpc/metrics-server.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { connectTo } from "../../helpers/http/sending-client.js";
import { InProcessCalls, MemoryState } from "../../unit/execution/call-fixture.js";
import { ALICE, BOB, createTestNode, signLegacy } from "../../unit/rpc/evm/fixture.js";

const memory = createClientMemory(systemClock);
const LOOPBACK = { host: "127.0.0.1", port: 0 };
const log = createLogger({ component: "test", level: "silent" });
const node = createTestNode({ bodyBytes: 2_000, batchBodyBytes: 10_000 });
let server: RpcServer;
let url = "";

interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

function send(
  target: string,
  options: { method?: string; body?: string; headers?: Record<string, string> },
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const { method = "POST", headers = { "Content-Type": "application/json" }, body } = options;
    const sent = request(target, { method, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
      });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

const chainIdCall = JSON.stringify({ jsonrpc: "2.0", id: 0, method: "eth_chainId" });

beforeAll(async () => {
  const balance = {
    nonce: 0n,
    balanceAtoken: 10n ** 20n,
    codeHash: EMPTY_CODE_HASH,
    storageRoot: EMPTY_TRIE_ROOT,
  };
  node.chain.accounts.set(parseAddress(ALICE.address), balance);
  node.chain.add([{ raw: await signLegacy(ALICE, { nonce: 0, to: BOB.address, value: 1n }) }]);
  server = await startEvmHttpServer(node.api, {
    listen: LOOPBACK,
    allowedOrigins: ["https://wallet.example"],
    memory,
  });
  url = `http://127.0.0.1:${server.address.port}`;
});

afterAll(() => server.stop());

function preflight(origin: string, asked?: string): Promise<HttpAnswer> {
  const headers: Record<string, string> = { Origin: origin };
  if (asked !== undefined) headers["Access-Control-Request-Headers"] = asked;
  return send(url, { method: "OPTIONS", headers });
}

describe("HTTP", () => {
  it("answers calls with any JSON content type or none", async () => {
    const types = [
      "application/json",
      "application/json; charset=utf-8",
      "application/json-rpc",
      undefined,
    ];
    for (const type of types) {
      const headers: Record<string, string> = type === undefined ? {} : { "Content-Type": type };
      const answer = await send(url, { body: chainIdCall, headers });
      expect([type, answer.status, JSON.parse(answer.text)]).toEqual([
        type,
        200,
        { jsonrpc: "2.0", id: 0, result: "0x1b1c" },
      ]);
      expect(answer.headers["content-type"]).toBe("application/json");
    }
  });

  it.each(["eth_call", "eth_estimateGas"])(
    "says whose %s it is, alone and in a batch",
    async (method) => {
      const call = { jsonrpc: "2.0", id: 1, method, params: [{ to: BOB.address }] };
      for (const body of [call, [call]]) {
        node.calls.last = undefined;
        await send(url, { body: JSON.stringify(body) });
        expect(node.calls.last).toMatchObject({ options: { client: "127.0.0.1" } });
      }
    },
  );

  it("answers 200 to GET, 204 to notifications, 405, 413 and 415 where they belong", async () => {
    expect(await send(url, { method: "GET" })).toMatchObject({ status: 200, text: "ok\n" });
    const notification = JSON.stringify({ jsonrpc: "2.0", method: "eth_chainId" });
    expect(await send(url, { body: notification })).toMatchObject({ status: 204, text: "" });
    expect((await send(url, { method: "PUT", body: chainIdCall })).status).toBe(405);
    // What a page of another origin may send without asking, with any parameters.
    for (const type of [
      "application/x-www-form-urlencoded",
      "text/plain; charset=json",
      "multipart/form-data; boundary=application/json",
    ]) {
      const headers = { "Content-Type": type };
      expect([type, (await send(url, { body: chainIdCall, headers })).status]).toEqual([type, 415]);
    }
    // Of bytes a browser names no type; programs that name none send neither of these.
    const ofPages: readonly Record<string, string>[] = [
      { Origin: "https://evil.example" },
      { Origin: "null" },
      { "Sec-Fetch-Site": "cross-site" },
      { Origin: "https://evil.example", "Content-Type": "" },
    ];
    for (const headers of ofPages) {
      const { status } = await send(url, { body: chainIdCall, headers });
      expect([headers, status]).toEqual([headers, 415]);
    }
    // Node's fetch does, and is no page.
    const modeAlone = { "Sec-Fetch-Mode": "cors" };
    expect((await send(url, { body: chainIdCall, headers: modeAlone })).status).toBe(200);
    const named = { Origin: "https://evil.example", "Content-Type": "application/json" };
    expect((await send(url, { body: chainIdCall, headers: named })).status).toBe(200);
    const single = `${chainIdCall}${" ".repeat(3_000)}`;
    expect((await send(url, { body: single })).status).toBe(413);
    expect((await send(url, { body: ` [${chainIdCall}${" ".repeat(3_000)}]` })).status).toBe(200);
    expect((await send(url, { body: `[${" ".repeat(20_000)}]` })).status).toBe(413);
    const chunked = { "Content-Type": "application/json", "Transfer-Encoding": "chunked" };
    expect((await send(url, { body: `[${" ".repeat(20_000)}]`, headers: chunked })).status).toBe(
      413,
    );
  });

  it.each([
    ["413 by the length that is told", "application/json", "Content-Length: 10000000", "", 413],
    ["413 where none is told", "application/json", "Transfer-Encoding: chunked", "989680\r\n", 413],
    ["415", "text/plain", "Content-Length: 10000000", "", 415],
  ])(
    "lets a client that still sends read its refusal: %s",
    async (_, type, framing, open, code) => {
      const body = Buffer.alloc(10_000_000, " ");
      const client = connectTo(server.address.port);
      // As simple clients have it: Node closes behind the answer, whatever is on its way.
      const head = ["POST / HTTP/1.1", "Host: x", "Connection: close", `Content-Type: ${type}`];
      client.socket.write(`${[...head, framing].join("\r\n")}\r\n\r\n${open}`);
      client.socket.write(body.subarray(0, 100_000));
      expect(await client.answered(1)).toEqual([`HTTP/1.1 ${code}`]);
      client.socket.write(body.subarray(100_000));
      if (open !== "") client.socket.write("\r\n0\r\n\r\n");
      await client.closed;
      expect(client.faults).toEqual([]);
      expect(client.socket.bytesWritten).toBeGreaterThan(body.length);
    },
  );

  it("grants CORS to listed origins only", async () => {
    expect(await preflight("https://wallet.example")).toMatchObject({
      status: 204,
      headers: { "access-control-allow-origin": "https://wallet.example", vary: "Origin" },
    });
    expect(
      (await preflight("https://evil.example")).headers["access-control-allow-origin"],
    ).toBeUndefined();
  });

  it("lets allowed pages send the headers that their libraries name", async () => {
    const asked = "authorization,content-type,x-client-name,x-request-id";
    expect((await preflight("https://wallet.example", asked)).headers).toMatchObject({
      "access-control-allow-headers": asked,
      vary: "Origin, Access-Control-Request-Headers",
    });
    const usual = "Content-Type, Accept, Authorization";
    for (const odd of ["", "a b", "x: y", ",", `x-${"a".repeat(2_000)}`]) {
      const { headers } = await preflight("https://wallet.example", odd);
      expect([odd, headers["access-control-allow-headers"]]).toEqual([odd, usual]);
    }
    expect((await preflight("https://evil.example", asked)).headers).not.toHaveProperty(
      "access-control-allow-headers",
    );
  });

  it("names the port when it is taken", async () => {
    const taken = startEvmHttpServer(node.api, {
      listen: server.address,
      allowedOrigins: [],
      memory,
    });
    await expect(taken).rejects.toMatchObject({
      code: "PORT_TAKEN",
      message: expect.stringContaining(`127.0.0.1:${server.address.port} is taken`),
    });
  });

  it("splices cached blocks into single answers and batches unchanged", async () => {
    const block = {
      jsonrpc: "2.0",
      id: "x",
      method: "eth_getBlockByNumber",
      params: ["0x1", true],
    };
    const single = JSON.parse((await send(url, { body: JSON.stringify(block) })).text);
    const batch = JSON.parse((await send(url, { body: JSON.stringify([block, block]) })).text);
    expect(batch).toEqual([single, single]);
    expect(single.result.transactions).toHaveLength(1);
  });
});

describe("unchanged clients", () => {
  it("ethers reads, chooses a legacy transaction by itself and sends it", async () => {
    const provider = new JsonRpcProvider(url);
    node.pool.submitted.length = 0;
    expect((await provider.getNetwork()).chainId).toBe(6940n);
    expect(await provider.getBalance(ALICE.address)).toBe(10n ** 20n);
    const block = await provider.getBlock("latest", true);
    expect(block?.baseFeePerGas).toBeNull();
    expect(block?.prefetchedTransactions[0]?.value).toBe(1n);
    const receipt = await provider.getTransactionReceipt(block?.transactions[0] ?? "");
    expect(receipt?.status).toBe(1);
    const response = await ALICE.connect(provider).sendTransaction({ to: BOB.address, value: 5n });
    expect(response.type).toBe(0);
    const raw = node.pool.submitted[0]?.[0] ?? new Uint8Array(0);
    expect(Transaction.from(`0x${Buffer.from(raw).toString("hex")}`)).toMatchObject({
      type: 0,
      chainId: 6940n,
      gasPrice: 25_000_000n,
      gasLimit: 21_000n,
    });
    provider.destroy();
  });

  it("viem reads, has its transaction filled in, and sends legacy", async () => {
    const chain = defineChain({
      id: 6940,
      name: "test",
      nativeCurrency: { name: "TOKEN", symbol: "TOKEN", decimals: 18 },
      rpcUrls: { default: { http: [url] } },
    });
    node.pool.submitted.length = 0;
    const reader = createPublicClient({ chain, transport: http(url, { batch: true }) });
    const [id, number, block] = await Promise.all([
      reader.getChainId(),
      reader.getBlockNumber(),
      reader.getBlock({ includeTransactions: true }),
    ]);
    expect([id, number, block.transactions[0]?.value]).toEqual([6940, 1n, 1n]);
    const account = privateKeyToAccount(`0x${"11".repeat(32)}`);
    const wallet = createWalletClient({ account, chain, transport: http(url) });
    const hash = await wallet.sendTransaction({
      to: "0x00000000000000000000000000000000000000c0",
      value: 6n,
    });
    const raw = node.pool.submitted[0]?.[0] ?? new Uint8Array(0);
    expect(decodeTransaction(raw)).toMatchObject({
      hash,
      type: 0,
      valueAtoken: 6n,
      gasLimit: 21_000n,
      // viem puts a fifth on top of what it was told.
      maxFeePerGasAtoken: 30_000_000n,
    });
  });

  it("viem simulates blocks and calls, with overrides of block and state", async () => {
    const simulated = createTestNode({}, new InProcessCalls(new MemoryState({})));
    const listening = await startEvmHttpServer(simulated.api, {
      listen: LOOPBACK,
      allowedOrigins: [],
      memory,
    });
    try {
      const client = createPublicClient({
        transport: http(`http://127.0.0.1:${listening.address.port}`),
      });
      const [alice, bob] = [getAddress(ALICE.address), getAddress(BOB.address)];
      const balance = parseEther("1");
      const blocks = await client.simulateBlocks({
        blocks: [
          {
            blockOverrides: { number: 8n, time: 1_750_000_100n },
            stateOverrides: [{ address: alice, balance }],
            calls: [{ account: alice, to: bob, value: 5n }],
          },
          { calls: [{ account: bob, to: alice, value: 4n }] },
        ],
        traceTransfers: true,
      });
      expect(blocks.map(({ number, timestamp }) => [number, timestamp])).toEqual([
        [8n, 1_750_000_100n],
        [9n, 1_750_000_102n],
      ]);
      expect(blocks[1]?.parentHash).toBe(blocks[0]?.hash);
      expect(blocks[0]?.calls[0]).toMatchObject({ status: "success", gasUsed: 21_000n });
      expect(blocks[1]?.calls[0]?.logs?.[0]?.address).toBe(`0x${"ee".repeat(20)}`);
      const { results } = await client.simulateCalls({
        account: alice,
        stateOverrides: [{ address: alice, balance: 1n }],
        calls: [
          { to: bob, value: 1n },
          { to: bob, data: "0x01" },
        ],
      });
      expect(results.map(({ status }) => status)).toEqual(["success", "success"]);
      const poor = client.simulateBlocks({
        blocks: [{ calls: [{ account: alice, to: bob, value: 1n }] }],
      });
      await expect(poor).rejects.toThrow(/insufficient funds/);
    } finally {
      await listening.stop();
    }
  });

  it("ethers names the pool's refusals by its own error codes", async () => {
    const provider = new JsonRpcProvider(url);
    const raw = await signLegacy(ALICE, { nonce: 0, to: BOB.address });
    const refusals: [string, string, string][] = [
      ["NONCE_TOO_LOW", "nonce too low: next nonce 8, tx nonce 0", "NONCE_EXPIRED"],
      [
        "INSUFFICIENT_FUNDS",
        "insufficient funds for gas * price + value: balance 1, tx cost 2, overshot 1",
        "INSUFFICIENT_FUNDS",
      ],
      ["REPLACEMENT_UNDERPRICED", "replacement transaction underpriced", "REPLACEMENT_UNDERPRICED"],
    ];
    for (const [code, message, expected] of refusals) {
      node.pool.answer = () => Object.assign(new Error(message), { code });
      await expect(provider.broadcastTransaction(raw)).rejects.toMatchObject({ code: expected });
    }
    node.pool.answer = () => parseHash32(`0x${"cd".repeat(32)}`);
    provider.destroy();
  });
});

describe("consensus RPC and metrics", () => {
  const publicKey = new Uint8Array(32).fill(9);
  const start = () =>
    startCometServer({
      view: node.chain,
      network: NETWORKS.testnet,
      isCatchingUp: () => false,
      moniker: "m",
      nodeId: "ab".repeat(20),
      p2pListenAddress: "tcp://127.0.0.1:26656",
      rpcListenAddress: "tcp://127.0.0.1:26657",
      validator: { publicKey, votingPower: 10n },
      listen: LOOPBACK,
      log,
    });

  it("serves status as CometBFT does: by GET, by POST, in batches", async () => {
    const comet = await start();
    const target = `http://127.0.0.1:${comet.address.port}`;
    try {
      const got = JSON.parse((await send(`${target}/status`, { method: "GET" })).text);
      const { block } = node.chain.blocks[1] ?? node.chain.genesis();
      expect(got).toMatchObject({
        jsonrpc: "2.0",
        id: -1,
        result: {
          node_info: { network: "chain_6940-1", moniker: "m", id: "ab".repeat(20) },
          sync_info: {
            latest_block_height: "1",
            latest_block_time: "2023-11-14T22:13:22.12Z",
            latest_block_hash: block.hash.slice(2).toUpperCase(),
            latest_app_hash: block.header.parentHash.slice(2).toUpperCase(),
            earliest_block_height: "1",
            catching_up: false,
          },
          validator_info: {
            address: expect.stringMatching(/^[0-9A-F]{40}$/),
            voting_power: "10",
            pub_key: {
              type: "tendermint/PubKeyEd25519",
              value: Buffer.from(publicKey).toString("base64"),
            },
          },
        },
      });
      expect(got.result.node_info.version).toMatch(/^0\.38\./);
      const body = JSON.stringify({ jsonrpc: "2.0", id: 5, method: "status", params: {} });
      const posted = JSON.parse((await send(target, { body })).text);
      expect(posted).toEqual({ ...got, id: 5 });
      expect(JSON.parse((await send(target, { body: `[${body}]` })).text)).toEqual([posted]);
      expect(JSON.parse((await send(`${target}/health`, { method: "GET" })).text).result).toEqual(
        {},
      );
      const unknown = JSON.stringify({ jsonrpc: "2.0", id: "a", method: "constructor" });
      expect(JSON.parse((await send(target, { body: unknown })).text)).toEqual({
        jsonrpc: "2.0",
        id: "a",
        error: { code: -32601, message: "Method not found" },
      });
      expect((await send(`${target}/nothing`, { method: "GET" })).status).toBe(404);
    } finally {
      await comet.stop();
    }
  });

  it("serves the metrics page", async () => {
    const metrics = await startMetricsServer({
      listen: LOOPBACK,
      metrics: node.api.metrics,
      memory,
      log,
    });
    try {
      const page = await send(`http://127.0.0.1:${metrics.address.port}/metrics`, {
        method: "GET",
      });
      expect(page.status).toBe(200);
      expect(page.headers["content-type"]).toContain("text/plain; version=0.0.4");
      expect(page.text).toContain("causeway_jsonrpc_requests_total");
    } finally {
      await metrics.stop();
    }
  });
});
