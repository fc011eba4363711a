/**
 * How many rows the database goes through for an answer, and for what is done behind each block, whatever
 * plan it keeps for any values.
 */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { Client } from "pg";
import { BURN_ADDRESS, parseAddress } from "../../../chain/address.js";
import { hexToBytes, parseHash32 } from "../../../chain/hex.js";
import { addressRoutes } from "../../../indexer/api/address-routes.js";
import { blockRoutes } from "../../../indexer/api/block-routes.js";
import { dexRoutes } from "../../../indexer/api/dex-routes.js";
import { BALANCES_WALKED, MOST_CHANGED } from "../../../indexer/api/held-balances.js";
import { TOKENS_SEARCHED, tokenRoutes } from "../../../indexer/api/token-routes.js";
import { checkBalances } from "../../../indexer/ingest/balance-check.js";
import type { BatchTarget } from "../../../indexer/ingest/batch-write.js";
import { holdersChange } from "../../../indexer/ingest/holders.js";
import { confirmPairs, readTokenFacts } from "../../../indexer/ingest/token-facts.js";
import {
  INDEX_SCHEMA_VERSION,
  indexStatements,
  LIVE_SCHEMA,
  schemaStatements,
} from "../../../indexer/store/schema.js";
import type { Sql } from "../../../runtime/sql/sql.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { contextWithoutNode } from "../../helpers/indexer/read-context.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";

const HEIGHTS = 20_000;
const PAIR = parseAddress(`0x${"77".repeat(20)}`);
/** In nearly every pair, as the wrapped coin is, and in three. */
const COMMON = parseAddress(`0x${"c0".repeat(20)}`);
const RARE = parseAddress(`0x${"d0".repeat(20)}`);
/** Traded thrice, long ago. */
const TRADER = parseAddress(`0x${"a1".repeat(20)}`);

let database: TestDatabase;
let client: Client;

/** Rows that the statements since the last question have gone through. */
let rowsRead = 0;

interface PlanNode {
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Node Type": string;
  readonly Plans?: readonly PlanNode[];
}

function count(node: PlanNode): void {
  const {
    "Actual Rows": rows,
    "Actual Loops": loops,
    "Rows Removed by Filter": removed = 0,
  } = node;
  // What a statement keeps of its own was read before.
  const isRead = node["Node Type"].includes("Scan") && node["Node Type"] !== "CTE Scan";
  if (isRead) rowsRead += (rows + removed) * loops;
  for (const below of node.Plans ?? []) count(below);
}

function literal(value: unknown): string {
  if (value === null) return "NULL";
  if (value instanceof Buffer) return `'\\x${value.toString("hex")}'::bytea`;
  if (Array.isArray(value)) return `ARRAY[${value.map(literal).join(", ")}]::bytea[]`;
  if (typeof value === "string" || typeof value === "number") {
    return client.escapeLiteral(String(value));
  }
  throw new TypeError("no value of these statements");
}

