/** A chain of blocks that are nearly empty, of which one answer has as many as it may have blocks at all. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { id } from "ethers";
import { Client } from "pg";
import { parseAddress } from "../../../chain/address.js";
import type { BalanceChange } from "../../../chain/balance-change.js";
import { type Hash32, type Height, type Hex, parseHash32 } from "../../../chain/hex.js";
import {
  type FollowerOptions,
  type IndexedNode,
  IndexFollower,
} from "../../../indexer/ingest/follower.js";
import { LIVE_SCHEMA } from "../../../indexer/store/schema.js";
import type { RangedBlock } from "../../../rpc-client/indexing/ranged-block.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { createGate } from "../../helpers/gate.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { PATIENCE_MS, until } from "../../helpers/until.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";

const HEAD = 4_321;

/** Blocks of one answer of a node (`node/rpc/evm/json/block-range.ts`). */
const ANSWER_BLOCKS = 2_000;

const proposer = parseAddress(`0x${"77".repeat(20)}`);
const hashAt = (height: Height): Hash32 => parseHash32(id(`block ${height}`));
const { signal } = new AbortController();

function blockAt(height: Height): RangedBlock {
  return {
    hash: hashAt(height),
    height,
    parentHash: hashAt(height - 1),
    timestampMs: Date.UTC(2026, 0, 5) + height * 1_000,
    transactions: [],
    blockChanges: [],
    mintedAtoken: 0n,
    burnedAtoken: 0n,
    claims: [],
    proposer,
    gasUsed: 0n,
    gasLimit: 0n,
    sizeBytes: 1,
  };
}

/** In each block somebody logs that he made a pair, of other tokens than before. */
function blockNaming(height: Height): RangedBlock {
  const [pair, token] = [word("a1".repeat(20)), word("b1".repeat(20))];
  const named = {
    address: proposer,
    topics: [
      parseHash32(id("PairCreated(address,address,address,uint256)")),
      word(height.toString(16)),
      token,
    ],
    data: `${pair}${word("1").slice(2)}` as Hex,
  };
  const transaction = {
    hash: parseHash32(id(`transaction ${height}`)),
    sdkHash: parseHash32(id(`sdk ${height}`)),
    index: 0,
    status: 1 as const,
    from: proposer,
    to: proposer,
    contractAddress: undefined,
    gasUsed: 0n,
    gasPriceAtoken: 0n,
    gasLimit: 0n,
    nonce: BigInt(height),
    type: 0,
    input: "0x" as Hex,
    inputSizeBytes: 0,
    valueAtoken: 0n,
    changes: [],
    logs: [named],
  };
  return { ...blockAt(height), transactions: [transaction] };
}

const word = (digits: string): Hash32 => parseHash32(`0x${digits.padStart(64, "0")}`);

/** Heights that were asked for, and for whose state. */
const asked: Height[] = [];
const states: string[] = [];

/** A node whose blocks are so small that no bound of bytes is ever reached. */
const node: IndexedNode = {
  async blockRange({ from, to }) {
    asked.push(from);
    const last = Math.min(to, HEAD, from + ANSWER_BLOCKS - 1);
    const blocks = Array.from({ length: Math.max(0, last - from + 1) }, (_, index) =>
      blockAt(from + index),
    );
    const next = last + 1 <= Math.min(to, HEAD) ? last + 1 : undefined;
    return { blocks, next, head: { height: HEAD, hash: hashAt(HEAD) } };
  },
  async getBlockHeader(at) {
    const height = typeof at === "number" ? at : HEAD;
    const header = { height, hash: hashAt(height), parentHash: hashAt(height - 1) };
    return { ...header, timestampSeconds: 0 };
  },
  async getBalances(queries) {
    for (const { at } of queries) states.push(String(at));
    return queries.map(() => 0n);
  },
  async tokenBalances(queries) {
    return queries.map(() => undefined);
  },
  async contractViews(views) {
    return views.map(() => undefined);
  },
};

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(async () => {
  await database.drop();
});

async function dropTables(): Promise<void> {
  const client = new Client({ connectionString: database.url });
  await client.connect();
  try {
    await client.query(`DROP SCHEMA IF EXISTS ${LIVE_SCHEMA} CASCADE`);
  } finally {
    await client.end();
  }
}

