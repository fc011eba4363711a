/**
 * No read of the API goes through a whole table that grows with the chain: PostgreSQL's own planner
 * says how it would answer each, over tables with many rows.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Client, type QueryResult } from "pg";
import { parseAddress } from "../../../chain/address.js";
import { addressRoutes } from "../../../indexer/api/address-routes.js";
import { blockRoutes } from "../../../indexer/api/block-routes.js";
import { dexRoutes } from "../../../indexer/api/dex-routes.js";
import type { ApiContext } from "../../../indexer/api/reads.js";
import { tokenRoutes } from "../../../indexer/api/token-routes.js";
import { transactionRoutes } from "../../../indexer/api/transaction-routes.js";
import {
  INDEX_SCHEMA_VERSION,
  indexStatements,
  LIVE_SCHEMA,
  schemaStatements,
} from "../../../indexer/store/schema.js";
import type { Sql } from "../../../runtime/sql/sql.js";
import { type ScaledIndex, scaleIndex } from "../../helpers/indexer/scale.js";
import { contextWithoutNode } from "../../helpers/indexer/read-context.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";

const TOKEN = parseAddress(`0x${"77".repeat(20)}`);
const HEIGHTS = 5_000;
const TRANSFERS = 40_000;
const HASH = `0x${"ab".repeat(32)}`;

let database: TestDatabase;
let client: Client;
let index: ScaledIndex;
let context: ApiContext;

/** Tables that the last requests would have gone through, one row after the other. */
const walked = new Set<string>();

interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly Plans?: readonly PlanNode[];
}

function note(node: PlanNode): void {
  if (node["Node Type"] === "Seq Scan") walked.add(node["Relation Name"] ?? "");
  for (const below of node.Plans ?? []) note(below);
}

/** The plan that is kept for any values. `EXPLAIN (GENERIC_PLAN)` came with PostgreSQL 16. */
async function explainGeneral(text: string, count: number): Promise<QueryResult> {
  await client.query(`SET plan_cache_mode = force_generic_plan; PREPARE kept AS ${text}`);
  const values = count === 0 ? "" : `(${Array.from({ length: count }, () => "NULL").join(", ")})`;
  const plan = await client.query(`EXPLAIN (FORMAT JSON) EXECUTE kept${values}`);
  await client.query("DEALLOCATE kept; RESET plan_cache_mode");
  return plan;
}

beforeAll(async () => {
  database = await createTestDatabase();
  client = new Client({ connectionString: database.url });
  await client.connect();
  for (const statement of schemaStatements(LIVE_SCHEMA)) await client.query(statement);
  for (const statement of indexStatements(LIVE_SCHEMA)) await client.query(statement);
  await client.query(
    `INSERT INTO indexer.block SELECT h, sha256(int8send(h)), sha256(int8send(h - 1)),
       '2026-01-01'::timestamptz + h * interval '2 seconds', '\\x00', 0, 0, 20, 900, 0, 0, 0, 0, 0
     FROM generate_series(0, ${HEIGHTS}) h`,
  );
  await client.query("ANALYZE indexer.block");
  await client.query(
    `INSERT INTO indexer.progress (schema_version, chain_id, genesis_hash, height, hash, time)
     SELECT ${INDEX_SCHEMA_VERSION}, 6940, hash, ${HEIGHTS}, hash, time FROM indexer.block WHERE height = ${HEIGHTS}`,
  );
  await client.query(
    "INSERT INTO indexer.token VALUES ($1, 'erc20', 1, 0, 0, 0, 'Plans', 'PLN', 18, 0, 1, true)",
    [Buffer.from(TOKEN.slice(2), "hex")],
  );
  index = await scaleIndex({ client, token: TOKEN, transfers: TRANSFERS, say: () => undefined });
  // To go through all balances is the best way only where nearly all are of the token that is asked for.
  await client.query(
    `INSERT INTO indexer.balance
     SELECT substr(sha256(int8send(h)), 1, 20), substr(sha256(int8send(-h)), 1, 20), -1, 1, 'logs', 1, 1, 1
     FROM generate_series(1, ${TRANSFERS}) h`,
  );
  await client.query("ANALYZE indexer.balance");
  const sql: Sql = {
    async query<Row>(text: string, parameters: readonly unknown[] = []): Promise<Row[]> {
      // For the values at hand, and for any: statements that come again are kept with such a plan.
      const own = await client.query(`EXPLAIN (FORMAT JSON) ${text}`, [...parameters]);
      const general = await explainGeneral(text, parameters.length);
      for (const { rows } of [own, general]) note(rows[0]["QUERY PLAN"][0].Plan);
      return (await client.query(text, [...parameters])).rows as Row[];
    },
  };
  context = contextWithoutNode(sql, HEIGHTS);
});

afterAll(async () => {
  await client.end();
  await database.drop();
});

interface ListBody {
  readonly items: readonly unknown[];
  readonly next: string | null;
}

