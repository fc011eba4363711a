/** Files of exports, who never takes them, and a folder that takes none. */
import { mkdir, mkdtemp, readdir, readlink, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, it } from "@jest/globals";
import { type ExportRequest, Exports } from "../../../indexer/api/exports.js";
import { startApi } from "../../../indexer/api/start.js";
import { indexerConfigFile } from "../../../indexer/config.js";
import { LIVE_SCHEMA, schemaStatements } from "../../../indexer/store/schema.js";
import { loadConfig } from "../../../runtime/config/config.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { openSqlSession, type SqlSession } from "../../../runtime/sql/sql-session.js";
import { contextWithoutNode } from "../../helpers/indexer/read-context.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { createTestDatabase } from "../../helpers/services/postgres.js";
import { until } from "../../helpers/until.js";

/** The tables of an index with ten blocks. */
async function openBlocks(url: string): Promise<SqlSession> {
  const session = await openSqlSession({ url, applicationName: "test", log: silentLog });
  for (const statement of schemaStatements(LIVE_SCHEMA)) await session.query(statement);
  await session.query(
    `INSERT INTO ${LIVE_SCHEMA}.block
     SELECT h, int8send(h), int8send(h), now(), '', 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM generate_series(0, 9) h`,
  );
  return session;
}

const hashAt = (height: number) => `0x${height.toString(16).padStart(16, "0")}`;

const bounds = { kept: 5, maxBytes: 2 ** 30, timeLimitMs: 60_000 };

it("a client that is gone before the first piece leaves no file open", async () => {
  const { url, drop } = await createTestDatabase();
  await (await openBlocks(url)).close();
  const folder = await mkdtemp(join(tmpdir(), "exports-"));
  const { signal } = new AbortController();
  const exports = await Exports.open({
    folder,
    databaseUrl: url,
    ...bounds,
    log: silentLog,
    signal,
  });
  const { id } = exports.create({
    kind: "transfers",
    format: "csv",
    addressHex: undefined,
    assetHex: undefined,
    fromHeight: 0,
    toHeight: 9,
    toHash: hashAt(9),
  });
  await until(() => exports.get(id).status === "done", { timeoutMs: 10_000, what: "the export" });
  // As a pipeline ends what it never read, when the response is closed.
  for (let times = 0; times < 50; times++) {
    await exports.read(id).bytes[Symbol.asyncIterator]().return?.();
  }
  const open = await Promise.all(
    (await readdir("/proc/self/fd")).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => "")),
  );
  expect(open.filter((file) => file.includes(id))).toEqual([]);
  const pieces: Buffer[] = [];
  for await (const piece of exports.read(id).bytes) pieces.push(piece);
  expect(Buffer.concat(pieces).toString()).toMatch(/^id,height,time,tx_hash,/);
  await exports.close();
  await rm(folder, { recursive: true });
  await drop();
});

it("fails where its folder takes no file, and the next one is made when it does", async () => {
  const { url, drop } = await createTestDatabase();
  await (await openBlocks(url)).close();
  const folder = await mkdtemp(join(tmpdir(), "exports-"));
  const { signal } = new AbortController();
  const exports = await Exports.open({
    folder,
    databaseUrl: url,
    ...bounds,
    kept: 1,
    log: silentLog,
    signal,
  });
  const ended = async () => {
    const { id } = exports.create({
      kind: "transactions",
      format: "jsonl",
      addressHex: undefined,
      assetHex: undefined,
      fromHeight: 0,
      toHeight: 9,
      toHash: hashAt(9),
    });
    const isOver = () => exports.get(id).finishedAt !== null;
    await until(isOver, { timeoutMs: 10_000, what: "the export ends" });
    return exports.get(id).status;
  };
  expect(await ended()).toBe("done");
  // Neither written to nor deleted from, as on a disk that has become read-only.
  await rm(folder, { recursive: true });
  await writeFile(folder, "");
  expect(await ended()).toBe("failed");
  await rm(folder);
  await mkdir(folder);
  expect(await ended()).toBe("done");
  await exports.close();
  await rm(folder, { recursive: true });
  await drop();
});