/** Makes an index of a node's blocks for the chain of a block 0. */
const followerOptions = (
  genesisHash: Hash32,
  source = node,
  metrics = createMetrics({ processMetrics: false }),
  verifyPerRound = 500,
): FollowerOptions => ({
  databaseUrl: database.url,
  schema: LIVE_SCHEMA,
  node: source,
  identity: { chainId: 6940n, genesisHash },
  log: silentLog,
  metrics,
  pollIntervalMs: 60_000,
  batchBytes: 8 * 1024 * 1024,
  verifyPerRound,
  clock: systemClock,
  untilHead: true,
});

const followerFor = (...options: Parameters<typeof followerOptions>) =>
  new IndexFollower(followerOptions(...options));

it("is indexed up to its head before anything is done that belongs there", async () => {
  const follower = followerFor(hashAt(0));
  await follower.run(signal);
  expect(follower.status()).toMatchObject({ indexedHeight: HEAD, nodeHeight: HEAD });
  // And once behind it, where nothing is new.
  expect(asked).toEqual([0, 2_000, 4_000, HEAD + 1]);
});

it("begins no index that was made for another chain: the node behind the address is another one by now", async () => {
  const client = new Client({ connectionString: database.url });
  await client.connect();
  try {
    await client.query(`DROP SCHEMA ${LIVE_SCHEMA} CASCADE`);
    await expect(followerFor(hashAt(1)).run(signal)).rejects.toMatchObject({
      code: "FOREIGN_INDEX",
    });
    const { rows } = await client.query(`SELECT count(*)::integer AS n FROM ${LIVE_SCHEMA}.block`);
    expect(rows).toEqual([{ n: 0 }]);
  } finally {
    await client.end();
  }
});

it("tells how far the node is while an answer takes long, by the heads that it announces", async () => {
  await dropTables();
  const [asking, answer] = [createGate(), createGate()];
  const follower = followerFor(hashAt(0), {
    ...node,
    async blockRange(range, options) {
      if (range.from > HEAD) {
        asking.open();
        await answer.opened;
      }
      return node.blockRange(range, options);
    },
  });
  const running = follower.run(signal);
  try {
    await Promise.race([asking.opened, running]);
    expect(follower.status()).toMatchObject({ indexedHeight: HEAD, nodeHeight: HEAD });
    follower.wake(HEAD + 30);
    expect(follower.status()).toMatchObject({ indexedHeight: HEAD, nodeHeight: HEAD + 30 });
    // One that was announced before and comes later.
    follower.wake(HEAD + 29);
    expect(follower.status().nodeHeight).toBe(HEAD + 30);
  } finally {
    answer.open();
    await running;
  }
  expect(follower.status().nodeHeight).toBe(HEAD);
});

it("one that waits for its turn to write tells how far the other one is", async () => {
  const [asking, answer] = [createGate(), createGate()];
  const writer = followerFor(hashAt(0), {
    ...node,
    async blockRange(range, options) {
      asking.open();
      await answer.opened;
      return node.blockRange(range, options);
    },
  });
  const metrics = createMetrics({ processMetrics: false });
  const waiter = followerFor(hashAt(0), node, metrics);
  const ending = new AbortController();
  const writing = writer.run(signal);
  await Promise.race([asking.opened, writing]);
  const waiting = waiter.run(ending.signal);
  try {
    await until(() => waiter.status().state === "waiting", { timeoutMs: PATIENCE_MS });
    waiter.wake(HEAD + 3);
    expect(waiter.status()).toMatchObject({ indexedHeight: HEAD, nodeHeight: HEAD + 3 });
    expect(await metrics.page()).toContain("causeway_indexer_lag_blocks 3\n");
  } finally {
    ending.abort();
    answer.open();
    await Promise.all([writing, waiting]);
  }
});

it("ends though more balances change all the while than are looked at", async () => {
  await dropTables();
  const minted = (height: Height, index: number): BalanceChange => ({
    reason: "MINT",
    from: undefined,
    to: parseAddress(`0x${(2 * height + index + 1_000).toString(16).padStart(40, "0")}`),
    amountAtoken: 1n,
    effective: true,
    tracePath: undefined,
  });
  let head = 5;
  const growing: IndexedNode = {
    ...node,
    async blockRange({ from }) {
      if (from > head) head += 1;
      if (head > 60) throw new Error("it does not end");
      const blocks = Array.from({ length: head - from + 1 }, (_, index) => ({
        ...blockAt(from + index),
        blockChanges: [0, 1].map((one) => minted(from + index, one)),
        mintedAtoken: 2n,
      }));
      return { blocks, next: undefined, head: { height: head, hash: hashAt(head) } };
    },
    async getBalances(queries) {
      return queries.map(() => 1n);
    },
  };
  const metrics = createMetrics({ processMetrics: false });
  const follower = followerFor(hashAt(0), growing, metrics, 1);
  await follower.run(signal);
  const first = head;
  expect(follower.status().indexedHeight).toBeGreaterThanOrEqual(first - 1);
  // Once more, for what came meanwhile: nothing of it is waited for.
  await follower.run(signal);
  expect(head).toBeLessThanOrEqual(first + 4);
});

