/**
 * Candles and the volume of a day against what a loop over all swaps makes of them: days of swaps in
 * batches of any size, with flash loans and amounts that no honest pair logs.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { AbiCoder, id, zeroPadValue } from "ethers";
import { type Address, parseAddress } from "../../../chain/address.js";
import { type Hash32, type Hex, parseHash32 } from "../../../chain/hex.js";
import { dexRoutes } from "../../../indexer/api/dex-routes.js";
import type { ApiContext } from "../../../indexer/api/reads.js";
import { type Tip, writeBatch } from "../../../indexer/ingest/batch-write.js";
import { openIndexes, openTables } from "../../../indexer/store/progress.js";
import { LIVE_SCHEMA } from "../../../indexer/store/schema.js";
import type { RangedBlock } from "../../../rpc-client/indexing/ranged-block.js";
import type { JournaledLog } from "../../../rpc-client/journal-codec.js";
import { createLogger } from "../../../runtime/process/logger.js";
import type { Sql } from "../../../runtime/sql/sql.js";
import { openSqlSession, type SqlSession } from "../../../runtime/sql/sql-session.js";
import { contextWithoutNode } from "../../helpers/indexer/read-context.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";

const address = (byte: string): Address => parseAddress(`0x${byte.repeat(20)}`);
const PAIRS = [address("a1"), address("a2")] as const;
const [TOKEN0, TOKEN1, FACTORY, TRADER] = ["b1", "b2", "fa", "77"].map(address);
const HEIGHTS = 2_500;
const MAX = 2n ** 256n - 1n;
const START_MS = Date.UTC(2026, 0, 4, 22, 59, 7, 500);
const WIDTHS = { "1m": 60, "5m": 300, "15m": 900, "1h": 3_600, "4h": 14_400, "1d": 86_400 };

/** A swap as the test made it. */
interface Made {
  readonly pair: Address;
  readonly height: number;
  readonly timeMs: number;
  /** In of token0 and token1, out of both. */
  readonly amounts: readonly [bigint, bigint, bigint, bigint];
}

const made: Made[] = [];
/** Time of each block. */
const times: number[] = [];
let seed = 20_260_104;
let database: TestDatabase;
let session: SqlSession;
let context: ApiContext;
/** Tables that were read by plans of the last requests. */
const read = new Set<string>();

function random(below: number): number {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((seed / 2 ** 32) * below);
}

const hash = (height: number): Hash32 => parseHash32(id(`block ${height}`));
const word = (account: Address | undefined): Hash32 =>
  parseHash32(zeroPadValue(account ?? "0x", 32));
const coder = AbiCoder.defaultAbiCoder();

function log(contract: Address, signature: string, topics: Hash32[], data: string): JournaledLog {
  return {
    address: contract,
    topics: [parseHash32(id(signature)), ...topics],
    data: data as Hex,
  };
}

function amountsAt(turn: number): Made["amounts"] {
  const some = () => BigInt(1 + random(1_000_000)) * 10n ** BigInt(random(13));
  switch (turn) {
    case 0:
      return [some() + 3n, 0n, 1n, 0n];
    case 1:
      return [MAX, 0n, 0n, MAX];
    case 2:
      return [some(), some(), 0n, 10n ** 30n];
    case 3:
      return [10n ** 30n, 0n, 0n, 1n + BigInt(random(99))];
    default:
      return turn % 2 === 0 ? [some(), 0n, 0n, some()] : [0n, some(), some(), 0n];
  }
}

