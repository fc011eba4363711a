import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { getAddress } from "ethers";
import supertest from "supertest";
import { parseBech32, toChecksumAddress } from "../../../chain/address.js";
import { AddressBook } from "../../../deposit-watcher/address-book.js";
import { createDepositRoutes } from "../../../deposit-watcher/api/routes.js";
import { mapDepositError } from "../../../deposit-watcher/api/api-errors.js";
import { singleKeyAccess } from "../../helpers/services/single-key.js";
import { loadApiSchemas } from "../../../runtime/http/api-schema.js";
import { createHttpServer, type HttpServer } from "../../../runtime/http/http-server.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { silentLog } from "../../helpers/services/ledger.js";
import {
  derivation,
  type RunningWatcher,
  STRANGER,
  WatcherBench,
} from "../../helpers/services/watcher.js";

const API_FILE = fileURLToPath(new URL("../../../openapi/deposit.yaml", import.meta.url));
const API_KEY = "key-of-the-test";
const MAX = (2n ** 256n - 1n).toString();

let bench: WatcherBench;
let running: RunningWatcher;
let server: HttpServer;

beforeAll(async () => {
  bench = await WatcherBench.open();
  running = bench.start();
  await bench.caughtUp();
  server = createHttpServer({
    name: "deposit-api",
    apiSpecPath: API_FILE,
    listen: { host: "127.0.0.1", port: 0 },
    routes: createDepositRoutes({
      database: bench.ledger.database,
      derivation,
      chain: { node: bench.node, source: bench.source, watched: new AddressBook() },
      guard: bench.guard,
      tokens: [],
      headHeight: () => running.watcher.status.headHeight,
      onRegistered: () => running.watcher.wakeBackfill(),
    }),
    access: singleKeyAccess(API_KEY),
    mapError: mapDepositError,
    readiness: () => ({ ready: true }),
    log: silentLog,
    metrics: createMetrics({ processMetrics: false }),
    bodyLimitBytes: 1_024,
  });
});
afterAll(() => bench.close());

const get = (path: string) =>
  supertest(server.app).get(path).set("authorization", `Bearer ${API_KEY}`);
const post = (path: string) =>
  supertest(server.app).post(path).set("authorization", `Bearer ${API_KEY}`);

async function register(customerId: string) {
  const reply = await post("/v1/addresses").send({ customerId });
  expect(reply.status).toBe(201);
  return reply.body as { address: string; bech32: string; customerId: string; index: number };
}

