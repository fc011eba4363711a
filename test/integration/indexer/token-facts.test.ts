/** What pairs and tokens are asked: within the time of a round, each in its turn. */
import { afterAll, beforeEach, expect, it } from "@jest/globals";
import { id } from "ethers";
import { type Address, parseAddress } from "../../../chain/address.js";
import { hexToBytes, parseHash32 } from "../../../chain/hex.js";
import {
  confirmPairs,
  type FactSource,
  readTokenFacts,
} from "../../../indexer/ingest/token-facts.js";
import { openIndexes, openTables } from "../../../indexer/store/progress.js";
import { LIVE_SCHEMA as s } from "../../../indexer/store/schema.js";
import { openSqlSession, type SqlSession } from "../../../runtime/sql/sql-session.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";

const HASH = parseHash32(id("block 10"));
const TIP = { height: 10, hash: HASH };
const EXCHANGE_MS = 5_000;
const VIEWS_AT_ONCE = 20;

const contractAt = (index: number): Address =>
  parseAddress(`0x${index.toString(16).padStart(40, "0")}`);

const opened: { readonly database: TestDatabase; readonly session: SqlSession }[] = [];
let session: SqlSession;

beforeEach(async () => {
  const database = await createTestDatabase();
  const options = { url: database.url, applicationName: "test", log: silentLog };
  session = await openSqlSession(options);
  opened.push({ database, session });
  const identity = { chainId: 6940n, genesisHash: parseHash32(id("block 0")) };
  await session.transaction((tx) => openTables(tx, s, identity));
  await openIndexes(session, s);
});

afterAll(async () => {
  for (const one of opened) {
    await one.session.close();
    await one.database.drop();
  }
});

/** Contracts that nobody has asked yet, as pairs and as tokens. */
async function give(count: number): Promise<void> {
  const addresses = Array.from({ length: count }, (_, index) => hexToBytes(contractAt(index + 1)));
  await session.query(
    `INSERT INTO ${s}.pair (address, factory, token0, token1, height, log_index)
     SELECT a, a, a, a, 5, i FROM unnest($1::bytea[]) WITH ORDINALITY u (a, i)`,
    [addresses],
  );
  await session.query(
    `INSERT INTO ${s}.token (address, standard, first_seen, transfers, holders, supply_logged)
     SELECT a, 'erc20', 5, 1, 1, 1 FROM unnest($1::bytea[]) a`,
    [addresses],
  );
}

/** A node with contracts that take as long as they can; each says that it is its own pair. */
function dearNode() {
  let nowMs = 0;
  const exchanges: Address[][] = [];
  const node: FactSource = {
    contractViews: (views) => {
      // So many views at a time are sent to a node.
      for (let at = 0; at < views.length; at += VIEWS_AT_ONCE) {
        nowMs += EXCHANGE_MS;
        const some = views.slice(at, at + VIEWS_AT_ONCE).map(({ contract }) => contract);
        exchanges.push([...new Set(some)]);
      }
      return Promise.resolve(
        views.map(({ contract }) => Buffer.concat([Buffer.alloc(12), hexToBytes(contract)])),
      );
    },
  };
  return { node, exchanges, clock: { monotonicMs: () => nowMs } };
}

const { signal } = new AbortController();
const target = () => ({ session, schema: s }) as const;

it("ends in time, however long contracts take, and goes on where it was", async () => {
  await give(20);
  const { node, exchanges, clock } = dearNode();
  const pairs = await confirmPairs(target(), TIP, node, { signal, clock, after: undefined });
  // What some pairs say, and what their factories say to that.
  expect(exchanges).toHaveLength(2);
  expect(pairs.asked).toBeGreaterThan(0);
  const tokens = await readTokenFacts(target(), TIP, node, { signal, clock });
  expect(exchanges).toHaveLength(3);
  expect(tokens).toBeGreaterThan(0);
  let { last } = pairs;
  for (let isMore = true; isMore; ) {
    const round = await confirmPairs(target(), TIP, node, { signal, clock, after: last });
    ({ last } = round);
    isMore = round.asked > 0;
  }
  while ((await readTokenFacts(target(), TIP, node, { signal, clock })) > 0);
  expect(
    await session.query(
      `SELECT (SELECT count(*)::integer FROM ${s}.pair WHERE is_confirmed) AS pairs,
         (SELECT count(*)::integer FROM ${s}.token WHERE metadata_height = 10) AS tokens`,
    ),
  ).toEqual([{ pairs: 20, tokens: 20 }]);
});

it("asks all at once where contracts answer soon", async () => {
  await give(20);
  const { node } = dearNode();
  const clock = { monotonicMs: () => 0 };
  expect(
    await confirmPairs(target(), TIP, node, { signal, clock, after: undefined }),
  ).toMatchObject({ asked: 20 });
  expect(await readTokenFacts(target(), TIP, node, { signal, clock })).toBe(20);
});

it("has a turn for each pair, though the first ones are logged anew with every block", async () => {
  await give(30);
  const { node, exchanges, clock } = dearNode();
  let after: Buffer | undefined;
  for (let round = 0; round < 16; round++) {
    ({ last: after } = await confirmPairs(target(), TIP, node, { signal, clock, after }));
    await session.query(`UPDATE ${s}.pair SET is_confirmed = NULL WHERE address <= $1`, [
      hexToBytes(contractAt(20)),
    ]);
  }
  expect(new Set(exchanges.flat()).size).toBe(30);
});

it("asks each pair once where it is to end, though all are logged anew behind every round", async () => {
  await give(4);
  const { node, exchanges, clock } = dearNode();
  const options = { signal, clock, upTo: 10 };
  const counts: number[] = [];
  let after: Buffer | undefined;
  for (let round = 0; round < 4; round++) {
    const { asked, last } = await confirmPairs(target(), TIP, node, { ...options, after });
    counts.push(asked);
    after = last;
    await session.query(`UPDATE ${s}.pair SET is_confirmed = NULL`);
  }
  expect(counts).toEqual([2, 2, 0, 0]);
  expect(new Set(exchanges.flat()).size).toBe(4);
  // Who follows has all of them left.
  const { asked } = await confirmPairs(target(), TIP, node, { signal, clock, after });
  expect(asked).toBeGreaterThan(0);
});
