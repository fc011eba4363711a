/** A transaction of more logs and transfers than anybody should have to hold at once. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { Client } from "pg";
import { transactionRoutes } from "../../../indexer/api/transaction-routes.js";
import {
  INDEX_SCHEMA_VERSION,
  indexStatements,
  LIVE_SCHEMA,
  schemaStatements,
} from "../../../indexer/store/schema.js";
import type { HttpReply } from "../../../runtime/http/http-reply.js";
import type { Sql } from "../../../runtime/sql/sql.js";
import type { Json } from "../../helpers/indexer/indexer.js";
import { contextWithoutNode } from "../../helpers/indexer/read-context.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";

const LOGS = 2_500;
const TRANSFERS = 1_200;

/** Bytes of a piece: of a thousand rows, each with what else belongs to it. */
const PIECE_BYTES = 600_000;

let database: TestDatabase;
let client: Client;

const sql: Sql = {
  async query<Row>(text: string, parameters: readonly unknown[] = []): Promise<Row[]> {
    return (await client.query(text, [...parameters])).rows as Row[];
  },
};

/** Hash of the transaction at a place of block 1. */
const hashOf = (txIndex: number) => txIndex.toString(16).padStart(64, "0");

beforeAll(async () => {
  database = await createTestDatabase();
  client = new Client({ connectionString: database.url });
  await client.connect();
  for (const statement of schemaStatements(LIVE_SCHEMA)) await client.query(statement);
  for (const statement of indexStatements(LIVE_SCHEMA)) await client.query(statement);
  await client.query(
    `INSERT INTO indexer.block VALUES
       (1, sha256('one'), sha256('none'), '2026-01-01', '\\x00', 0, 0, 3, 900, 0, 0, 0, 0, 0)`,
  );
  await client.query(
    `INSERT INTO indexer.progress (schema_version, chain_id, genesis_hash, height, hash, time)
     VALUES (${INDEX_SCHEMA_VERSION}, 6940, sha256('none'), 1, sha256('one'), '2026-01-01')`,
  );
  for (const txIndex of [0, 1, 2]) {
    await client.query(
      `INSERT INTO indexer.transaction VALUES (1, $1, decode($2, 'hex'), decode($3, 'hex'), 1, '\\xaa', '\\xbb',
         NULL, 0, 0, 0, 0, 0, 0, 0, 0, '\\x', NULL, NULL, NULL)`,
      [txIndex, hashOf(txIndex), hashOf(100 + txIndex)],
    );
  }
  // One log and one transfer of each neighbour, all others of the one in the middle.
  const place = (count: number) => `CASE WHEN n = 0 THEN 0 WHEN n = ${count + 1} THEN 2 ELSE 1 END`;
  await client.query(
    `INSERT INTO indexer.log SELECT 1, n, ${place(LOGS)}, '\\xcc', sha256(int8send(n)), int8send(n)
     FROM generate_series(0, ${LOGS + 1}) n`,
  );
  await client.query(
    `INSERT INTO indexer.transfer
     SELECT 1, ${place(TRANSFERS)}, n, 'erc20', NULL, '\\xcc', '\\xaa', '\\xbb', n, NULL, n, NULL
     FROM generate_series(0, ${TRANSFERS + 1}) n`,
  );
});

afterAll(async () => {
  await client.end();
  await database.drop();
});

function ask(txIndex: number): Promise<HttpReply> {
  const routes = transactionRoutes(contextWithoutNode(sql, 1));
  const route = routes.find(({ path }) => path === "/v1/transactions/{hash}");
  if (route === undefined) throw new Error("no such route");
  const request = { method: "GET", path: "/", query: {}, headers: {}, body: undefined };
  const params = { hash: hashOf(txIndex) };
  const { signal } = new AbortController();
  return route.handler({ ...request, params, rawBody: new Uint8Array(), signal });
}

it("is told in pieces, whole and in the same form as any other", async () => {
  const small = (await ask(0)).body as Json;
  const reply = await ask(1);
  expect(reply.headers).toMatchObject({ "content-type": "application/json; charset=utf-8" });
  const pieces: Uint8Array[] = [];
  for await (const piece of reply.stream ?? []) pieces.push(piece);
  expect(pieces.length).toBeGreaterThan((LOGS + TRANSFERS) / 1_000);
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(PIECE_BYTES);
  const { meta, transaction }: Json = JSON.parse(Buffer.concat(pieces).toString("utf8"));
  expect(meta).toEqual(small.meta);
  expect(Object.keys(transaction)).toEqual(Object.keys(small.transaction));
  expect(transaction).toMatchObject({ hash: `0x${hashOf(1)}`, index: 1 });
  expect(Object.keys(transaction.logs[7])).toEqual(Object.keys(small.transaction.logs[0]));
  expect(Object.keys(transaction.transfers[7])).toEqual(
    Object.keys(small.transaction.transfers[0]),
  );
  const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
  expect(transaction.logs.map(({ logIndex }: Json) => logIndex)).toEqual(numbers(LOGS));
  expect(transaction.transfers.map(({ seq }: Json) => seq)).toEqual(numbers(TRANSFERS));
  expect([small.transaction.logs.length, small.transaction.transfers.length]).toEqual([1, 1]);
});

it("is broken off where another block has come into the place of its own", async () => {
  const { stream } = await ask(1);
  const iterator = stream?.[Symbol.asyncIterator]();
  expect((await iterator?.next())?.done).toBe(false);
  await client.query("UPDATE indexer.block SET hash = sha256('other')");
  const rest = async () => {
    while ((await iterator?.next())?.done === false);
  };
  await expect(rest()).rejects.toMatchObject({ code: "NOT_FOUND" });
});