function blockAt(height: number): RangedBlock {
  const timeMs = height === 0 ? START_MS : (times[height - 1] ?? 0) + 500 + random(240_000);
  times.push(timeMs);
  const logs: JournaledLog[] = [];
  if (height === 1) {
    for (const pair of PAIRS) {
      const data = coder.encode(["address", "uint256"], [pair, 1]);
      const topics = [word(TOKEN0), word(TOKEN1)];
      const signature = "PairCreated(address,address,address,uint256)";
      logs.push(log(FACTORY as Address, signature, topics, data));
    }
  }
  for (let left = height > 1 ? random(4) : 0; left > 0; left--) {
    const pair = PAIRS[random(3) === 0 ? 1 : 0];
    const amounts = amountsAt(random(60));
    made.push({ pair, height, timeMs, amounts });
    const data = coder.encode(["uint256", "uint256", "uint256", "uint256"], [...amounts]);
    const signature = "Swap(address,uint256,uint256,uint256,uint256,address)";
    logs.push(log(pair, signature, [word(TRADER), word(TRADER)], data));
  }
  const transaction = {
    hash: parseHash32(id(`transaction ${height}`)),
    index: 0,
    status: 1 as const,
    from: TRADER as Address,
    to: TRADER as Address,
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
    sdkHash: parseHash32(id(`sdk ${height}`)),
  };
  return {
    hash: hash(height),
    height,
    parentHash: hash(height - 1),
    timestampMs: timeMs,
    transactions: [transaction],
    blockChanges: [],
    mintedAtoken: 0n,
    burnedAtoken: 0n,
    claims: [],
    proposer: TRADER as Address,
    gasUsed: 0n,
    gasLimit: 0n,
    sizeBytes: 1,
  };
}

beforeAll(async () => {
  database = await createTestDatabase();
  const quiet = createLogger({ component: "test", level: "silent" });
  session = await openSqlSession({ url: database.url, applicationName: "test", log: quiet });
  const identity = { chainId: 6940n, genesisHash: hash(0) };
  await session.transaction((tx) => openTables(tx, LIVE_SCHEMA, identity));
  let tip: Tip = { height: -1, hash: undefined };
  while (tip.height < HEIGHTS) {
    const count = Math.min(1 + random(60), HEIGHTS - tip.height);
    const blocks = Array.from({ length: count }, (_, index) => blockAt(tip.height + 1 + index));
    ({ tip } = await writeBatch({ session, schema: LIVE_SCHEMA }, tip, blocks));
  }
  await openIndexes(session, LIVE_SCHEMA);
  const sql: Sql = {
    async query<Row>(text: string, parameters: readonly unknown[] = []): Promise<Row[]> {
      const plan = await session.query(`EXPLAIN (FORMAT JSON) ${text}`, parameters);
      for (const [, name] of JSON.stringify(plan).matchAll(/"Relation Name":"(\w+)"/g)) {
        read.add(name ?? "");
      }
      return session.query(text, parameters);
    },
  };
  context = contextWithoutNode(sql, HEIGHTS);
});

afterAll(async () => {
  await session.close();
  await database.drop();
});

type Json = ReturnType<typeof JSON.parse>;

async function ask(path: string, pair: Address, query: Record<string, unknown>): Promise<Json> {
  const route = dexRoutes(context).find((one) => one.path === path);
  if (route === undefined) throw new Error(`no route ${path}`);
  const { signal } = new AbortController();
  const request = { method: "GET", path, params: { pair }, query, headers: {}, body: undefined };
  const reply = await route.handler({ ...request, rawBody: new Uint8Array(), signal });
  return "body" in reply ? reply.body : undefined;
}

