/** Contracts that answer what they like: what is written down of their balances, and when they are asked. */
import { afterAll, beforeEach, expect, it } from "@jest/globals";
import { id } from "ethers";
import { type Address, parseAddress } from "../../../chain/address.js";
import { hexToBytes, parseHash32 } from "../../../chain/hex.js";
import { type BalanceSource, checkBalances } from "../../../indexer/ingest/balance-check.js";
import { openIndexes, openTables } from "../../../indexer/store/progress.js";
import { LIVE_SCHEMA as s } from "../../../indexer/store/schema.js";
import type { Clock } from "../../../runtime/process/clock.js";
import { openSqlSession, type SqlSession } from "../../../runtime/sql/sql-session.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";

const HOLDER = parseAddress(`0x${"a1".repeat(20)}`);
const TOKEN = parseAddress(`0x${"70".repeat(20)}`);
const DEAR = parseAddress(`0x${"10".repeat(20)}`);
const ALSO_DEAR = parseAddress(`0x${"20".repeat(20)}`);

const hashAt = (height: number) => parseHash32(id(`block ${height}`));

const opened: { readonly database: TestDatabase; readonly session: SqlSession }[] = [];
let session: SqlSession;

beforeEach(async () => {
  const database = await createTestDatabase();
  const options = { url: database.url, applicationName: "test", log: silentLog };
  session = await openSqlSession(options);
  opened.push({ database, session });
  const identity = { chainId: 6940n, genesisHash: hashAt(0) };
  await session.transaction((tx) => openTables(tx, s, identity));
  await openIndexes(session, s);
});

afterAll(async () => {
  for (const one of opened) {
    await one.session.close();
    await one.database.drop();
  }
});

/** As batches leave it: so many ids of a token came at a height, nobody has looked at them. */
async function give(token: Address, { height, ids }: { height: number; ids: number }) {
  const values = [hexToBytes(HOLDER), hexToBytes(token), height, ids];
  await session.query(
    `INSERT INTO ${s}.token (address, standard, first_seen, transfers, holders, supply_logged)
     VALUES ($1, 'erc1155', $2, 1, 1, 1) ON CONFLICT DO NOTHING`,
    [values[1], height],
  );
  await session.query(
    `INSERT INTO ${s}.balance_history
     SELECT $1, $2, i, $3, 1, 1, 0, 0 FROM generate_series(1, $4::integer) i`,
    values,
  );
  await session.query(
    `INSERT INTO ${s}.balance (address, asset, token_id, amount, method, updated_at)
     SELECT $1, $2, i, 1, 'logs', $3 FROM generate_series(1, $4::integer) i`,
    values,
  );
}

interface Round {
  readonly from?: Buffer | undefined;
  readonly clock?: Pick<Clock, "monotonicMs">;
}

/** One round at a height. */
async function checkAt(
  height: number,
  node: BalanceSource["tokenBalances"],
  { from, clock = { monotonicMs: () => 0 } }: Round = {},
) {
  const hash = hashAt(height);
  await session.query(`UPDATE ${s}.progress SET height = $1, hash = $2`, [
    height,
    hexToBytes(hash),
  ]);
  const { signal } = new AbortController();
  const source: BalanceSource = {
    getBalances: () => Promise.resolve([]),
    tokenBalances: node,
  };
  const target = { session, schema: s } as const;
  return checkBalances(target, { height, hash }, source, { signal, limit: 500, clock, from });
}

const always =
  (units: bigint): BalanceSource["tokenBalances"] =>
  (queries) =>
    Promise.resolve(queries.map(() => units));

it("writes one correction down between two movements, however often a contract says otherwise", async () => {
  await give(TOKEN, { height: 10, ids: 3 });
  const heights = Array.from({ length: 5 }, (_, index) => 11 + index * 50_000);
  for (const height of heights) {
    expect(await checkAt(height, always(BigInt(height)))).toMatchObject({
      checked: 3,
      corrected: 3,
    });
  }
  const last = heights.at(-1);
  const told = { height: last, amount: String(last) };
  expect(
    await session.query(
      `SELECT height, amount, credit FROM ${s}.balance_history WHERE token_id = 2 ORDER BY height`,
    ),
  ).toEqual([
    { height: 10, amount: "1", credit: "1" },
    { ...told, credit: "0" },
  ]);
  expect(
    await session.query(
      `SELECT height, derived, observed FROM ${s}.correction WHERE token_id = 2 ORDER BY height`,
    ),
  ).toEqual([{ height: last, derived: "1", observed: String(last) }]);
  expect(
    await session.query(
      `SELECT updated_at, amount, method, verified_at FROM ${s}.balance WHERE token_id = 2`,
    ),
  ).toEqual([{ updated_at: last, amount: String(last), method: "balanceOf", verified_at: last }]);
});

