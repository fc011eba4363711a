/** A pair's history, which begins where it is first named, in batches of any size. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { AbiCoder, id, zeroPadValue } from "ethers";
import { type Address, parseAddress } from "../../../chain/address.js";
import { type Hash32, type Hex, parseHash32 } from "../../../chain/hex.js";
import { type Tip, writeBatch } from "../../../indexer/ingest/batch-write.js";
import { openIndexes, openTables } from "../../../indexer/store/progress.js";
import { LIVE_SCHEMA } from "../../../indexer/store/schema.js";
import type { RangedBlock } from "../../../rpc-client/indexing/ranged-block.js";
import type { JournaledLog } from "../../../rpc-client/journal-codec.js";
import { openSqlSession, type SqlSession } from "../../../runtime/sql/sql-session.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";

const address = (byte: string): Address => parseAddress(`0x${byte.repeat(20)}`);
const PAIR = address("a1");
const TRADER = address("77");
const coder = AbiCoder.defaultAbiCoder();
const hash = (text: string): Hash32 => parseHash32(id(text));
const word = (account: Address): Hash32 => parseHash32(zeroPadValue(account, 32));

function log(contract: Address, signature: string, topics: Address[], data: unknown[]) {
  const types = data.map((one) => (typeof one === "string" ? "address" : "uint256"));
  const bytes = coder.encode(types, data) as Hex;
  return { address: contract, topics: [hash(signature), ...topics.map(word)], data: bytes };
}

/** Whoever logs it, and with which tokens. */
const named = (factory: Address, token0: Address, token1: Address) =>
  log(factory, "PairCreated(address,address,address,uint256)", [token0, token1], [PAIR, 1n]);
const swap = (paid: bigint, got: bigint) =>
  log(
    PAIR,
    "Swap(address,uint256,uint256,uint256,uint256,address)",
    [TRADER, TRADER],
    [paid, 0n, 0n, got],
  );
const sync = (one: bigint) => log(PAIR, "Sync(uint112,uint112)", [], [one, one]);
const mint = (one: bigint) => log(PAIR, "Mint(address,uint256,uint256)", [TRADER], [one, one]);

const [REAL, FAKE, TOKEN0, TOKEN1] = [address("fa"), address("fe"), address("b1"), address("b2")];

/** Logs of each block. */
const LOGS: readonly JournaledLog[][] = [
  [],
  // Of a contract that nobody has called a pair yet.
  [swap(1n, 9n), sync(1n), mint(1n)],
  [swap(1n, 8n), named(REAL, TOKEN0, TOKEN1), sync(5n), mint(5n), swap(1n, 3n)],
  [swap(1n, 2n)],
  [named(FAKE, TOKEN1, TOKEN0)],
  [swap(1n, 4n), sync(7n)],
];

function blockAt(height: number, logs: readonly JournaledLog[] = LOGS[height] ?? []): RangedBlock {
  const transaction = {
    hash: hash(`transaction ${height}`),
    index: 0,
    status: 1 as const,
    from: TRADER,
    to: TRADER,
    contractAddress: undefined,
    gasUsed: 0n,
    gasPriceAtoken: 0n,
    nonce: BigInt(height),
    input: "0x" as Hex,
    inputSizeBytes: 0,
    changes: [],
    logs,
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
    proposer: TRADER,
    gasUsed: 0n,
    gasLimit: 0n,
    sizeBytes: 1,
  };
}

const TABLES = ["pair", "swap", "liquidity", "candle"];
const opened: { readonly database: TestDatabase; readonly session: SqlSession }[] = [];

async function openIndex(): Promise<SqlSession> {
  const database = await createTestDatabase();
  const options = { url: database.url, applicationName: "test", log: silentLog };
  const session = await openSqlSession(options);
  opened.push({ database, session });
  const identity = { chainId: 6940n, genesisHash: hash("block 0") };
  await session.transaction((tx) => openTables(tx, LIVE_SCHEMA, identity));
  return session;
}

/** What an index has that was written in batches of so many blocks. */
async function indexedBy(size: number): Promise<Record<string, unknown[]>> {
  const session = await openIndex();
  const blocks = LOGS.map((_logs, height) => blockAt(height));
  let tip: Tip = { height: -1, hash: undefined };
  for (let at = 0; at < blocks.length; at += size) {
    const some = blocks.slice(at, at + size);
    ({ tip } = await writeBatch({ session, schema: LIVE_SCHEMA }, tip, some));
  }
  await openIndexes(session, LIVE_SCHEMA);
  const tables: Record<string, unknown[]> = {};
  for (const table of TABLES) {
    const rows = await session.query<{ row: unknown }>(
      `SELECT row_to_json(t) AS row FROM ${LIVE_SCHEMA}.${table} t ORDER BY t`,
    );
    tables[table] = rows.map(({ row }) => row);
  }
  return tables;
}

let whole: Record<string, unknown[]>;

beforeAll(async () => {
  whole = await indexedBy(LOGS.length);
});

afterAll(async () => {
  for (const { database, session } of opened) {
    await session.close();
    await database.drop();
  }
});

it("begins with the log that names it first, and no later one moves it", () => {
  expect(whole["pair"]).toMatchObject([
    { height: 2, log_index: 1, swaps: 3, volume0: 3, volume1: 9, reserve0: 7 },
  ]);
  expect(whole["swap"]).toHaveLength(3);
  expect(whole["liquidity"]).toMatchObject([{ height: 2, amount0: 5 }]);
});

it("is the same whatever the batches", async () => {
  for (const size of [1, 2, 3]) {
    expect({ size, ...(await indexedBy(size)) }).toEqual({ size, ...whole });
  }
});

it("is not asked again for what it was asked already, however often that is logged", async () => {
  const session = await openIndex();
  let tip: Tip = { height: -1, hash: undefined };
  /** Whether the pair is to be asked, once another block has such a log of it. */
  const isAskedAfter = async (naming: JournaledLog): Promise<boolean> => {
    const block = blockAt(tip.height + 1, [naming]);
    ({ tip } = await writeBatch({ session, schema: LIVE_SCHEMA }, tip, [block]));
    const [row] = await session.query<{ is_confirmed: boolean | null }>(
      `SELECT is_confirmed FROM ${LIVE_SCHEMA}.pair`,
    );
    // It is asked, and is none.
    await session.query(
      `UPDATE ${LIVE_SCHEMA}.pair SET is_confirmed = FALSE WHERE is_confirmed IS NULL`,
    );
    return row?.is_confirmed === null;
  };
  expect(await isAskedAfter(named(FAKE, TOKEN1, TOKEN0))).toBe(true);
  for (let again = 0; again < 3; again++) {
    expect(await isAskedAfter(named(FAKE, TOKEN1, TOKEN0))).toBe(false);
  }
  // By its factory, once there is a pair.
  expect(await isAskedAfter(named(REAL, TOKEN1, TOKEN0))).toBe(true);
  expect(await isAskedAfter(named(REAL, TOKEN0, TOKEN1))).toBe(true);
  await session.query(`UPDATE ${LIVE_SCHEMA}.pair SET is_confirmed = TRUE`);
  expect(await isAskedAfter(named(FAKE, TOKEN1, TOKEN0))).toBe(false);
});