async function candles(pair: Address, query: Record<string, unknown>): Promise<Json[]> {
  const items: Json[] = [];
  let cursor: string | undefined;
  do {
    const more = cursor === undefined ? query : { cursor };
    const page = await ask("/v1/dex/pairs/{pair}/candles", pair, { ...more, limit: 9 });
    items.push(...page.items);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
  return items;
}

/** Token1 for one token0 in base units, 36 places, cut off; undefined for what has no price. */
function priceOf([in0, in1, out0, out1]: Made["amounts"]): bigint | undefined {
  const [got, paid] = [out1 - in1, in0 - out0];
  return got * paid > 0n ? (got * 10n ** 36n) / paid : undefined;
}

function priceText(price: bigint | undefined): string {
  const digits = String(price ?? 0n).padStart(37, "0");
  return `${digits.slice(0, -36)}.${digits.slice(-36)}`.replace(/\.?0+$/, "");
}

/** By hand, newest first. */
function expected(pair: Address, seconds: number): Json[] {
  const bins = new Map<number, Made[]>();
  for (const one of made.filter((swap) => swap.pair === pair)) {
    const start = one.timeMs - (one.timeMs % (seconds * 1_000));
    bins.set(start, [...(bins.get(start) ?? []), one]);
  }
  return [...bins]
    .flatMap(([start, swaps]) => {
      const prices = swaps.flatMap(({ amounts }) => priceOf(amounts) ?? []);
      if (prices.length === 0) return [];
      const sorted = prices.toSorted((a, b) => (a < b ? -1 : 1));
      return {
        time: new Date(start).toISOString(),
        open: priceText(prices[0]),
        high: priceText(sorted.at(-1)),
        low: priceText(sorted[0]),
        close: priceText(prices.at(-1)),
        ...volumes(swaps),
        swaps: swaps.length,
      };
    })
    .toReversed();
}

function volumes(swaps: readonly Made[]) {
  const sum = (a: 0 | 1, b: 2 | 3) =>
    String(swaps.reduce((all, { amounts }) => all + amounts[a] + amounts[b], 0n));
  return { volume0: sum(0, 2), volume1: sum(1, 3) };
}

describe("candles", () => {
  it("are those of a loop over all swaps, in every interval", async () => {
    for (const pair of PAIRS) {
      for (const [interval, seconds] of Object.entries(WIDTHS)) {
        const wanted = expected(pair, seconds);
        const from = { pair, interval, count: wanted.length };
        expect({ ...from, found: await candles(pair, { interval }) }).toEqual({
          ...from,
          found: wanted,
        });
      }
    }
  });

  it("begin on Mondays where they are of weeks", async () => {
    const weeks = await candles(PAIRS[0], { interval: "1w" });
    expect(weeks.map(({ time }) => time)).toEqual([
      "2026-01-05T00:00:00.000Z",
      "2025-12-29T00:00:00.000Z",
    ]);
  });

  it("are whole wherever the range begins and ends", async () => {
    const hours = expected(PAIRS[0], 3_600);
    for (let turn = 0; turn < 40; turn++) {
      const fromBlock = random(HEIGHTS);
      const toBlock = fromBlock + random(300);
      const hourOf = (height: number) => {
        const timeMs = times[Math.min(height, HEIGHTS)] ?? 0;
        return new Date(timeMs - (timeMs % 3_600_000)).toISOString();
      };
      const [first, last] = [hourOf(fromBlock), hourOf(toBlock)];
      const wanted = hours.filter(({ time }) => time >= first && time <= last);
      const about = { fromBlock, toBlock };
      const found = await candles(PAIRS[0], { interval: "1h", ...about });
      expect({ ...about, found }).toEqual({ ...about, found: wanted });
    }
    const reversed = candles(PAIRS[0], { fromBlock: 9, toBlock: 8 });
    await expect(reversed).rejects.toMatchObject({ code: "INVALID_FIELD" });
    expect(await candles(PAIRS[0], { to: "2020-01-01" })).toEqual([]);
    expect(await candles(PAIRS[0], { from: "2100-01-01" })).toEqual([]);
  });

  it("are read as they are kept: no swap is looked at", async () => {
    read.clear();
    await candles(PAIRS[0], { interval: "1w", fromBlock: 7 });
    expect(read).toContain("candle");
    expect(read).not.toContain("swap");
  });
});

describe("a pair", () => {
  it("has the volume of the last day to the block, and of its life", async () => {
    const sinceMs = (times.at(-1) ?? 0) - 86_400_000;
    for (const pair of PAIRS) {
      const all = made.filter((swap) => swap.pair === pair);
      const day = volumes(all.filter(({ timeMs }) => timeMs > sinceMs));
      const { pair: shown } = await ask("/v1/dex/pairs/{pair}", pair, {});
      expect(shown).toMatchObject({
        ...volumes(all),
        swaps: all.length,
        volume0Day: day.volume0,
        volume1Day: day.volume1,
      });
    }
  });
});