/** Asks a route as the server does, without one. */
async function ask(
  path: string,
  params: Readonly<Record<string, string>>,
  query: Readonly<Record<string, unknown>>,
): Promise<ListBody> {
  const routes = [
    ...addressRoutes(context),
    ...tokenRoutes(context),
    ...blockRoutes(context),
    ...transactionRoutes(context),
    ...dexRoutes(context),
  ];
  const route = routes.find((one) => one.path === path && one.method === "get");
  if (route === undefined) throw new Error(`no route ${path}`);
  const { signal } = new AbortController();
  const rawBody = new Uint8Array();
  const request = { method: "GET", path, params, query, headers: {}, body: undefined };
  const reply = await route.handler({ ...request, rawBody, signal });
  return ("body" in reply ? reply.body : undefined) as ListBody;
}

describe("reads of an index with many rows", () => {
  const address = () => ({ address: index.accountAt(7) });
  const token = { token: TOKEN };
  const block = { id: "17" };
  const pair = { pair: TOKEN };
  const lists = (): readonly (readonly [
    string,
    Record<string, string>,
    Record<string, unknown>,
  ])[] => [
    ["/v1/addresses/{address}/balances", address(), {}],
    ["/v1/addresses/{address}/balances", address(), { at: 9 }],
    ["/v1/addresses/{address}/balance-history", address(), { asset: TOKEN }],
    ["/v1/addresses/{address}/transfers", address(), {}],
    ["/v1/addresses/{address}/transfers", address(), { asset: TOKEN, order: "asc" }],
    ["/v1/addresses/{address}/transfers", address(), { direction: "in", kind: "erc20", min: "9" }],
    ["/v1/addresses/{address}/transfers", address(), { from: "2026-01-01T00:00:09Z" }],
    ["/v1/addresses/{address}/transactions", address(), {}],
    ["/v1/tokens/{token}/holders", token, {}],
    ["/v1/tokens/{token}/holders", token, { at: HEIGHTS - 1 }],
    ["/v1/tokens/{token}/holders", token, { at: 0 }],
    ["/v1/tokens/{token}/transfers", token, {}],
    ["/v1/tokens/{token}/transfers", token, { order: "asc", fromBlock: 7 }],
    ["/v1/transactions", {}, {}],
    ["/v1/blocks", {}, {}],
    ["/v1/blocks/{id}/transactions", block, {}],
    ["/v1/dex/pairs/{pair}/swaps", pair, {}],
    ["/v1/dex/pairs/{pair}/liquidity", pair, {}],
  ];

  it("follow an index, on the first page and behind it", async () => {
    for (const [path, params, query] of lists()) {
      walked.clear();
      const { items, next } = await ask(path, params, { ...query, limit: 5 });
      if (next !== null) await ask(path, params, { cursor: next, limit: 5 });
      const about = { path, query, hasMore: next !== null, isEmpty: items.length === 0 };
      const few = ["progress", "token", "pair", "swap", "liquidity", "correction"];
      const many = [...walked].filter((table) => !few.includes(table));
      expect({ ...about, many }).toEqual({ ...about, many: [] });
    }
  });

  it("find one address, token, block or transaction by an index", async () => {
    walked.clear();
    await ask("/v1/addresses/{address}", address(), {});
    await ask("/v1/tokens/{token}", token, {});
    await ask("/v1/blocks/{id}", block, {});
    await expect(ask("/v1/transactions/{hash}", { hash: HASH }, {})).rejects.toThrow();
    expect([...walked].filter((table) => table !== "progress" && table !== "token")).toEqual([]);
  });
});

describe("transfers of an account", () => {
  const PAGE = 3;

  /** Ids of all rows, page by page. */
  async function idsOf(address: string, query: Record<string, unknown>): Promise<string[]> {
    const ids: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const asked = cursor === undefined ? query : { cursor };
      const page = await ask(
        "/v1/addresses/{address}/transfers",
        { address },
        { ...asked, limit: PAGE },
      );
      ids.push(...(page.items as { id: string }[]).map(({ id }) => id));
      cursor = page.next;
    }
    return ids;
  }

  it("are each there once, whichever side it is on, those to itself too", async () => {
    const address = index.accountAt(11);
    const bytes = Buffer.from(address.slice(2), "hex");
    // Between the others, next to each other, and in one transaction with two of its own.
    await client.query(
      `INSERT INTO indexer.transfer (height, tx_index, seq, kind, asset, sender, recipient, amount)
       SELECT h, 0, q, 'native', ''::bytea, $1, $1, 5 FROM (VALUES (1, 0), (1, 1), (2000, 0), (2001, 0), (5000, 0)) v (h, q)`,
      [bytes],
    );
    const conditions: Readonly<Record<string, string>> = {
      both: "$1 IN (sender, recipient)",
      in: "recipient = $1",
      out: "sender = $1",
    };
    for (const [direction, condition] of Object.entries(conditions)) {
      for (const order of ["asc", "desc"]) {
        const { rows } = await client.query(
          `SELECT height || '-' || tx_index || '-' || seq AS id FROM indexer.transfer f WHERE ${condition}
           ORDER BY height ${order}, tx_index ${order}, seq ${order}`,
          [bytes],
        );
        const wanted = rows.map(({ id }) => String(id));
        expect(wanted.length).toBeGreaterThan(2 * PAGE);
        const query = direction === "both" ? { order } : { order, direction };
        expect({ query, ids: await idsOf(address, query) }).toEqual({ query, ids: wanted });
      }
    }
  });
});