describe("POST /v1/addresses", () => {
  it("gives a new checksummed address with its bech32 form on each call", async () => {
    const first = await register("alice");
    const second = await register("alice");
    expect(Object.keys(first).toSorted()).toEqual(["address", "bech32", "customerId", "index"]);
    expect(second.index).toBe(first.index + 1);
    expect(second.address).not.toBe(first.address);
    expect(getAddress(first.address)).toBe(first.address);
    expect(toChecksumAddress(parseBech32(first.bech32))).toBe(first.address);
    expect(toChecksumAddress(derivation.addressAt(first.index))).toBe(first.address);
  });

  it("gives racing calls different addresses", async () => {
    const all = await Promise.all(Array.from({ length: 20 }, () => register("racer")));
    expect(new Set(all.map(({ address }) => address)).size).toBe(20);
    expect(new Set(all.map(({ index }) => index)).size).toBe(20);
  });

  it.each([
    ["no customer", {}, 422],
    ["an empty customer", { customerId: "" }, 422],
    ["a number", { customerId: 5 }, 422],
    ["a number that is not exact", { customerId: 2 ** 53 }, 422],
    ["a NUL character", { customerId: "a\u0000b" }, 422],
    ["65 characters", { customerId: "x".repeat(65) }, 422],
    ["a space", { customerId: "a b" }, 422],
    ["a line break at the end", { customerId: "alice\n" }, 422],
    ["an unknown field", { customerId: "alice", index: 3 }, 422],
    ["the identifier of nobody", { customerId: "causeway:unassigned" }, 422],
    ["the holder of coins in suspense", { customerId: "causeway:suspense" }, 422],
    ["a list", [], 422],
  ])("refuses %s", async (_what, body, status) => {
    const reply = await post("/v1/addresses").send(body);
    expect([reply.status, reply.body.code]).toEqual([status, "INVALID_FIELD"]);
    expect(Object.keys(reply.body).toSorted()).toEqual(["code", "details", "message"]);
  });

  it("answers 400, 401, 404, 413 and 415 as they are meant", async () => {
    const json = (text: string) =>
      post("/v1/addresses").set("content-type", "application/json").send(text);
    const replies = [
      [await json(`{"customerId": `), 400, "UNREADABLE"],
      [await json(""), 400, "UNREADABLE"],
      [await post("/v1/addresses"), 415, "UNSUPPORTED_MEDIA_TYPE"],
      [await supertest(server.app).post("/v1/addresses").send({}), 401, "UNAUTHORIZED"],
      [await get("/v1/deposits").set("authorization", "Bearer wrong"), 401, "UNAUTHORIZED"],
      [await get("/v1/nothing"), 404, "NOT_FOUND"],
      [await get("/v1/deposits/1-2-3"), 404, "NOT_FOUND"],
      [await get("/v1/customers/nobody/balances"), 404, "NOT_FOUND"],
      [await get("/v1/customers/no%20body/balances"), 404, "NOT_FOUND"],
      [await get(`/v1/deposits/${"1".repeat(300)}`), 404, "NOT_FOUND"],
      [await get(`/v1/deposits/${"1".repeat(300)}/evidence`), 404, "NOT_FOUND"],
      [await get(`/v1/customers/${"a".repeat(300)}/balances`), 404, "NOT_FOUND"],
      [await json(JSON.stringify({ customerId: "x".repeat(2_000) })), 413, "TOO_LARGE"],
      [
        await post("/v1/addresses").set("content-type", "text/plain").send("alice"),
        415,
        "UNSUPPORTED_MEDIA_TYPE",
      ],
    ] as const;
    for (const [reply, status, code] of replies) {
      expect([reply.status, reply.body.code]).toEqual([status, code]);
    }
  });
});

async function count(query: Record<string, string>): Promise<number> {
  return (await get("/v1/deposits").query(query)).body.deposits.length;
}

