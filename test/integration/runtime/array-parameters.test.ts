/** Arrays among parameters: the same answers, and the same faults, as where the driver writes them. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Client } from "pg";
import { createLogger } from "../../../runtime/process/logger.js";
import { boundParameters } from "../../../runtime/sql/array-parameters.js";
import { type SqlDatabase, openDatabase } from "../../../runtime/sql/sql.js";
import { openSqlSession } from "../../../runtime/sql/sql-session.js";
import { createRandom } from "../../helpers/random.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";

const SEED = 20_261_130;
const log = createLogger({ component: "test", level: "silent" });
const { signal } = new AbortController();

/** Texts of every kind: empty, escaped by the driver, wide, of lone surrogates, short and long. */
const TEXTS = [
  "",
  "NULL",
  "null",
  '"',
  "\\",
  '{"a":"b\\"c"}',
  "{a,b}",
  " blank ",
  "line\n\ttab\r",
  "é\u{1f600}",
  "\ud800",
  "a\udc00b",
  "\u0001\u007f\u0080",
  "x".repeat(72),
  "x".repeat(73),
  `${"x".repeat(71)}é`,
  "é".repeat(1_024),
  "é".repeat(1_025),
  "\ud800".repeat(1_025),
  "y".repeat(300_000),
];

const MOST = Number.MAX_SAFE_INTEGER;

/** By type: what is written as bytes. */
const ARRAYS: Readonly<Record<string, readonly (readonly unknown[])[]>> = {
  text: [[], [null], [undefined, "a"], TEXTS, [...TEXTS, null]],
  jsonb: [[], [null], ["null", "1", '{"a":[1,"\\"\\\\"]}', '"é\u{1f600}"', null]],
  smallint: [[], [0, -1, 32_767, -32_768, "12", "-0", null]],
  int2: [[5]],
  integer: [[], [0, -0, -1, 2 ** 31 - 1, -(2 ** 31), "12", "-0012", null]],
  int: [[5]],
  int4: [[5]],
  bigint: [
    [],
    [0, -0, -1, 1, 2 ** 31, -(2 ** 31) - 1, 2 ** 32, 2 ** 32 - 1, -(2 ** 32), MOST - 1, 1 - MOST],
    ["0", "-1", "999999999999999", "-999999999999999", null],
  ],
  int8: [[5]],
  boolean: [[], [true, false, null]],
  bool: [[true]],
};

/** By type: what is left to the driver, as one element is not of the type for certain. */
const LEFT: Readonly<Record<string, readonly (readonly unknown[])[]>> = {
  text: [[1], [2n ** 70n], [true], [new Date(0)], [{ a: 1 }], [["a"], ["b"]], [Buffer.from("a")]],
  jsonb: [[{ a: 1 }], [1], [true]],
  smallint: [[32_768], [-32_769], [1.5], ["40000"]],
  integer: [[2 ** 31], [-(2 ** 31) - 1], [0.5], [Number.NaN], ["x"], ["2147483648"], [" 1"]],
  bigint: [[2n ** 62n], [2 ** 63], [MOST + 1], ["9223372036854775807"], [""], [1.5], [true]],
  boolean: [["true"], ["x"], [1]],
  numeric: [[1n, "2"]],
  timestamptz: [[new Date(0)]],
  bytea: [[Buffer.from("a")]],
};

