/** What an index finds when it is opened: another format, a damaged record, another list of tokens. */
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { heightBytes } from "../../../../chain/encoding/height-bytes.js";
import { IndexStore } from "../../../../sidecar/index/index-store.js";
import { INDEX_FORMAT_VERSION, indexKey } from "../../../../sidecar/index/key-spaces.js";
import { TokenRegistry } from "../../../../sidecar/rosetta/token-registry.js";
import { RpcFault } from "../../../helpers/chains/fake-node.js";
import { GOLD, SILVER, tokenEntry } from "../../../helpers/chains/known-tokens.js";
import { putRaw, rawRecords, withFlippedBit } from "../../../helpers/raw-level.js";
import { until } from "../../../helpers/until.js";
import { call } from "../servers.js";
import {
  newFolder,
  startNode,
  start,
  journalReads,
  block,
  replyOf,
  ready,
  closeAll,
} from "./index-bench.js";

afterEach(closeAll);

it("is there until its server has ended: a process that stops answers what it was asked", async () => {
  const online = start(await startNode());
  await online.indexed(2);
  await online.stopping();
  expect((await block(online, 2)).body.block.block_identifier.index).toBe(2);
  // What needs the node may be asked again, of the process that comes.
  const { body } = await block(online, 3);
  expect(body).toMatchObject({ code: 109, retriable: true, details: { reason: "stopping" } });
});

describe("the format", () => {
  async function withFormat(version: number): Promise<string> {
    const folder = newFolder();
    const online = start(await startNode(), { folder });
    await online.indexed(2);
    await online.rpc.close();
    const store = new IndexStore(join(folder, "sidecar"));
    await store.open();
    const key = indexKey("meta", Buffer.from("formatVersion"));
    await store.commit([{ key, value: Buffer.from(String(version)) }]);
    await store.close();
    return join(folder, "sidecar");
  }

  it("of a newer program is refused with the remedy", async () => {
    const folder = await withFormat(99);
    await expect(new IndexStore(folder).open()).rejects.toMatchObject({
      code: "INDEX_NEWER",
      message: expect.stringContaining(`${folder} has format 99`),
    });
  });

  it("of an older program waits for a node of which another index can be made", async () => {
    const place = await withFormat(0);
    const hasTip = async () =>
      (await rawRecords(place)).some(({ key }) => key.equals(indexKey("tip")));
    const folder = dirname(place);
    const node = await startNode();
    await node.close();
    const away = start(node, { folder });
    await until(() => away.index.follower.fault() !== undefined, { timeoutMs: 10_000 });
    expect((await block(away, 1)).status).toBe(500);
    await away.rpc.close();
    expect(await hasTip()).toBe(true);

    const pruned = await startNode({
      eth_capabilities: () => ({ state: { oldestBlock: "0x2" }, blocks: { oldestBlock: "0x2" } }),
    });
    const behindPruned = start(pruned, { folder });
    await until(() => behindPruned.index.follower.halted() !== undefined, { timeoutMs: 10_000 });
    expect(behindPruned.index.follower.halted()).toMatch(/format 0 .*start the older program/);
    expect((await block(behindPruned, 1)).body.code).toBe(106);
    await behindPruned.rpc.close();
    expect(await hasTip()).toBe(true);

    const whole = start(await startNode(), { folder });
    await whole.indexed(2);
    expect(journalReads(node)).toBe(0);
    expect(whole.index.store.meta("formatVersion")).toBe(String(INDEX_FORMAT_VERSION));
    expect(whole.index.follower.halted()).toBeUndefined();
  });

  it("lets only one process in", async () => {
    const folder = join(newFolder(), "sidecar");
    const store = new IndexStore(folder);
    await store.open();
    await expect(new IndexStore(folder).open()).rejects.toMatchObject({ code: "INDEX_LOCKED" });
    await store.close();
  });
});

describe("a damaged record", () => {
  it("halts the index, named with folder, key space and remedy, and is not served", async () => {
    const folder = newFolder();
    const node = await startNode();
    const first = start(node, { folder });
    await first.indexed(2);
    await first.rpc.close();
    const store = join(folder, "sidecar");
    const key = indexKey("block", heightBytes(2));
    const record = (await rawRecords(store)).find((one) => one.key.equals(key));
    await putRaw(store, key, withFlippedBit(record?.stored ?? Buffer.of(), 1_000));
    const second = start(node, { folder });
    await second.indexed(2);
    expect((await block(second, 2)).status).toBe(500);
    second.index.follower.wake();
    await until(async () => !(await ready(second)).ready, { timeoutMs: 30_000 });
    const { reason } = await ready(second);
    expect(reason).toContain(folder);
    expect(reason).toMatch(/a record of block, key 0x0+2: .*delete it and it is built anew/);
  });
});