describe("lists", () => {
  it("page through every deposit once, oldest first, with every filter", async () => {
    const { address } = await register("pager");
    const other = await register("other");
    const paid = derivation.addressAt((await register("pager")).index);
    for (let round = 1; round <= 5; round += 1) {
      bench.pay([paid, BigInt(round)], [derivation.addressAt(other.index), 100n]);
    }
    bench.chain.mine();
    await bench.caughtUp();
    const seen: string[] = [];
    let next: string | null = "0";
    while (next !== null) {
      const reply = await get("/v1/deposits").query({ customerId: "pager", limit: 2, after: next });
      expect(reply.status).toBe(200);
      seen.push(...reply.body.deposits.map((row: { amountAtoken: string }) => row.amountAtoken));
      next = reply.body.next;
    }
    expect(seen).toEqual(["1", "2", "3", "4", "5"]);
    expect(await count({ address })).toBe(0);
    expect(await count({ address: toChecksumAddress(paid) })).toBe(5);
    expect(await count({ address: paid, status: "credited" })).toBe(5);
    expect(await count({ address: paid, status: "detected" })).toBe(0);
    expect(await count({ customerId: "nobody" })).toBe(0);
  });

  it.each([
    "limit=0",
    "limit=1001",
    "limit=ten",
    "limit=1.5",
    "limit=1e999",
    "limit=-Infinity",
    "after=-1",
    "after=abc",
    "after=99999999999999999999",
    "status=done",
    "address=0x12",
    "address=0xF39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
    "customerId=a%20b",
    "unknown=1",
    "limit=1&limit=2",
    "[status]=held",
    "%5Bstatus%5D=held",
    "%5bstatus]=held&limit=10",
    "status[constructor]=held",
    "status[]=held",
    "filter[status]=held",
    "[]",
  ])("refuse ?%s", async (query) => {
    const reply = await get(`/v1/deposits?${query}`);
    expect([query, reply.status, reply.body.code]).toEqual([query, 422, "INVALID_FIELD"]);
  });

  it("take a bracket in a value for a part of it", async () => {
    const reply = await get("/v1/customers/pager/balances?[x]=1");
    expect([reply.status, reply.body.details.errors[0].path]).toEqual([422, "/query/[x]"]);
    const told = await get("/v1/deposits?status=[held]");
    expect(told.body.details.errors[0].path).toBe("/query/status");
  });

  it("are not the only ones that refuse them", async () => {
    const reply = await post("/v1/addresses?[x]=1").send({ customerId: "alice" });
    expect([reply.status, reply.body.code]).toEqual([422, "INVALID_FIELD"]);
  });

  it("serve events of both kinds with a gapless sequence", async () => {
    const first = await get("/v1/events").query({ limit: 3 });
    expect(first.body.events.map(({ seq }: { seq: number }) => seq)).toEqual([1, 2, 3]);
    expect(first.body.next).toBe("3");
    const rest = await get("/v1/events").query({ limit: 1_000, after: first.body.next });
    expect(rest.body.events[0].seq).toBe(4);
    expect(rest.body.next).toBeNull();
    expect(rest.body.events[0]).toMatchObject({
      type: expect.stringMatching(/^deposit\./),
      // As they are kept and chained; whoever compares texts counts on it.
      data: {
        depositId: expect.any(String),
        address: expect.stringMatching(/^0x[0-9a-f]{40}$/),
      },
      at: expect.stringMatching(/Z$/),
    });
  });

  it("serve events as the API file has them, which nobody checks on the way out", async () => {
    const check = loadApiSchemas(API_FILE).responseCheck("/v1/events", "get");
    const rows = await bench.ledger.database.query<{ seq: string; at: Date }>(
      "SELECT seq, epoch, type, data, at FROM event ORDER BY seq",
    );
    expect(rows.length).toBeGreaterThan(3);
    for (const limit of [1, 3, rows.length, 1_000]) {
      const { body, headers, text } = await get("/v1/events").query({ limit });
      expect(() => check(body, 200)).not.toThrow();
      expect(() => check({ ...body, more: 1 }, 200)).toThrow("additional properties");
      const page = rows.slice(0, limit).map((row) => ({
        ...row,
        seq: Number(row.seq),
        at: row.at.toISOString(),
      }));
      const next = limit < rows.length ? String(limit) : null;
      expect([limit, body]).toEqual([limit, { events: page, next }]);
      expect(headers["content-type"]).toBe("application/json; charset=utf-8");
      expect(Number(headers["content-length"])).toBe(Buffer.byteLength(text));
    }
    const beyond = await get("/v1/events").query({ after: "999999" });
    expect(beyond.body).toEqual({ events: [], next: null });
  });
});

describe("a deposit and its balances", () => {
  it("are shown from detected to credited, the largest amount exact", async () => {
    const registered = await register("whale");
    const { height } = bench.chain.mine([
      bench.chain.payment(STRANGER, derivation.addressAt(registered.index), 2n ** 256n - 1n),
    ]);
    await bench.caughtUp();
    const shown = await get(`/v1/deposits/${height}-0-3`);
    expect(shown.body).toEqual({
      id: `${height}-0-3`,
      address: registered.address,
      customerId: "whale",
      asset: "TOKEN",
      amountUnits: MAX,
      amountAtoken: MAX,
      status: "detected",
      blockNumber: height,
      blockHash: bench.chain.blocks[height]?.hash,
      txHash: bench.chain.blocks[height]?.transactions[0]?.hash,
      txIndex: 0,
      opIndex: 3,
      confirmations: 1,
    });
    const balances = async () => (await get("/v1/customers/whale/balances")).body;
    const balance = (availableUnits: string, pendingUnits: string) => ({
      asset: "TOKEN",
      availableUnits,
      heldUnits: "0",
      pendingUnits,
      availableAtoken: availableUnits,
      heldAtoken: "0",
      pendingAtoken: pendingUnits,
    });
    expect(await balances()).toEqual({
      customerId: "whale",
      balances: [balance("0", MAX)],
    });
    bench.chain.mine();
    await bench.caughtUp();
    const credited = await get(`/v1/deposits/${height}-0-3`);
    expect(credited.body).toMatchObject({ status: "credited", confirmations: 2 });
    expect((await balances()).balances).toEqual([balance(MAX, "0")]);
  });
});