it("ends though a pair is logged as another one each time it is asked, and asks it anew in new tables", async () => {
  await dropTables();
  let head = 5;
  let times = 0;
  const naming: IndexedNode = {
    ...node,
    async blockRange({ from }) {
      const blocks = Array.from({ length: head - from + 1 }, (_, index) =>
        blockNaming(from + index),
      );
      return { blocks, next: undefined, head: { height: head, hash: hashAt(head) } };
    },
    async contractViews(views) {
      times += 1;
      head += 1;
      if (times > 20) throw new Error("it does not end");
      return views.map(() => undefined);
    },
  };
  const follower = followerFor(hashAt(0), naming);
  await follower.run(signal);
  expect(times).toBe(1);
  await dropTables();
  await follower.run(signal);
  expect(times).toBe(2);
});

const THOUSAND_TRANSACTIONS = `DO $$ BEGIN
  FOR one IN 1..1000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP;
END $$`;

/** Transactions of the server since the oldest of the writer's own tables was made. */
async function stagedAge(client: Client): Promise<number> {
  const { rows } = await client.query(
    `SELECT max(greatest(age(c.relfrozenxid), age(t.relfrozenxid))) AS age
     FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid
     WHERE c.relpersistence = 't' AND c.relname LIKE 'stage\\_%'`,
  );
  return rows[0]?.age;
}

it("leaves the server free to forget transactions, however long the writer's session lives", async () => {
  await dropTables();
  const client = new Client({ connectionString: database.url });
  await client.connect();
  const ending = new AbortController();
  const options = { ...followerOptions(hashAt(0)), pollIntervalMs: 20, untilHead: false };
  const follower = new IndexFollower({ ...options, maxStagedAge: 100 });
  const running = follower.run(ending.signal);
  try {
    await until(() => follower.status().state === "following", { timeoutMs: PATIENCE_MS });
    expect(await stagedAge(client)).toEqual(expect.any(Number));
    await client.query(THOUSAND_TRANSACTIONS);
    const isYoung = async () => (await stagedAge(client)) < 1_000;
    await until(isYoung, { timeoutMs: 30_000, what: "tables that are young again" });
  } finally {
    ending.abort();
    await running;
    await client.end();
  }
});

/** The files of the writer's own tables, of each table's two. */
async function stagedFiles(client: Client): Promise<readonly string[]> {
  const { rows } = await client.query(
    `SELECT unnest(ARRAY[c.relfilenode, t.relfilenode])::text AS file
     FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid
     WHERE c.relpersistence = 't' AND c.relname LIKE 'stage\\_%'`,
  );
  return rows.map(({ file }) => file);
}

it("does so on the way to the head, too, which may take longer than that", async () => {
  await dropTables();
  const client = new Client({ connectionString: database.url });
  await client.connect();
  const head = 12;
  // Not their age: what is made now is as old as the oldest transaction of anybody on the server.
  let before: readonly string[] = [];
  let behind: readonly string[] = [];
  const far: IndexedNode = {
    ...node,
    async blockRange({ from }) {
      if (from === 4) {
        before = await stagedFiles(client);
        await client.query(THOUSAND_TRANSACTIONS);
      }
      if (from === head - 1) behind = await stagedFiles(client);
      const blocks = from <= head ? [blockAt(from)] : [];
      const next = from < head ? from + 1 : undefined;
      return { blocks, next, head: { height: head, hash: hashAt(head) } };
    },
  };
  try {
    const options = followerOptions(hashAt(0), far);
    await new IndexFollower({ ...options, maxStagedAge: 100 }).run(signal);
    // The tables stood before the transactions; the writer may make them anew while those still run.
    expect(before.length).toBeGreaterThan(0);
    expect(behind).toHaveLength(before.length);
    expect(behind.filter((file) => before.includes(file))).toEqual([]);
  } finally {
    await client.end();
  }
});