/** Runs as the API does, with the plan that is kept for any values. */
const sql: Sql = {
  async query<Row>(text: string, parameters: readonly unknown[] = []): Promise<Row[]> {
    const values = parameters.map(literal);
    await client.query(`PREPARE kept AS ${text}`);
    const execute = `EXECUTE kept${values.length === 0 ? "" : `(${values.join(", ")})`}`;
    const plan = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${execute}`);
    count(plan.rows[0]["QUERY PLAN"][0].Plan);
    const { rows } = await client.query(execute);
    await client.query("DEALLOCATE kept");
    return rows as Row[];
  },
};

beforeAll(async () => {
  database = await createTestDatabase();
  client = new Client({ connectionString: database.url });
  await client.connect();
  for (const statement of schemaStatements(LIVE_SCHEMA)) await client.query(statement);
  for (const statement of indexStatements(LIVE_SCHEMA)) await client.query(statement);
  await client.query(
    `INSERT INTO indexer.block SELECT h, sha256(int8send(h)), sha256(int8send(h - 1)),
       '2026-01-01'::timestamptz + h * interval '2 seconds', '\\x00', 0, 0, 1, 900, 0, 0, 0, 0, 0
     FROM generate_series(0, ${HEIGHTS}) h`,
  );
  await client.query(
    `INSERT INTO indexer.transaction
     SELECT h, 0, sha256(int8send(h)), sha256(int8send(-h)), 1, '\\x00', '\\x00', NULL, 0, h, 0, 0, 0, 0, 0, 0,
       '\\x', NULL, NULL, NULL FROM generate_series(0, ${HEIGHTS}) h`,
  );
  await client.query(
    `INSERT INTO indexer.progress (schema_version, chain_id, genesis_hash, height, hash, time)
     SELECT ${INDEX_SCHEMA_VERSION}, 6940, hash, ${HEIGHTS}, hash, time FROM indexer.block WHERE height = ${HEIGHTS}`,
  );
  // Nearly all trade over one router, and each of many has a few swaps.
  await client.query(
    `INSERT INTO indexer.swap
     SELECT $1, h, 0, 0, '\\x99'::bytea, o, o, 1, 0, 0, 1 FROM (
       SELECT h, CASE WHEN h BETWEEN 11 AND 13 THEN $2 ELSE sha256(int8send(h % 3000)) END AS o
       FROM generate_series(1, ${HEIGHTS}) h) x`,
    [hexToBytes(PAIR), hexToBytes(TRADER)],
  );
  // Somebody gives away a little in each block.
  await client.query(
    `INSERT INTO indexer.balance_history
     SELECT $1, ''::bytea, -1, h, h, 1, 0, 0 FROM generate_series(0, ${HEIGHTS}) h`,
    [hexToBytes(BURN_ADDRESS)],
  );
  // Anybody can log a pair, and be a token.
  await client.query(
    `INSERT INTO indexer.pair
     SELECT substr(sha256(int8send(h)), 1, 20), '\\x01', CASE WHEN h % 2 = 0 THEN $1 ELSE other END,
       CASE WHEN h % 2 = 1 THEN $1 ELSE other END, h, 0, 0, 0, 0, 0, 0, false
     FROM (SELECT h, CASE WHEN h BETWEEN 11 AND 13 THEN $2::bytea
         ELSE substr(sha256(int8send(-h)), 1, 20) END AS other
       FROM generate_series(1, ${HEIGHTS}) h) x`,
    [hexToBytes(COMMON), hexToBytes(RARE)],
  );
  await client.query(
    `INSERT INTO indexer.token
     SELECT substr(sha256(int8send(h)), 1, 20), 'erc20', h, 1, 1, 1, 'A', 'A', 18, 1, ${HEIGHTS}, true
     FROM generate_series(1, ${HEIGHTS}) h`,
  );
  await client.query("ANALYZE");
  await client.query("SET plan_cache_mode = force_generic_plan");
});

afterAll(async () => {
  await client.end();
  await database.drop();
});

async function ask(
  path: string,
  query: Readonly<Record<string, unknown>>,
  context = contextWithoutNode(sql, HEIGHTS),
  params: Readonly<Record<string, string>> = {},
) {
  const routes = [
    ...addressRoutes(context),
    ...blockRoutes(context),
    ...dexRoutes(context),
    ...tokenRoutes(context),
  ];
  const route = routes.find((one) => one.path === path);
  if (route === undefined) throw new Error(`no route ${path}`);
  const { signal } = new AbortController();
  const request = { method: "GET", path, params, query, headers: {}, body: undefined };
  rowsRead = 0;
  const reply = await route.handler({ ...request, rawBody: new Uint8Array(), signal });
  return "body" in reply ? reply.body : undefined;
}

it("are few for the supply, however often somebody burned coins by giving them away", async () => {
  const body = await ask("/v1/supply", { at: HEIGHTS - 7 });
  expect(body).toMatchObject({ supply: { burnAddress: String(HEIGHTS - 7) } });
  expect(rowsRead).toBeLessThan(20);
});

it("are those of the address at which the chain's genesis lets coins be burned", async () => {
  const nobodys = parseAddress(`0x${"b0".repeat(20)}`);
  const context = { ...contextWithoutNode(sql, HEIGHTS), burnAddress: () => nobodys };
  expect(await ask("/v1/supply", { at: HEIGHTS - 7 }, context)).toMatchObject({
    supply: { burnAddress: "0" },
  });
});

it("are few for an account's swaps, however many others have swapped since", async () => {
  for (const order of ["asc", "desc"]) {
    const body = await ask("/v1/dex/swaps", { account: TRADER, order, limit: 25 });
    const heights = order === "asc" ? [11, 12, 13] : [13, 12, 11];
    expect(body).toMatchObject({ items: heights.map((height) => ({ height, to: TRADER })) });
    expect({ order, isFew: rowsRead < 100 }).toEqual({ order, isFew: true });
  }
  const one = { account: TRADER, limit: 1 };
  const { items, next } = (await ask("/v1/dex/swaps", one)) as {
    readonly items: readonly { readonly height: number }[];
    readonly next: string;
  };
  expect(items).toMatchObject([{ height: 13 }]);
  const behind = await ask("/v1/dex/swaps", { cursor: next, limit: 7 });
  expect(behind).toMatchObject({ items: [{ height: 12 }, { height: 11 }], next: null });
});

it("are few for a token's pairs, be it in three of them or in nearly all", async () => {
  const heightsOf = async (query: Readonly<Record<string, unknown>>) => {
    const body = (await ask("/v1/dex/pairs", query)) as {
      readonly items: readonly { readonly createdHeight: number }[];
      readonly next: string | null;
    };
    expect({ query, isFew: rowsRead < 1_000, rowsRead }).toMatchObject({ query, isFew: true });
    return { heights: body.items.map(({ createdHeight }) => createdHeight), next: body.next };
  };
  expect(await heightsOf({ token: RARE, limit: 25 })).toEqual({
    heights: [13, 12, 11],
    next: null,
  });
  const first = await heightsOf({ token: COMMON, limit: 3 });
  expect(first.heights).toEqual([HEIGHTS, HEIGHTS - 1, HEIGHTS - 2]);
  const second = await heightsOf({ cursor: first.next, limit: 2 });
  expect(second.heights).toEqual([HEIGHTS - 3, HEIGHTS - 4]);
  expect((await heightsOf({ limit: 2 })).heights).toEqual([HEIGHTS, HEIGHTS - 1]);
});

it("are few for the first tokens by any order, however many there are", async () => {
  for (const sort of ["transfers", "holders", "firstSeen"]) {
    const { items, next } = (await ask("/v1/tokens", { sort, limit: 5 })) as {
      readonly items: readonly unknown[];
      readonly next: string;
    };
    expect(items).toHaveLength(5);
    expect({ sort, isFew: rowsRead < 200, rowsRead }).toMatchObject({ sort, isFew: true });
    await ask("/v1/tokens", { cursor: next, limit: 5 });
    expect({ sort, isFew: rowsRead < 200, rowsRead }).toMatchObject({ sort, isFew: true });
  }
});

it("are as many for a search as one page may look at, and the next pages find the rest", async () => {
  const { rows } = await client.query<{ address: string }>(
    `UPDATE indexer.token SET name = '100%_Needle' WHERE address IN (
       (SELECT min(address) FROM indexer.token), (SELECT max(address) FROM indexer.token))
     RETURNING '0x' || encode(address, 'hex') AS address`,
  );
  const found: string[] = [];
  let pages = 0;
  for (let cursor: string | null | undefined; cursor !== null; pages += 1) {
    const asked = cursor === undefined ? { search: "%_nEEd", limit: 5 } : { cursor, limit: 5 };
    const { items, next } = (await ask("/v1/tokens", asked)) as {
      readonly items: readonly { readonly address: string }[];
      readonly next: string | null;
    };
    found.push(...items.map(({ address }) => address));
    expect({ isFew: rowsRead <= TOKENS_SEARCHED + 10, rowsRead }).toMatchObject({ isFew: true });
    cursor = next;
  }
  expect(found.toSorted()).toEqual(rows.map(({ address }) => address).toSorted());
  expect(pages).toBe(HEIGHTS / TOKENS_SEARCHED + 1);
  expect(await ask("/v1/tokens", { search: "needles", limit: 5 })).toMatchObject({ items: [] });
});

it("are few for what is asked of pairs and tokens, where nearly all were asked already", async () => {
  const asked: string[] = [];
  const node = {
    contractViews: (views: readonly { readonly contract: string }[]) => {
      asked.push(...views.map(({ contract }) => contract));
      return Promise.resolve(views.map(() => undefined));
    },
  };
  const target = { session: sql, schema: LIVE_SCHEMA } as BatchTarget;
  const tip = { height: HEIGHTS, hash: parseHash32(`0x${"ab".repeat(32)}`) };
  const { signal } = new AbortController();
  const round = async () => {
    asked.length = 0;
    rowsRead = 0;
    const options = { signal, clock: systemClock, after: undefined };
    const { asked: pairs } = await confirmPairs(target, tip, node, options);
    const tokens = await readTokenFacts(target, tip, node, options);
    return { pairs, tokens, isFew: rowsRead < 100, contracts: [...new Set(asked)] };
  };
  expect(await round()).toEqual({ pairs: 0, tokens: 0, isFew: true, contracts: [] });
  // One that nobody asked yet, and one that was asked long ago.
  const { rows } = await client.query<{ address: string }>(
    `UPDATE indexer.token SET metadata_height = CASE first_seen WHEN 7 THEN NULL ELSE 9 END
     WHERE first_seen IN (7, 8) RETURNING '0x' || encode(address, 'hex') AS address`,
  );
  await client.query("UPDATE indexer.pair SET is_confirmed = NULL WHERE height = 7");
  const found = await round();
  expect(found).toMatchObject({ pairs: 1, tokens: 2, isFew: true });
  expect(found.contracts.toSorted()).toEqual(rows.map(({ address }) => address).toSorted());
});

it("are few for which balances are asked, of however many that wait", async () => {
  await client.query(
    `INSERT INTO indexer.balance
     SELECT substr(sha256(int8send(h)), 1, 20), substr(sha256(int8send(h % 3)), 1, 20), -1, 1, 'logs', h, NULL, NULL
     FROM generate_series(1, ${HEIGHTS}) h`,
  );
  await client.query("ANALYZE indexer.balance");
  const asked: string[] = [];
  const node = {
    getBalances: () => Promise.resolve([]),
    tokenBalances: (queries: readonly { readonly token: string }[]) => {
      asked.push(...queries.map(({ token }) => token));
      return Promise.reject(new Error("enough"));
    },
  };
  const target = { session: sql, schema: LIVE_SCHEMA } as BatchTarget;
  const tip = { height: HEIGHTS, hash: parseHash32(`0x${"ab".repeat(32)}`) };
  const { signal } = new AbortController();
  rowsRead = 0;
  const options = { signal, limit: 30, clock: systemClock, from: undefined };
  await expect(checkBalances(target, tip, node, options)).rejects.toThrow("enough");
  expect(asked).not.toEqual([]);
  expect({ isFew: rowsRead < 200, rowsRead }).toMatchObject({ isFew: true });
});

it("are few for the holders of a token at any height, however often its few have moved since", async () => {
  // Three ids of one account by turns, so that the last three heights have the newest row of each.
  const moved = `SELECT $1::bytea, $2::bytea, h % 3, h`;
  const values = [hexToBytes(TRADER), hexToBytes(RARE)];
  await client.query(
    `INSERT INTO indexer.balance_history ${moved}, h, 1, 0, 0 FROM generate_series(1, ${HEIGHTS}) h`,
    values,
  );
  await client.query(
    `INSERT INTO indexer.balance (address, asset, token_id, updated_at, amount, method)
     ${moved}, h, 'logs' FROM generate_series(${HEIGHTS - 2}, ${HEIGHTS}) h`,
    values,
  );
  await client.query(
    `INSERT INTO indexer.balance
     SELECT substr(sha256(int8send(h)), 1, 20), substr(sha256(int8send(-h)), 1, 20), -1, 1, 'logs', h, h, h
     FROM generate_series(1, ${HEIGHTS}) h`,
  );
  await client.query("ANALYZE indexer.balance, indexer.balance_history");
  const context = contextWithoutNode(sql, HEIGHTS);
  for (const at of [2, 5_000, HEIGHTS - 1, HEIGHTS]) {
    const body = await ask("/v1/tokens/{token}/holders", { at }, context, { token: RARE });
    const heights = [at, at - 1, at - 2].filter((height) => height > 0);
    expect(body).toMatchObject({
      items: heights.map((height) => ({
        address: TRADER,
        tokenId: String(height % 3),
        amount: String(height),
      })),
    });
    expect({ at, isFew: rowsRead < 100, rowsRead }).toMatchObject({ at, isFew: true });
  }
});

it("are few for whether an account holds a token, however many ids it has or had of it", async () => {
  const bytes = (digits: string) => Buffer.from(digits.repeat(20), "hex");
  const [zeros, negatives, owned] = [bytes("e1"), bytes("e2"), bytes("e3")];
  const token = bytes("f0");
  const values = [token, zeros, negatives, owned];
  await client.query(
    `INSERT INTO indexer.balance
     SELECT a.account, $1, i, a.amount, 'logs', 1, 1, 1
     FROM (VALUES ($2::bytea, 0), ($3, -1), ($4, 1)) a (account, amount), generate_series(1, ${HEIGHTS}) i`,
    values,
  );
  await client.query("ANALYZE indexer.balance");
  const changeOf = async (account: Buffer, ...changes: [number, number][]) => {
    const rows = changes.map(
      ([before, after], index) =>
        `SELECT ${literal(token)} AS asset, ${literal(account)} AS address,
           ${index + 1}::numeric AS token_id, ${before} AS before, ${after} AS after`,
    );
    rowsRead = 0;
    const found = await sql.query(holdersChange(LIVE_SCHEMA, rows.join(" UNION ALL ")));
    expect({ isFew: rowsRead < 100, rowsRead }).toMatchObject({ isFew: true });
    return found;
  };
  const by = (change: number) => [{ asset: token, change: String(change) }];
  expect(await changeOf(zeros, [0, 1])).toEqual(by(1));
  expect(await changeOf(negatives, [-1, 1], [-1, 0])).toEqual(by(1));
  expect(await changeOf(owned, [1, 0], [1, 0], [1, 2])).toEqual(by(0));
  expect(await changeOf(owned, [1, 0])).toEqual(by(0));
});

it("are few for what an account has, however many ids it was given and has no more", async () => {
  const account = `0x${"e5".repeat(20)}`;
  const params = { address: account };
  const values = [
    hexToBytes(parseAddress(account)),
    hexToBytes(parseAddress(`0x${"00".repeat(20)}`)),
  ];
  // Of each id one for the time of one block, in the order of the list before all else.
  await client.query(
    `INSERT INTO indexer.balance_history
     SELECT $1, $2, i, i + t, 1 - t, 1, 0, 0 FROM generate_series(1, ${HEIGHTS - 10}) i, generate_series(0, 1) t`,
    values,
  );
  await client.query(
    `INSERT INTO indexer.balance SELECT $1, $2, i, 0, 'logs', i + 1, 1, 1 FROM generate_series(1, ${HEIGHTS - 10}) i`,
    values,
  );
  const kept = [1, 2, 3].map((digit) => `0x${`e${digit}`.repeat(20)}`);
  for (const asset of [Buffer.alloc(0), ...kept.map((one) => hexToBytes(parseAddress(one)))]) {
    const row = [values[0], asset];
    await client.query("INSERT INTO indexer.balance VALUES ($1, $2, -1, 7, 'logs', 5, 1, 1)", row);
    await client.query(
      "INSERT INTO indexer.balance_history VALUES ($1, $2, -1, 5, 7, 7, 0, 0)",
      row,
    );
  }
  await client.query("ANALYZE indexer.balance, indexer.balance_history");
  const listOf = async (query: Readonly<Record<string, unknown>>, most: number) => {
    const found: string[] = [];
    let pages = 0;
    for (let cursor: string | null | undefined; cursor !== null; pages += 1) {
      const asked = cursor === undefined ? query : { cursor, limit: query["limit"] };
      const path = "/v1/addresses/{address}/balances";
      const body = (await ask(path, asked, contextWithoutNode(sql, HEIGHTS), params)) as {
        readonly items: readonly { readonly asset: string; readonly tokenId: string | null }[];
        readonly next: string | null;
      };
      found.push(...body.items.map(({ asset, tokenId }) => tokenId ?? asset));
      expect({ query, pages, isFew: rowsRead < most, rowsRead }).toMatchObject({ isFew: true });
      cursor = body.next;
    }
    return { found, pages };
  };
  const all = ["TOKEN", ...kept];
  expect(await listOf({ limit: 100 }, 100)).toEqual({ found: all, pages: 1 });
  expect(await listOf({ limit: 1 }, 100)).toEqual({ found: all, pages: 4 });
  // Little has changed since, and then more than is looked up one by one.
  const near = HEIGHTS - MOST_CHANGED + 100;
  const middle = ["TOKEN", String(near), ...kept];
  expect(await listOf({ at: near, limit: 2 }, 5 * MOST_CHANGED)).toEqual({
    found: middle,
    pages: 3,
  });
  const far = { at: 7_777, limit: 2 };
  const { found, pages } = await listOf(far, 4 * BALANCES_WALKED);
  expect(found).toEqual(["TOKEN", "7777", ...kept]);
  expect(pages).toBe(Math.floor((HEIGHTS - 10 + 4) / BALANCES_WALKED) + 2);
  expect((await listOf({ at: 4, limit: 100 }, 20_000)).found).toEqual(["4"]);
});

it("are few for an account of which others have made an owner of very many ids", async () => {
  const account = `0x${"e3".repeat(20)}`;
  const path = "/v1/addresses/{address}";
  const body = await ask(path, {}, contextWithoutNode(sql, HEIGHTS), { address: account });
  expect(body).toMatchObject({ address: { tokens: 1 } });
  expect({ isFew: rowsRead < 100, rowsRead }).toMatchObject({ isFew: true });
});
