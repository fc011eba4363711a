/**
 * Batches that are made while another is written: one block to a range, with a node that fails in the
 * middle of them and one that goes on with another chain, against all blocks in one range. And what
 * a node of another chain is asked behind them.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Interface, Wallet } from "ethers";
import type { Height } from "../../../chain/hex.js";
import { type IndexedNode, IndexFollower } from "../../../indexer/ingest/follower.js";
import { batchOf } from "../../../indexer/ingest/batch-rows.js";
import { writeBatch } from "../../../indexer/ingest/batch-write.js";
import { openTables } from "../../../indexer/store/progress.js";
import { type IndexSchema, LIVE_SCHEMA, REBUILD_SCHEMA } from "../../../indexer/store/schema.js";
import { createEvmClient, type EvmClient } from "../../../rpc-client/evm-client.js";
import { RpcError } from "../../../rpc-client/errors.js";
import { createJsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { openSqlSession } from "../../../runtime/sql/sql-session.js";
import { testGenesis } from "../../helpers/chains/execution-chain.js";
import { ServedChain } from "../../helpers/chains/served-chain.js";
import { compileFixture, compileSolidity } from "../../helpers/contracts/solidity.js";
import { call, IndexerStage } from "../../helpers/indexer/indexer.js";

const SOURCE = `// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;
contract Coin {
  mapping(address => uint256) public balanceOf;
  event Transfer(address indexed from, address indexed to, uint256 value);
  constructor() { balanceOf[msg.sender] = 1e18; emit Transfer(address(0), msg.sender, 1e18); }
  function transfer(address to, uint256 v) external returns (bool) { balanceOf[msg.sender] -= v; balanceOf[to] += v; emit Transfer(msg.sender, to, v); return true; }
}`;

const compiled = compileSolidity({ "C.sol": SOURCE })["Coin"];
const abi = new Interface(compiled?.abi as never);
const bob = new Wallet(`0x${"22".repeat(32)}`);
const { signal } = new AbortController();
const log = createLogger({ component: "test", level: "silent" });

/** One block of more than it is one range each. */
const ONE_BLOCK_BYTES = 1;
const ALL_BYTES = 2 ** 24;

let stage: IndexerStage;
let node: EvmClient;

beforeAll(async () => {
  stage = await IndexerStage.open();
  node = createEvmClient(createJsonRpcClient({ url: stage.chain.url, timeoutMs: 240_000 }));
  const coin = await stage.deploy(compiled?.bytecode ?? "0x");
  for (let turn = 1n; turn <= 20n; turn++) {
    const payment = { to: bob.address, value: turn };
    await stage.mine(call(coin, abi, "transfer", bob.address, turn), payment, payment);
  }
  await strikeWrapped();
  await follow(LIVE_SCHEMA, node, ALL_BYTES);
});

/** What a block says of a wrapped coin decides how logs of the next ones are read. */
async function strikeWrapped(): Promise<void> {
  const { Wrapper, Ambiguous } = compileFixture("WrappedCoins.sol");
  const token = await stage.deploy(Wrapper?.bytecode ?? "0x");
  const ambiguous = await stage.deploy(Ambiguous?.bytecode ?? "0x");
  const calls = new Interface(["function prepare(address) payable", "function strike(address)"]);
  await stage.mine({ ...call(ambiguous, calls, "prepare", token), value: 9n });
  for (let turn = 0; turn < 3; turn++) {
    await stage.mine(call(ambiguous, calls, "strike", token));
  }
}

afterAll(async () => {
  await stage.close();
});

/** Follows up to the head. */
async function follow(schema: IndexSchema, source: IndexedNode, batchBytes: number): Promise<void> {
  const identity = {
    chainId: await node.chainId({ signal }),
    genesisHash: await node.genesisHash({ signal }),
  };
  const follower = new IndexFollower({
    databaseUrl: stage.databaseUrl,
    schema,
    node: source,
    identity,
    log,
    metrics: createMetrics({ processMetrics: false }),
    pollIntervalMs: 50,
    batchBytes,
    verifyPerRound: 500,
    clock: systemClock,
    untilHead: true,
  });
  await follower.run(signal);
}

/** The node, with what is done to each range by its first height. */
function changed(change: (from: Height, range: ReturnType<EvmClient["blockRange"]>) => unknown) {
  return {
    ...node,
    blockRange: async (...asked: Parameters<EvmClient["blockRange"]>) => {
      const range = node.blockRange(...asked);
      await change(asked[0].from, range);
      return range;
    },
  };
}

/** Every table of one schema as one text, without the order of rows. */
async function contents(schema: IndexSchema): Promise<string> {
  const { rows } = await stage.sql.query(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = $1 ORDER BY tablename",
    [schema],
  );
  const texts: string[] = [];
  for (const { name } of rows) {
    const found = await stage.sql.query(
      `SELECT count(*)::text || coalesce(md5(string_agg(t::text, '|' ORDER BY t::text)), '') AS h
       FROM ${schema}.${name} t`,
    );
    texts.push(`${name} ${found.rows[0].h}`);
  }
  return texts.join("\n");
}

