/** The index over a scripted node: linked, kept, rebuilt, bounded, waited for. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { heightBytes } from "../../../../chain/encoding/height-bytes.js";
import { createEvmClient } from "../../../../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../../../../rpc-client/json-rpc.js";
import { IndexedBlocks } from "../../../../sidecar/index/indexed-blocks.js";
import { indexKey } from "../../../../sidecar/index/key-spaces.js";
import { ALICE, CONTRACT, hashOf, journals } from "../../../helpers/chains/journal-chain.js";
import { RpcFault } from "../../../helpers/chains/fake-node.js";
import { GOLD, REGISTRY } from "../../../helpers/chains/known-tokens.js";
import { call } from "../servers.js";
import {
  newFolder,
  startNode,
  start,
  extend,
  journalReads,
  block,
  replyOf,
  ready,
  closeAll,
} from "./index-bench.js";

afterEach(closeAll);

/** Two indexes of 44 blocks: one has all replies, the other one the newest alone. */
async function withDroppedReplies() {
  const blocks = journals();
  extend(blocks, 40);
  const node = await startNode({}, blocks);
  const all = start(node);
  const few = start(node, { storedBlocksBytes: 5_000, cacheBytes: 1 });
  await Promise.all([all.indexed(42), few.indexed(42)]);
  extend(blocks, 1);
  await Promise.all([all.indexed(43), few.indexed(43)]);
  return { node, all, few };
}

describe("the index", () => {
  it("is there again after a restart, without asking the node for a block", async () => {
    const folder = newFolder();
    const blocks = journals();
    extend(blocks, 300);
    const node = await startNode({}, blocks);
    const first = start(node, { folder });
    await first.indexed(302);
    const before = await replyOf(first, 100);
    await first.rpc.close();
    node.calls.length = 0;
    const second = start(node, { folder });
    await second.indexed(302);
    expect(await replyOf(second, 100)).toBe(before);
    expect(journalReads(node)).toBe(0);
    extend(blocks, 1);
    await second.indexed(303);
    expect(journalReads(node)).toBe(1);
  });

  it("serves what it has while the node is away", async () => {
    const folder = newFolder();
    const node = await startNode();
    const first = start(node, { folder });
    await first.indexed(2);
    await first.rpc.close();
    await node.close();
    const second = start(node, { folder });
    expect((await block(second, 2)).status).toBe(200);
    expect((await block(second, 3)).body.code).toBe(101);
  });

  it("drops the oldest replies beyond its bound and makes them again, byte for byte", async () => {
    const { node, all, few } = await withDroppedReplies();
    const { oldest, bytes } = few.index.store.storedBlocks();
    expect(oldest).toBeGreaterThan(30);
    expect(bytes).toBeLessThanOrEqual(5_000);
    expect(few.index.store.record(oldest - 1)).toBeUndefined();
    node.calls.length = 0;
    for (const index of [0, 1, 2, 3, oldest, 43]) {
      expect(await replyOf(few, index)).toBe(await replyOf(all, index));
    }
    expect(journalReads(node)).toBe(4);
  });

  it("makes four dropped replies again at a time, however many are asked for", async () => {
    const { node, few } = await withDroppedReplies();
    const rpc = createJsonRpcClient({ url: node.url });
    const client = createEvmClient(rpc);
    let [running, most] = [0, 0];
    const blocks = new IndexedBlocks({
      store: few.index.store,
      ledger: { quarantineOf: () => undefined, isUnaccompanied: () => false },
      registry: REGISTRY,
      client: {
        ...client,
        async blockJournal(hash, options) {
          running += 1;
          most = Math.max(most, running);
          const journal = await client.blockJournal(hash, options);
          running -= 1;
          return journal;
        },
      },
      cacheBytes: 1,
      signal: new AbortController().signal,
    });
    const heights = Array.from({ length: 30 }, (_, height) => height);
    const made = await Promise.all(heights.map((height) => blocks.block(height)));
    rpc.close();
    expect(made.map(({ identifier }) => identifier.index)).toEqual(heights);
    expect(most).toBe(4);
  });

  it("tells the same accounts of a block, kept or made again of its reply", async () => {
    const { all, few } = await withDroppedReplies();
    const { oldest } = few.index.store.storedBlocks();
    expect(few.index.store.accountsRecord(oldest - 1)).toBeUndefined();
    expect(few.index.store.accountsRecord(oldest)).toBeDefined();
    // An index of before keeps replies without accounts.
    await all.index.store.commit([
      { key: indexKey("blockAccounts", heightBytes(2)), value: undefined },
    ]);
    for (const index of [0, 1, 2, 3, oldest, 43]) {
      const { block: told } = JSON.parse(await replyOf(all, index));
      const expected = told.transactions.map(
        ({ operations }: { operations: { account: { address: string } }[] }) => [
          ...new Set(operations.map(({ account }) => account.address.toLowerCase())),
        ],
      );
      for (const { index: chain } of [all, few]) {
        const record = JSON.parse((await chain.blocks.accountsOf(index)).toString("utf8"));
        const { block_identifier, parent_block_identifier, timestamp } = told;
        expect(record).toMatchObject({ block_identifier, parent_block_identifier, timestamp });
        expect(namedBy(record)).toEqual(expected);
      }
    }
    await expect(all.index.blocks.accountsOf(44)).rejects.toMatchObject({
      code: "BLOCK_ABOVE_TIP",
    });
  });

  it("keeps in memory what is read twice, whatever somebody reads once beside it", async () => {
    const blocks = journals();
    extend(blocks, 60);
    const node = await startNode({}, blocks);
    const folder = newFolder();
    const first = start(node, { folder });
    await first.indexed(62);
    await first.rpc.close();
    // Memory for some ten of these blocks, and none in it after the restart.
    const sizeBytes = (await replyOf(first, 5)).length + 600;
    const second = start(node, { folder, cacheBytes: 10 * sizeBytes });
    await second.indexed(62);
    const hitsOf = async (heights: readonly number[]) => {
      const before = second.index.blocks.statistics().hits;
      for (const height of heights) await replyOf(second, height);
      return second.index.blocks.statistics().hits - before;
    };
    const often = [5, 6, 7];
    expect(await hitsOf(often)).toBe(0);
    expect(await hitsOf(often)).toBe(0);
    expect(await hitsOf(often)).toBe(3);
    const others = Array.from({ length: 50 }, (_, index) => 10 + index);
    expect(await hitsOf(others)).toBe(0);
    expect(await hitsOf(often)).toBe(3);
    // All of them once more: each was read too long ago.
    expect(await hitsOf(others)).toBe(0);
    expect(await hitsOf(often)).toBe(3);
  });
});