/** A database with so many swaps, a folder, and exports of them; ended by the caller. */
async function openWithSwaps(own: Partial<typeof bounds>) {
  const { url, drop } = await createTestDatabase();
  const session = await openBlocks(url);
  await session.query(
    `INSERT INTO ${LIVE_SCHEMA}.swap
     SELECT '\\x70', h, i, 0, '', '', '', 1, 1, 1, 1 FROM generate_series(0, 9) h, generate_series(1, 1000) i`,
  );
  const folder = await mkdtemp(join(tmpdir(), "exports-"));
  const { signal } = new AbortController();
  const options = { folder, databaseUrl: url, ...bounds, ...own, log: silentLog, signal };
  const exports = await Exports.open(options);
  const ask = (toHeight: number, client?: string, kind: ExportRequest["kind"] = "swaps") => {
    const upTo = { toHeight, toHash: hashAt(toHeight) };
    const chosen = { addressHex: undefined, assetHex: undefined, fromHeight: 0, ...upTo };
    return exports.create({ kind, format: "csv", ...chosen }, client);
  };
  const ended = async (toHeight: number, client?: string) => {
    const { id } = ask(toHeight, client);
    const isOver = () => exports.get(id).finishedAt !== null;
    await until(isOver, { timeoutMs: 10_000, what: "the export ends" });
    return exports.get(id);
  };
  const close = async () => {
    await exports.close();
    await session.close();
    await rm(folder, { recursive: true });
    await drop();
  };
  return { url, session, folder, exports, ask, ended, close };
}

async function sizesIn(folder: string): Promise<number[]> {
  const files = await Promise.all((await readdir(folder)).map((name) => stat(join(folder, name))));
  return files.map(({ size }) => size);
}

it("deletes the oldest files where a new one has no room, and ends one that has none alone", async () => {
  // A thousand rows are some 70 KB.
  const { folder, exports, ended, close } = await openWithSwaps({ maxBytes: 300_000 });
  const [first, second] = [await ended(1), await ended(0)];
  expect([first.status, second.status]).toEqual(["done", "done"]);
  const third = await ended(1);
  expect({ status: third.status, failureCode: third.failureCode }).toEqual({
    status: "done",
    failureCode: null,
  });
  expect(() => exports.get(first.id)).toThrow("no such export");
  expect(exports.get(second.id).status).toBe("done");
  expect(new Set(await sizesIn(folder))).toEqual(new Set([second.sizeBytes, third.sizeBytes]));
  const large = await ended(9);
  expect(large).toMatchObject({ status: "failed", failureCode: "EXPORT_TOO_LARGE", file: null });
  expect(large.failure).toContain("exports-mib");
  // The others did not make room for it.
  expect(new Set(await sizesIn(folder))).toEqual(new Set([second.sizeBytes, third.sizeBytes]));
  expect(await ended(0)).toMatchObject({ status: "done", failure: null, failureCode: null });
  await close();
});

it("ends one that the database takes too long for", async () => {
  const { session, ended, close } = await openWithSwaps({ timeLimitMs: 50 });
  const waiting = session.transaction(async (tx) => {
    await tx.query(`LOCK TABLE ${LIVE_SCHEMA}.swap`);
    return ended(9);
  });
  expect(await waiting).toMatchObject({ status: "failed", failureCode: "EXPORT_TOO_SLOW" });
  await close();
});

describe("an index that was made anew of a chain that has lost a block", () => {
  it.each([
    ["has none in its place", "DELETE FROM indexer.block WHERE height = 7"],
    ["has another one in its place", "UPDATE indexer.block SET hash = '\\x99' WHERE height = 7"],
  ])("gives no export up to it where it %s, and goes on with others", async (_what, change) => {
    const { url, session, exports, folder, ask, ended, close } = await openWithSwaps({});
    const other = await openSqlSession({ url, applicationName: "test", log: silentLog });
    const asked = await session.transaction(async (tx) => {
      await tx.query(`LOCK TABLE ${LIVE_SCHEMA}.swap`);
      const running = ask(7);
      const waits = async () => {
        const rows = await other.query(
          `SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
           AND application_name = 'causeway-indexer-export' AND wait_event_type = 'Lock'`,
        );
        return rows.length > 0;
      };
      await until(waits, { timeoutMs: 10_000, what: "the first one waits for its rows" });
      const waiting = [ask(7, undefined, "balances"), ask(3, undefined, "balances")];
      await other.query(change);
      return [running, ...waiting];
    });
    const isOver = () => asked.every(({ id }) => exports.get(id).finishedAt !== null);
    await until(isOver, { timeoutMs: 10_000, what: "all end" });
    const states = asked.map(({ id }) => exports.get(id));
    const gone = { status: "failed", failureCode: "EXPORT_BLOCK_GONE", file: null };
    const about = { toHeight: 7, toHash: hashAt(7), failure: expect.stringContaining("block 7") };
    expect(states).toMatchObject([
      { ...about, ...gone },
      { ...about, ...gone },
      { status: "done", toHash: hashAt(3) },
    ]);
    expect(await readdir(folder)).toHaveLength(1);
    expect(await ended(9)).toMatchObject({ status: "done", toHash: hashAt(9) });
    await other.close();
    await close();
  });
});