describe.each(["UTF8", "SQL_ASCII"])("in a database of %s", (encoding) => {
  let database: TestDatabase;
  let db: SqlDatabase;
  let driver: Client;

  beforeAll(async () => {
    database = await createTestDatabase(encoding);
    const options = {
      url: database.url,
      migrations: [],
      applicationName: "array-test",
      log,
      signal,
    };
    db = await openDatabase({ ...options, poolSize: 2, keepsPlans: true });
    driver = new Client({ connectionString: database.url });
    await driver.connect();
  });

  afterAll(async () => {
    await driver.end();
    await db.close();
    await database.drop();
  });

  /** What the server makes of an array, or its fault. */
  const answerOf = async (
    query: (text: string, values: unknown[]) => Promise<unknown>,
    type: string,
    list: readonly unknown[],
  ): Promise<unknown> => {
    const text =
      `SELECT $1::${type}[]::text AS whole, cardinality($1::${type}[]) AS size, ` +
      `array_ndims($1::${type}[]) AS dimensions, ${type === "text" ? "md5(array_to_string($1::text[], ','))" : "1"} AS sum`;
    try {
      return await query(text, [list]);
    } catch (error) {
      const cause: unknown = error instanceof Error ? (error.cause ?? error) : error;
      return { fault: String(Reflect.get(Object(cause), "code")), says: String(cause) };
    }
  };
  const ours = (text: string, values: unknown[]) => db.query(text, values);
  const theirs = async (text: string, values: unknown[]) => (await driver.query(text, values)).rows;

  it("gives what the driver's texts give, for every type and its edges", async () => {
    for (const [type, lists] of Object.entries(ARRAYS)) {
      for (const list of lists) {
        const text = `SELECT $1::${type}[]`;
        expect([type, list, boundParameters(text, [list])[0]]).toEqual([
          type,
          list,
          expect.any(Buffer),
        ]);
        // More often than a text is seen before its plan is kept.
        for (let turn = 0; turn < 4; turn++) {
          const found = await answerOf(ours, type, list);
          expect([type, list, found]).toEqual([type, list, await answerOf(theirs, type, list)]);
          expect(found).not.toHaveProperty("fault");
        }
      }
    }
  });

  it("leaves what is not of the type for certain to the driver, with the same fault", async () => {
    for (const [type, lists] of Object.entries(LEFT)) {
      for (const list of lists) {
        const text = `SELECT $1::${type}[]`;
        expect([type, boundParameters(text, [list])[0]]).toEqual([type, list]);
        expect([type, list, await answerOf(ours, type, list)]).toEqual([
          type,
          list,
          await answerOf(theirs, type, list),
        ]);
      }
    }
  });

  it("has NUL refused by the server, with the driver's fault", async () => {
    const refused = { fault: "22021", says: expect.stringContaining("0x00") };
    for (const text of ["\0", "a\0b", `${"x".repeat(100)}\0`]) {
      const found = await answerOf(ours, "text", ["a", text]);
      expect(found).toEqual(refused);
      expect(found).toEqual(await answerOf(theirs, "text", ["a", text]));
    }
    const json = [JSON.stringify({ a: "\0" })];
    expect(await answerOf(ours, "jsonb", json)).toEqual(await answerOf(theirs, "jsonb", json));
    for (const text of ["{", "", "nul"]) {
      const [own, other] = [
        await answerOf(ours, "jsonb", [text]),
        await answerOf(theirs, "jsonb", [text]),
      ];
      expect(own).toEqual(other);
      expect(own).toMatchObject({ fault: "22P02" });
    }
  });

  it("is right on any list", async () => {
    const random = createRandom(SEED);
    for (let turn = 0; turn < 60; turn++) {
      const list = Array.from({ length: random.integer(300) }, () => {
        const kind = random.integer(10);
        if (kind === 0) return null;
        const units = Array.from({ length: random.integer(90) }, () =>
          kind < 7 ? 32 + random.integer(95) : 1 + random.integer(0xffff),
        );
        return String.fromCharCode(...units);
      });
      const found = await answerOf(ours, "text", list);
      expect([turn, found]).toEqual([turn, await answerOf(theirs, "text", list)]);
    }
  });
});

describe("a statement", () => {
  const bytes = (text: string, list: readonly unknown[] = ["1"]) =>
    Buffer.isBuffer(boundParameters(text, [list])[0]);

  it("says the type by one cast alone, wherever the parameter stands", () => {
    expect(bytes("SELECT $1::text[]")).toBe(true);
    expect(bytes("SELECT $1 :: TEXT []")).toBe(true);
    expect(bytes("SELECT ($1::text[])[1], $1::text[]")).toBe(true);
    expect(bytes("SELECT $1::bigint[]::text[]")).toBe(true);
    expect(bytes("SELECT $1::text[], $1::bigint[]")).toBe(false);
    expect(bytes("SELECT $1::text[], $1::numeric[]")).toBe(false);
    expect(bytes("SELECT $1::numeric[], $1::text[]")).toBe(false);
    expect(bytes("SELECT $1::text[] || $1")).toBe(false);
    expect(bytes("SELECT ARRAY['a'] || $1, $1::text[]")).toBe(false);
    expect(bytes("SELECT CAST($1 AS text[])")).toBe(false);
    expect(bytes("SELECT $1::text[][]")).toBe(false);
    expect(bytes("SELECT $1::text")).toBe(false);
    expect(bytes("SELECT $1::other.text[]")).toBe(false);
    expect(bytes("SELECT $10::text[], $1")).toBe(false);
  });

  it("is not misread by what stands in a comment or a literal", () => {
    expect(bytes("SELECT $1::bigint[] -- not $1::text[]")).toBe(false);
    expect(bytes("SELECT '$1::text[]', $1::bigint[]")).toBe(false);
    expect(bytes("SELECT '$1::text[]', $1")).toBe(false);
    expect(bytes("SELECT $1 /* the keys */ ::text[]")).toBe(false);
  });

  it("has its other parameters as they are", () => {
    const [date, list] = [new Date(0), [1]];
    const text = "SELECT $1, $2::bigint[], $3, $4::text";
    const bound = boundParameters(text, ["a", list, date, null]);
    expect(bound).toEqual(["a", expect.any(Buffer), date, null]);
    expect(list).toEqual([1]);
  });
});

it("is written the same by a connection of its own", async () => {
  const database = await createTestDatabase();
  const session = await openSqlSession({ url: database.url, applicationName: "array-test", log });
  try {
    const rows = await session.query("SELECT * FROM unnest($1::text[], $2::bigint[]) AS a (t, n)", [
      ['"', null],
      [1, "-2"],
    ]);
    expect(rows).toEqual([
      { t: '"', n: "1" },
      { t: null, n: "-2" },
    ]);
  } finally {
    await session.close();
    await database.drop();
  }
});