async function dropRebuild(): Promise<void> {
  await stage.sql.query(`DROP SCHEMA IF EXISTS ${REBUILD_SCHEMA} CASCADE`);
}

describe("a node that has deleted what the index needs", () => {
  it("is asked for with every setting of pruning that is enough: no archive of proofs", async () => {
    await dropRebuild();
    const pruned = changed(() => {
      throw new RpcError("pruned history unavailable", { rpcCode: 4444, method: "blockRange" });
    });
    await expect(follow(REBUILD_SCHEMA, pruned, ALL_BYTES)).rejects.toMatchObject({
      code: "NODE_UNFIT",
      message: expect.stringContaining(
        'a node that keeps all blocks and states (app.toml: pruning = "default" or "nothing", ' +
          "min-retain-blocks = 0)",
      ),
    });
  });
});

describe("ranges that are read ahead", () => {
  it("come to the same as one range, also with a node that fails again and again", async () => {
    await dropRebuild();
    const left = new Set([1, 2, 3, 7, 8, 12, stage.height]);
    const failing = changed((from) => {
      if (left.delete(from)) throw new Error(`nothing at ${from}`);
    });
    let faults = 0;
    while (left.size > 0) {
      await follow(REBUILD_SCHEMA, failing, ONE_BLOCK_BYTES).catch(() => {
        faults += 1;
      });
    }
    await follow(REBUILD_SCHEMA, failing, ONE_BLOCK_BYTES);
    expect(faults).toBeGreaterThan(1);
    expect(await contents(REBUILD_SCHEMA)).toBe(await contents(LIVE_SCHEMA));
  });

  it("end before a block that does not follow, whatever was made of those behind it", async () => {
    await dropRebuild();
    const other = `0x${"ab".repeat(32)}`;
    const lying = changed(async (from, range) => {
      const [block] = (await range).blocks;
      if (from === 9 && block !== undefined) Object.assign(block, { parentHash: other });
    });
    await expect(follow(REBUILD_SCHEMA, lying, ONE_BLOCK_BYTES)).rejects.toMatchObject({
      code: "CONTRADICTED",
      details: { height: 9 },
    });
    const { rows } = await stage.sql.query(
      `SELECT max(b.height) AS top, count(*)::integer AS n, max(p.height) AS progress
       FROM ${REBUILD_SCHEMA}.block b CROSS JOIN ${REBUILD_SCHEMA}.progress p`,
    );
    expect(rows).toEqual([{ top: 8, n: 9, progress: 8 }]);
    // The right node makes it whole.
    await follow(REBUILD_SCHEMA, node, ONE_BLOCK_BYTES);
    expect(await contents(REBUILD_SCHEMA)).toBe(await contents(LIVE_SCHEMA));
  });

  it("are made anew where the sums before them are others than was thought", async () => {
    await dropRebuild();
    const options = { url: stage.databaseUrl, applicationName: "test", log };
    const session = await openSqlSession(options);
    try {
      const identity = {
        chainId: await node.chainId({ signal }),
        genesisHash: await node.genesisHash({ signal }),
      };
      await session.transaction((tx) => openTables(tx, REBUILD_SCHEMA, identity));
      const asked = { from: 0, to: stage.height, maxBytes: ALL_BYTES };
      const { blocks } = await node.blockRange(asked, { signal });
      const before = { mintedAtoken: 5n, burnedAtoken: 7n };
      const prepared = { before, batch: batchOf(blocks, before) };
      const target = { session, schema: REBUILD_SCHEMA } as const;
      await writeBatch(target, { height: -1, hash: undefined }, blocks, prepared);
    } finally {
      await session.close();
    }
    await follow(REBUILD_SCHEMA, node, ALL_BYTES);
    expect(await contents(REBUILD_SCHEMA)).toBe(await contents(LIVE_SCHEMA));
  });
});

describe("a node that is another one behind the same address now", () => {
  it("tells nothing of contracts and balances, and no wrong word of the right one is left", async () => {
    await dropRebuild();
    const other = await ServedChain.open(testGenesis(bob.address));
    try {
      for (let height = 1; height <= stage.height; height++) await other.mine([]);
      const elsewhere = createEvmClient(
        createJsonRpcClient({ url: other.url, timeoutMs: 240_000 }),
      );
      const moved: IndexedNode = {
        ...elsewhere,
        blockRange: (range, options) => node.blockRange(range, options),
        getBlockHeader: (at, options) => node.getBlockHeader(at, options),
      };
      await expect(follow(REBUILD_SCHEMA, moved, ALL_BYTES)).rejects.toThrow("header not found");
    } finally {
      await other.close();
    }
    await follow(REBUILD_SCHEMA, node, ALL_BYTES);
    expect(await contents(REBUILD_SCHEMA)).toBe(await contents(LIVE_SCHEMA));
  });
});
