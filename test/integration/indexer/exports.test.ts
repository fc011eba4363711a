/** Files of exports, who never takes them, and a folder that takes none. */
import { mkdir, mkdtemp, readdir, readlink, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "@jest/globals";
import { Exports } from "../../../indexer/api/exports.js";
import { LIVE_SCHEMA, schemaStatements } from "../../../indexer/store/schema.js";
import { openSqlSession } from "../../../runtime/sql/sql-session.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { createTestDatabase } from "../../helpers/services/postgres.js";
import { until } from "../../helpers/until.js";

it("a client that is gone before the first piece leaves no file open", async () => {
  const { url, drop } = await createTestDatabase();
  const session = await openSqlSession({ url, applicationName: "test", log: silentLog });
  for (const statement of schemaStatements(LIVE_SCHEMA)) await session.query(statement);
  await session.close();
  const folder = await mkdtemp(join(tmpdir(), "exports-"));
  const { signal } = new AbortController();
  const exports = await Exports.open({ folder, databaseUrl: url, kept: 5, log: silentLog, signal });
  const { id } = exports.create({
    kind: "transfers",
    format: "csv",
    addressHex: undefined,
    assetHex: undefined,
    fromHeight: 0,
    toHeight: 9,
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
  const session = await openSqlSession({ url, applicationName: "test", log: silentLog });
  for (const statement of schemaStatements(LIVE_SCHEMA)) await session.query(statement);
  await session.close();
  const folder = await mkdtemp(join(tmpdir(), "exports-"));
  const { signal } = new AbortController();
  const exports = await Exports.open({ folder, databaseUrl: url, kept: 1, log: silentLog, signal });
  const ended = async () => {
    const { id } = exports.create({
      kind: "transactions",
      format: "jsonl",
      addressHex: undefined,
      assetHex: undefined,
      fromHeight: 0,
      toHeight: 9,
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