describe("clients", () => {
  const [one, other] = ["10.0.0.1", "10.0.0.2"];

  it("push out files of their own, with done exports and with failed ones", async () => {
    const { exports, ended, close } = await openWithSwaps({ kept: 3, maxBytes: 300_000 });
    const first = await ended(0, one);
    const others = [await ended(0, other)];
    for (let times = 0; times < 4; times += 1) {
      expect(await ended(9, other)).toMatchObject({ failureCode: "EXPORT_TOO_LARGE" });
    }
    while (others.length < 4) others.push(await ended(0, other));
    expect(exports.get(first.id).status).toBe("done");
    const [gone, second, ...rest] = others.map(({ id }) => id);
    for (const id of [gone, second]) expect(() => exports.get(id)).toThrow("no such export");
    for (const id of rest) expect(exports.get(id).status).toBe("done");
    // By their bytes, too: this one has room for two of them beside it, and there are three.
    await ended(2, other);
    expect(exports.get(first.id).status).toBe("done");
    expect(() => exports.get(rest[0])).toThrow("no such export");
    await close();
  });

  it("keep nobody waiting behind all of theirs, and leave places to others", async () => {
    const { url, session, exports, ask, close } = await openWithSwaps({});
    const holder = await openSqlSession({ url, applicationName: "test", log: silentLog });
    let asked = { id: "" };
    const holding = holder.transaction(async (held) => {
      await held.query(`LOCK TABLE ${LIVE_SCHEMA}.transfer`);
      await session.transaction(async (tx) => {
        await tx.query(`LOCK TABLE ${LIVE_SCHEMA}.swap`);
        const { id } = ask(0, other);
        const runs = () => exports.get(id).status === "running";
        await until(runs, { timeoutMs: 10_000, what: "the first one runs" });
        ask(0, other);
        for (let times = 0; times < 4; times += 1) ask(0, other, "transfers");
        expect(() => ask(0, other)).toThrow(expect.objectContaining({ code: "EXPORT_BUSY" }));
        asked = ask(0, one);
        expect(() => ask(0, one)).toThrow(expect.objectContaining({ code: "EXPORT_BUSY" }));
        // This machine may speak for many.
        ask(0, "127.0.0.1");
        ask(0, "127.0.0.1");
      });
      // Behind the first that waited, the others would wait for the table that is still locked.
      const isDone = () => exports.get(asked.id).status === "done";
      await until(isDone, { timeoutMs: 10_000, what: "the turn of another client" });
    });
    await holding;
    await holder.close();
    await close();
  });
});

describe("files of an earlier life", () => {
  /** Starts the API of a home on a port. */
  const start = (home: string, port: number) => {
    const env = { CAUSEWAY_INDEXER_API_LISTEN: `127.0.0.1:${port}` };
    const sql = { query: () => Promise.reject(new Error("no database here")) };
    return startApi({
      context: contextWithoutNode(sql, 0),
      config: loadConfig({ home, env, portOffset: 0 }, indexerConfigFile),
      home,
      databaseUrl: "postgres://127.0.0.1:9/none",
      log: silentLog,
      metrics: createMetrics({ processMetrics: false }),
      signal: new AbortController().signal,
    });
  };

  it("are deleted by who serves the home, and not by one that finds its port taken", async () => {
    const home = await mkdtemp(join(tmpdir(), "exports-home-"));
    const folder = join(home, "data", "indexer");
    await mkdir(folder, { recursive: true });
    const files = [`${"ab".repeat(16)}.csv`, `${"cd".repeat(16)}.jsonl.part`];
    for (const name of files) await writeFile(join(folder, name), "rows");
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    try {
      await expect(start(home, port)).rejects.toMatchObject({ code: "PORT_TAKEN" });
    } finally {
      other.close();
    }
    expect(await readdir(folder)).toEqual(files);
    const { services } = await start(home, port);
    expect(await readdir(folder)).toEqual([]);
    for (const service of services.toReversed()) await service.stop();
    await rm(home, { recursive: true });
  });
});
