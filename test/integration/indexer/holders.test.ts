/** Holders of a contract whose units have ids and have none, counted as accounts. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { AbiCoder, id, zeroPadValue } from "ethers";
import { type Address, parseAddress } from "../../../chain/address.js";
import { type Hash32, type Hex, parseHash32 } from "../../../chain/hex.js";
import { checkBalances } from "../../../indexer/ingest/balance-check.js";
import { type Tip, writeBatch } from "../../../indexer/ingest/batch-write.js";
import { openIndexes, openTables } from "../../../indexer/store/progress.js";
import { LIVE_SCHEMA } from "../../../indexer/store/schema.js";
import type { RangedBlock } from "../../../rpc-client/indexing/ranged-block.js";
import type { JournaledLog } from "../../../rpc-client/journal-codec.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { openSqlSession, type SqlSession } from "../../../runtime/sql/sql-session.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";

const address = (byte: string): Address => parseAddress(`0x${byte.repeat(20)}`);
const [TOKEN, NOBODY, ALICE, BOB] = [address("70"), address("00"), address("a1"), address("b0")];
const hash = (text: string): Hash32 => parseHash32(id(text));
const word = (account: Address): Hash32 => parseHash32(zeroPadValue(account, 32));
const coder = AbiCoder.defaultAbiCoder();

function log(signature: string, accounts: Address[], ...units: bigint[]): JournaledLog {
  const types = units.map(() => "uint256");
  const data = coder.encode(types, units) as Hex;
  return { address: TOKEN, topics: [hash(signature), ...accounts.map(word)], data };
}

const single = (from: Address, to: Address, tokenId: bigint, units: bigint) =>
  log("TransferSingle(address,address,address,uint256,uint256)", [ALICE, from, to], tokenId, units);
const plain = (from: Address, to: Address, units: bigint) =>
  log("Transfer(address,address,uint256)", [from, to], units);

/** Logs of each block, and who holds something behind it. */
const HISTORY: readonly (readonly [readonly JournaledLog[], number])[] = [
  [[], 0],
  [[single(NOBODY, ALICE, 5n, 9n)], 1],
  // Alice has both now, and is one account.
  [[plain(NOBODY, ALICE, 7n)], 1],
  [[plain(ALICE, BOB, 3n)], 2],
  [[plain(ALICE, BOB, 4n)], 2],
  [[single(ALICE, BOB, 5n, 9n)], 1],
  [[plain(BOB, NOBODY, 7n)], 1],
  [[single(BOB, NOBODY, 5n, 9n)], 0],
];

function blockAt(height: number): RangedBlock {
  const transaction = {
    hash: hash(`transaction ${height}`),
    index: 0,
    status: 1 as const,
    from: ALICE,
    to: TOKEN,
    contractAddress: undefined,
    gasUsed: 0n,
    gasPriceAtoken: 0n,
    nonce: BigInt(height),
    input: "0x" as Hex,
    inputSizeBytes: 0,
    changes: [],
    logs: HISTORY[height]?.[0] ?? [],
    valueAtoken: 0n,
    gasLimit: 0n,
    type: 0,
    sdkHash: hash(`sdk ${height}`),
  };
  return {
    hash: hash(`block ${height}`),
    height,
    parentHash: hash(`block ${height - 1}`),
    timestampMs: Date.UTC(2026, 0, 5) + height * 1_000,
    transactions: [transaction],
    blockChanges: [],
    mintedAtoken: 0n,
    burnedAtoken: 0n,
    claims: [],
    proposer: ALICE,
    gasUsed: 0n,
    gasLimit: 0n,
    sizeBytes: 1,
  };
}

const blocks = HISTORY.map((_, height) => blockAt(height));
const opened: { readonly database: TestDatabase; readonly session: SqlSession }[] = [];

async function openIndex(): Promise<SqlSession> {
  const database = await createTestDatabase();
  const session = await openSqlSession({
    url: database.url,
    applicationName: "test",
    log: silentLog,
  });
  opened.push({ database, session });
  const identity = { chainId: 6940n, genesisHash: hash("block 0") };
  await session.transaction((tx) => openTables(tx, LIVE_SCHEMA, identity));
  return session;
}

async function holdersOf(session: SqlSession): Promise<number> {
  const [row] = await session.query<{ holders: string }>(
    `SELECT holders FROM ${LIVE_SCHEMA}.token`,
  );
  return Number(row?.holders ?? 0);
}

let session: SqlSession;

beforeAll(async () => {
  session = await openIndex();
});

afterAll(async () => {
  for (const one of opened) {
    await one.session.close();
    await one.database.drop();
  }
});

it("counts each account once, block by block and all blocks at once", async () => {
  let tip: Tip = { height: -1, hash: undefined };
  const counts: number[] = [];
  for (const block of blocks) {
    ({ tip } = await writeBatch({ session, schema: LIVE_SCHEMA }, tip, [block]));
    counts.push(await holdersOf(session));
  }
  expect(counts).toEqual(HISTORY.map(([, holders]) => holders));
  for (let end = 2; end <= blocks.length; end++) {
    const other = await openIndex();
    await writeBatch(
      { session: other, schema: LIVE_SCHEMA },
      { height: -1, hash: undefined },
      blocks.slice(0, end),
    );
    expect({ end, holders: await holdersOf(other) }).toEqual({ end, holders: counts[end - 1] });
  }
});

it("counts an account once whose balance is corrected, too", async () => {
  const other = await openIndex();
  const target = { session: other, schema: LIVE_SCHEMA } as const;
  const { tip } = await writeBatch(target, { height: -1, hash: undefined }, blocks.slice(0, 3));
  await openIndexes(other, LIVE_SCHEMA);
  /** What the contract says that Alice has beside her nine of id 5. */
  const say = async (units: bigint): Promise<number> => {
    await other.query(`UPDATE ${LIVE_SCHEMA}.balance SET checked_at = NULL`);
    const node = {
      getBalances: () => Promise.resolve([]),
      tokenBalances: (queries: readonly { readonly tokenId?: bigint }[]) =>
        Promise.resolve(queries.map(({ tokenId }) => (tokenId === undefined ? units : 9n))),
    };
    const { signal } = new AbortController();
    await checkBalances(target, tip, node, {
      signal,
      limit: 100,
      clock: systemClock,
      from: undefined,
    });
    return holdersOf(other);
  };
  expect([await say(0n), await say(6n)]).toEqual([1, 1]);
});

it("has each balance at the height of the newest row of its history", async () => {
  for (const { session: one } of opened) {
    const [found] = await one.query<{ balances: string; astray: string }>(
      `SELECT count(*) AS balances,
         count(*) FILTER (WHERE b.updated_at IS DISTINCT FROM (
           SELECT max(h.height) FROM ${LIVE_SCHEMA}.balance_history h
           WHERE (h.address, h.asset, h.token_id) = (b.address, b.asset, b.token_id))) AS astray
       FROM ${LIVE_SCHEMA}.balance b`,
    );
    expect(Number(found?.balances)).toBeGreaterThan(0);
    expect(found?.astray).toBe("0");
  }
});