it("keeps what was corrected before a movement", async () => {
  await give(TOKEN, { height: 10, ids: 1 });
  await checkAt(11, always(7n));
  // As a batch does, with two more.
  await session.query(
    `INSERT INTO ${s}.balance_history SELECT address, asset, token_id, 12, 9, 2, 0, 0 FROM ${s}.balance`,
  );
  await session.query(
    `UPDATE ${s}.balance SET amount = 9, updated_at = 12, verified_at = NULL, checked_at = NULL`,
  );
  await checkAt(12, always(8n));
  await checkAt(12 + 50_000, always(5n));
  const rows = await session.query(
    `SELECT height, amount, credit, derived, observed FROM ${s}.balance_history
     LEFT JOIN ${s}.correction USING (address, asset, token_id, height) ORDER BY height`,
  );
  expect(rows).toEqual([
    { height: 10, amount: "1", credit: "1", derived: null, observed: null },
    { height: 11, amount: "7", credit: "0", derived: "1", observed: "7" },
    { height: 12, amount: "8", credit: "2", derived: "9", observed: "8" },
    { height: 50_012, amount: "5", credit: "0", derived: "8", observed: "5" },
  ]);
});

it("asks again after twice as long each time that a balance differs, up to a day", async () => {
  await give(TOKEN, { height: 10, ids: 1 });
  let last = 11;
  await checkAt(last, always(0n));
  /** The next look comes behind so many blocks, and no sooner. */
  const look = async (pauseBlocks: number, units: bigint) => {
    const early = await checkAt(last + pauseBlocks, always(units));
    last += pauseBlocks + 1;
    const { checked } = await checkAt(last, always(units));
    return { pauseBlocks, early: early.checked, checked };
  };
  let toldUnits = 0n;
  for (const pauseBlocks of [1_800, 3_602, 7_206, 14_414, 28_830, 43_200, 43_200]) {
    toldUnits = BigInt(last);
    const found = await look(pauseBlocks, toldUnits);
    expect(found).toEqual({ pauseBlocks, early: 0, checked: 1 });
  }
  // One that was right is looked at as any other.
  await look(43_200, toldUnits);
  expect(await look(1_800, toldUnits)).toMatchObject({ early: 0, checked: 1 });
});

/** A node that takes so long for each balance of some tokens, by a clock of its own. */
function slowNode(dear: readonly Address[], balanceMs: number) {
  let nowMs = 0;
  const asked: Address[] = [];
  return {
    asked,
    clock: { monotonicMs: () => nowMs },
    tokenBalances: (queries: Parameters<BalanceSource["tokenBalances"]>[0]) => {
      for (const { token } of queries) {
        asked.push(token);
        if (dear.includes(token)) nowMs += balanceMs;
      }
      return Promise.resolve(queries.map(() => 1n));
    },
  };
}

it("ends a round in time, however dear a contract's balances are, and another token has its turn", async () => {
  await give(DEAR, { height: 10, ids: 400 });
  await give(ALSO_DEAR, { height: 11, ids: 400 });
  await give(TOKEN, { height: 12, ids: 3 });
  const node = slowNode([DEAR, ALSO_DEAR], 61);
  let from: Buffer | undefined;
  const rounds: { readonly tookMs: number; readonly isThere: boolean }[] = [];
  let isMore = true;
  while (isMore) {
    const startMs = node.clock.monotonicMs();
    const round = await checkAt(13, node.tokenBalances, { clock: node.clock, from });
    ({ next: from, isMore } = round);
    const tookMs = node.clock.monotonicMs() - startMs;
    rounds.push({ tookMs, isThere: node.asked.includes(TOKEN) });
  }
  // Two seconds, and the exchange that is under way then.
  expect(Math.max(...rounds.map(({ tookMs }) => tookMs))).toBeLessThan(4_000);
  expect(rounds.findIndex(({ isThere }) => isThere)).toBeLessThan(2);
  expect(node.asked).toHaveLength(803);
  const left = await session.query(`SELECT 1 FROM ${s}.balance WHERE checked_at IS NULL`);
  expect(left).toEqual([]);
});

it("has time for what was asked before, beside what changes all the time", async () => {
  await give(TOKEN, { height: 10, ids: 1 });
  await checkAt(11, always(1n));
  await give(DEAR, { height: 5_000, ids: 400 });
  const node = slowNode([DEAR], 61);
  await checkAt(5_000, node.tokenBalances, { clock: node.clock });
  expect(node.asked).toContain(TOKEN);
});

it("leaves no token out, of however many", async () => {
  const tokens = Array.from({ length: 700 }, (_, index) =>
    parseAddress(`0x${(index + 1).toString(16).padStart(40, "0")}`),
  );
  for (const token of tokens) await give(token, { height: 10, ids: 1 });
  const node = slowNode([], 0);
  const first = await checkAt(11, node.tokenBalances);
  expect(first).toMatchObject({ checked: 500, isMore: true });
  const { next: from } = first;
  // One that is before them came meanwhile.
  await session.query(
    `UPDATE ${s}.balance SET checked_at = NULL, updated_at = 12 WHERE asset = $1`,
    [hexToBytes(tokens[7] ?? TOKEN)],
  );
  const second = await checkAt(12, node.tokenBalances, { from });
  expect(second).toMatchObject({ checked: 200, isMore: true });
  const third = await checkAt(12, node.tokenBalances, { from: second.next });
  expect(third).toMatchObject({ checked: 1, isMore: false });
});