describe("a reply that was dropped and cannot be made again", () => {
  it.each([
    ["the node has deleted the block", 204, false],
    ["the node has not come so far", 103, true],
    ["the node has another block there", 106, false],
  ])("says that %s", async (reason, code, retriable) => {
    const blocks = journals();
    extend(blocks, 40);
    const node = await startNode({}, blocks);
    const online = start(node, { storedBlocksBytes: 5_000, cacheBytes: 1 });
    await online.indexed(42);
    // The batch that wrote them all kept them all; the next one drops.
    extend(blocks, 1);
    await online.indexed(43);
    expect(online.index.store.record(1)).toBeUndefined();
    const header = node.methods.get("eth_getBlockByNumber");
    // A node forgets the hashes of blocks that it deletes: it knows nothing by them.
    node.methods.set("causeway_getBlockJournal", () => null);
    node.methods.set("eth_getBlockByNumber", (params) => {
      if (Number(params[0]) !== 1) return header?.(params);
      if (code === 204) throw new RpcFault(4444, "pruned history unavailable");
      const other = { ...Object(header?.(params)), hash: hashOf("another") };
      return code === 106 ? other : null;
    });
    const { body } = await block(online, 1);
    expect([reason, body.code, body.retriable]).toEqual([reason, code, retriable]);
  });
});

/** Accounts of each transaction, by the layout that integrators are told. */
function namedBy(record: { accounts: string; transactions: string }): string[][] {
  const accounts = Buffer.from(record.accounts, "base64").toString("hex");
  const numbers = Buffer.from(record.transactions, "base64");
  const named: string[][] = [];
  let at = 0;
  const next = () => numbers.readUInt32BE((at += 4) - 4);
  while (at < numbers.length) {
    const places = Array.from({ length: next() }, next);
    named.push(places.map((place) => `0x${accounts.slice(40 * place, 40 * (place + 1))}`));
  }
  return named;
}