describe("another token registry", () => {
  /** Indexes with one registry, then opens with another; how many blocks were read again. */
  async function readAgain(
    before: (typeof GOLD)[],
    after: (typeof GOLD)[],
    active: string[] = [],
  ): Promise<number> {
    const folder = newFolder();
    const node = await startNode();
    const first = start(node, { folder, registry: new TokenRegistry(before.map(tokenEntry)) });
    await first.indexed(2);
    await first.rpc.close();
    node.methods.set("causeway_getAccountHeights", ([address]) => ({
      heights: active.includes(String(address)) ? [1] : [],
      next: null,
    }));
    node.calls.length = 0;
    const second = start(node, { folder, registry: new TokenRegistry(after.map(tokenEntry)) });
    const { follower } = second.index;
    const isServing = () =>
      follower.whenServing().then(
        () => true,
        () => false,
      );
    await until(isServing, { timeoutMs: 10_000 });
    await second.indexed(2);
    return journalReads(node);
  }

  const gold = GOLD.metadata.contractAddress.toLowerCase();
  const silver = SILVER.metadata.contractAddress.toLowerCase();

  it.each([
    ["the same in another order", [GOLD, SILVER], [SILVER, GOLD], [gold, silver], 0],
    ["a new token that did nothing yet", [GOLD], [GOLD, SILVER], [gold], 0],
    ["a new token that did something", [GOLD], [GOLD, SILVER], [silver], 3],
    ["one that is gone and did something", [GOLD, SILVER], [GOLD], [silver], 3],
    ["one that is gone and did nothing", [GOLD, SILVER], [GOLD], [gold], 0],
    ["another name of an active token", [GOLD], [{ ...GOLD, symbol: "AU" }], [gold], 3],
    ["other decimals of an active token", [GOLD], [{ ...GOLD, decimals: 7 }], [gold], 3],
  ])("%s", async (_name, before, after, active, expected) => {
    expect(await readAgain(before, after, active)).toBe(expected);
  });
});

describe("another token registry behind a node that prunes", () => {
  const gold = new TokenRegistry([tokenEntry(GOLD)]);
  const both = new TokenRegistry([GOLD, SILVER].map(tokenEntry));
  const active = ({ heights }: { heights: number[] }) => ({ heights, next: null });

  it.each([
    [
      "that has deleted the blocks",
      () => active({ heights: [1] }),
      { state: { oldestBlock: "0x0" }, blocks: { oldestBlock: "0x2" } },
    ],
    [
      "that has deleted what tells whether it did anything",
      () => {
        throw new RpcFault(4444, "pruned history unavailable");
      },
      { state: { oldestBlock: "0x2" }, blocks: { oldestBlock: "0x2" } },
    ],
  ])("throws nothing away for a node %s, and says so", async (_name, heights, capabilities) => {
    const folder = newFolder();
    const node = await startNode();
    const first = start(node, { folder, registry: gold });
    await first.indexed(2);
    const known = await replyOf(first, 1);
    await first.rpc.close();
    node.methods.set("causeway_getAccountHeights", heights);
    node.methods.set("eth_capabilities", () => capabilities);
    node.methods.set("causeway_getBlockJournal", () => {
      throw new RpcFault(4444, "pruned history unavailable");
    });
    const second = start(node, { folder, registry: both });
    await until(() => second.index.follower.halted() !== undefined, { timeoutMs: 10_000 });
    const told = second.index.follower.halted();
    expect(told).toContain(SILVER.metadata.contractAddress);
    expect(told).not.toContain(GOLD.metadata.contractAddress);
    expect(told).toContain("put the former list back");
    expect((await block(second, 1)).body.code).toBe(106);
    // Nor does the other list's index say that it believes a token.
    const parameters = { contract_address: SILVER.metadata.contractAddress };
    const standing = await call(second.server, "/call", { method: "token_status", parameters });
    expect(standing.body.code).toBe(106);
    await second.rpc.close();
    // With the former list it goes on, with all that it had.
    const third = start(node, { folder, registry: gold });
    await third.indexed(2);
    expect(await replyOf(third, 1)).toBe(known);
    await until(() => third.index.follower.nodeHead() === 2, { timeoutMs: 10_000 });
    expect(third.index.follower.halted()).toBeUndefined();
  });
});
