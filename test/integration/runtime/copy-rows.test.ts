/** Rows in COPY's binary format: what PostgreSQL itself says it read, for every type and its edges. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Hex } from "../../../chain/hex.js";
import { ROW_COLUMNS, ROW_TABLES } from "../../../indexer/store/row-columns.js";
import { LIVE_SCHEMA, schemaStatements } from "../../../indexer/store/schema.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { type CopyColumn, CopyRows } from "../../../runtime/sql/copy-rows.js";
import { openSqlSession, type SqlSession } from "../../../runtime/sql/sql-session.js";
import { createRandom } from "../../helpers/random.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";

const SEED = 20_261_122;

let database: TestDatabase;
let session: SqlSession;

beforeAll(async () => {
  database = await createTestDatabase();
  const log = createLogger({ component: "test", level: "silent" });
  session = await openSqlSession({ url: database.url, applicationName: "test", log });
});

afterAll(async () => {
  await session.close();
  await database.drop();
});

/** Copies rows into a table of these columns; what it has then, as the server's own texts. */
async function copied(
  columns: readonly CopyColumn[],
  rows: CopyRows,
): Promise<readonly (readonly (string | null)[])[]> {
  const names = columns.map((column) => column.split(" ")[0] ?? "");
  const texts = names.map((name) => `${name}::text AS ${name}`).join(", ");
  return session.transaction(async (tx) => {
    await tx.query(
      `CREATE TEMPORARY TABLE copied (n serial, ${columns.join(", ")}) ON COMMIT DROP`,
    );
    await tx.copyIn("copied", rows);
    const found = await tx.query<Record<string, string | null>>(
      `SELECT ${texts} FROM copied ORDER BY n`,
    );
    return found.map((row) => names.map((name) => row[name] ?? null));
  });
}

it("has numbers of every length", async () => {
  const random = createRandom(SEED);
  const values: bigint[] = [0n, 1n, -1n, 9_999n, 10_000n, 10_001n, 100_000_000n, 2n ** 256n - 1n];
  for (let bits = 1n; bits <= 256n; bits++) {
    const hex = Buffer.from(random.bytes(32)).toString("hex");
    const value = BigInt(`0x${hex}`) >> (256n - bits);
    values.push(value, -value, 2n ** (bits - 1n), 10n ** (bits % 78n), 10n ** (bits % 78n) - 1n);
  }
  values.push(BigInt(Number.MAX_SAFE_INTEGER), BigInt(Number.MAX_SAFE_INTEGER) + 1n);
  const columns = ["amount numeric", "bounded numeric"] as const;
  const rows = new CopyRows(columns);
  for (const value of values) rows.add(value, undefined);
  expect(await copied(columns, rows)).toEqual(values.map((value) => [String(value), null]));
});

it("has bytes, texts, truth, moments and small numbers", async () => {
  const random = createRandom(SEED + 1);
  const columns = [
    "bytes bytea",
    "text text",
    "flag bool",
    "small int2",
    "usual int4",
    "wide int8",
    "moment timestamptz",
  ] as const;
  const rows = new CopyRows(columns);
  const expected: (string | null)[][] = [];
  await session.query("SET timezone = 'UTC'");
  const texts = ["", "0x12", "\\N", "tab\tline\n\\.", "é\u{1f600}", "a\0b", "\ud800"];
  // More than one piece of memory, and values longer than a piece.
  for (let index = 0; index < 2_000; index++) {
    const size = index % 500 === 0 ? 200_000 : random.integer(100);
    const hex: Hex = `0x${Buffer.from(random.bytes(size)).toString("hex")}`;
    const text = `${texts[index % texts.length]}${"x".repeat(index % 300)}`;
    const [small, usual] = [random.integer(65_536) - 32_768, random.integer(2 ** 32) - 2 ** 31];
    const wide = Number.MAX_SAFE_INTEGER - random.integer(2 ** 32);
    const moment = Date.UTC(1990 + (index % 100), 0, 1) + random.integer(1_000_000_000);
    rows.add(hex, text, index % 2 === 0, small, usual, index % 2 === 0 ? wide : -wide, moment);
    expected.push([
      `\\x${hex.slice(2)}`,
      Buffer.from(text.replaceAll("\0", "\ufffd")).toString(),
      String(index % 2 === 0),
      String(small),
      String(usual),
      String(index % 2 === 0 ? wide : -wide),
      new Date(moment).toISOString(),
    ]);
  }
  rows.add(undefined, undefined, undefined, undefined, undefined, undefined, undefined);
  const found = await copied(columns, rows);
  expect(found.at(-1)).toEqual(columns.map(() => null));
  const asIso = found
    .slice(0, -1)
    .map((row) => [
      ...row.slice(0, -1),
      new Date(`${row.at(-1)?.replace(" ", "T")}:00`.replace("+00:00", "Z")).toISOString(),
    ]);
  expect(asIso).toEqual(expected);
});

it("writes nothing where there is nothing, and refuses what a column cannot hold", async () => {
  const columns = ["small int2", "usual int4"] as const;
  expect(await copied(columns, new CopyRows(columns))).toEqual([]);
  expect(() => new CopyRows(columns).add(32_768, 1)).toThrow(RangeError);
  expect(() => new CopyRows(columns).add(1, 2 ** 31)).toThrow(RangeError);
});

it("names the columns of the index in the order of its tables", async () => {
  for (const statement of schemaStatements(LIVE_SCHEMA)) await session.query(statement);
  for (const table of ROW_TABLES.filter((name) => !name.startsWith("stage_"))) {
    const found = await session.query<{ column: string }>(
      `SELECT column_name || ' ' || udt_name AS column FROM information_schema.columns
       WHERE table_schema = $1 AND table_name = $2 ORDER BY ordinal_position`,
      [LIVE_SCHEMA, table],
    );
    expect([table, ROW_COLUMNS[table]]).toEqual([table, found.map(({ column }) => column)]);
  }
});