it("tells how far it has judged a token that it believes", async () => {
  const online = start(await startNode());
  await online.indexed(2);
  const parameters = { contract_address: GOLD.metadata.contractAddress };
  const { text } = await call(online.server, "/call", { method: "token_status", parameters });
  expect(JSON.parse(text).result).toMatchObject({ quarantined: false, judged_to_index: 2 });
});

describe("requests near the tip", () => {
  it("wait for a block that the node has and the index not yet", async () => {
    const blocks = journals();
    const node = await startNode({}, blocks);
    const online = start(node);
    await online.indexed(2);
    for (let height = 3; height < 8; height++) {
      extend(blocks, 1);
      const byTip = await call(online.server, "/block", { block_identifier: {} });
      expect(byTip.body.block.block_identifier.index).toBe(height);
      extend(blocks, 1);
      blocks.splice(-1);
    }
    extend(blocks, 1);
    expect((await block(online, 8)).status).toBe(200);
    extend(blocks, 1);
    const hash = hashOf("block 9");
    const byHash = await call(online.server, "/block", { block_identifier: { hash } });
    expect(byHash.body.block.block_identifier).toEqual({ index: 9, hash });
    extend(blocks, 1);
    const { body } = await call(online.server, "/account/balance", {
      account_identifier: { address: ALICE },
    });
    expect(body.block_identifier.index).toBe(10);
  });

  it("are told that the index is behind where it is far, and the status shows how far", async () => {
    const blocks = journals();
    extend(blocks, 1_000);
    let isSlow = true;
    const node = await startNode({}, blocks);
    const answer = node.methods.get("causeway_getBlockJournal");
    node.methods.set("causeway_getBlockJournal", (params) => {
      const journal = answer?.(params);
      const isLate = isSlow && Number((journal as { blockNumber: string }).blockNumber) > 100;
      return isLate ? null : journal;
    });
    const online = start(node);
    await online.indexed(64);
    const tip = await call(online.server, "/block", { block_identifier: {} });
    expect([tip.body.code, tip.body.retriable]).toEqual([109, true]);
    expect((await call(online.server, "/network/status")).body).toMatchObject({
      sync_status: { target_index: 1_002, stage: "indexing", synced: false },
      oldest_block_identifier: { index: 0 },
    });
    expect((await ready(online)).ready).toBe(false);
    expect((await block(online, 20)).status).toBe(200);
    isSlow = false;
    await online.indexed(1_002);
    expect(await ready(online)).toEqual({ ready: true });
    expect((await call(online.server, "/network/status")).body).toMatchObject({
      sync_status: { current_index: 1_002, stage: "following", synced: true },
    });
  });
});

describe("balances", () => {
  it("of many requests are read in few, and a height that was read never again", async () => {
    const node = await startNode();
    const online = start(node);
    await online.indexed(2);
    node.calls.length = 0;
    const addresses = Array.from({ length: 40 }, (_unused, nth) => testAddress(nth));
    const ask = () =>
      Promise.all(
        addresses.map((address) =>
          call(online.server, "/account/balance", {
            account_identifier: { address },
            block_identifier: { index: 1 },
          }),
        ),
      );
    const first = await ask();
    expect(new Set(first.map(({ status }) => status))).toEqual(new Set([200]));
    const reads = () => node.calls.filter(({ method }) => method === "eth_getBalance").length;
    expect(reads()).toBe(40);
    expect((await ask()).map(({ text }) => text)).toEqual(first.map(({ text }) => text));
    expect(reads()).toBe(40);
  });

  it("that the node refuses for now are asked again", async () => {
    const node = await startNode();
    const online = start(node);
    await online.indexed(2);
    const balance = node.methods.get("eth_getBalance");
    const ask = () =>
      call(online.server, "/account/balance", { account_identifier: { address: CONTRACT } });
    node.methods.delete("eth_getBalance");
    expect((await ask()).status).toBe(500);
    if (balance !== undefined) node.methods.set("eth_getBalance", balance);
    expect((await ask()).status).toBe(200);
  });
});

function testAddress(nth: number): string {
  return `0x${(nth + 0x1000).toString(16).padStart(40, "0")}`;
}
