/** An index that lost its files for a moment: it goes on by itself, whichever step failed. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, jest } from "@jest/globals";
import { toQuantity } from "../../../../chain/hex.js";
import { LevelStoreError } from "../../../../runtime/files/level-store.js";
import { IndexStore } from "../../../../sidecar/index/index-store.js";
import { INDEX_FORMAT_VERSION, indexKey } from "../../../../sidecar/index/key-spaces.js";
import { TokenRegistry } from "../../../../sidecar/rosetta/token-registry.js";
import { until } from "../../../helpers/until.js";
import {
  change,
  hashOf,
  journals,
  POOL,
  startFakeChain,
} from "../../../helpers/chains/journal-chain.js";
import { REGISTRY } from "../../../helpers/chains/known-tokens.js";
import { onlineServer } from "../servers.js";

/** What of level writes. */
interface LevelBatches {
  batch(): { write(): Promise<void> };
}

const closers: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  jest.restoreAllMocks();
  for (const close of closers.splice(0).toReversed()) await close();
});

const writeFails = () => new LevelStoreError("WRITE_FAILED", "no space left on device");

function nextBlock(blocks: Record<string, unknown>[]): void {
  const height = blocks.length;
  blocks.push({
    blockHash: hashOf(`block ${height}`),
    blockNumber: toQuantity(height),
    parentHash: blocks[height - 1]?.["blockHash"],
    timestampMs: 1_790_000_000_000 + height,
    transactions: [],
    blockChanges: [change({ reason: "MINT", to: POOL, amount: 5n })],
    minted: "0x5",
    burned: "0x0",
  });
}

async function startChain() {
  const folder = mkdtempSync(join(tmpdir(), "causeway-index-"));
  closers.push(() => rmSync(folder, { recursive: true, force: true }));
  const blocks = journals();
  // Every registered contract has done something, so that another registry begins anew.
  const heights = ([, , to]: readonly unknown[]) =>
    Number(to) < 1 ? { heights: [], next: null } : { heights: [1], next: null };
  const node = await startFakeChain({ causeway_getAccountHeights: heights }, blocks);
  closers.push(() => node.close());
  return { folder, blocks, url: node.url };
}

describe("an index that cannot be opened again after a failed write", () => {
  it("goes on as soon as it can be opened", async () => {
    const { folder, blocks, url } = await startChain();
    const online = onlineServer(url, { folder, registry: new TokenRegistry([]) });
    closers.push(() => online.rpc.close());
    await online.indexed(2);
    const { store } = online.index;
    const current = join(folder, "sidecar", "CURRENT");
    const content = readFileSync(current);
    writeFileSync(current, "torn");
    jest.spyOn(store, "commit").mockRejectedValueOnce(writeFails());
    nextBlock(blocks);
    await until(() => !store.isOpen(), { timeoutMs: 10_000 });
    writeFileSync(current, content);
    await online.indexed(3);
    expect(online.index.follower.fault()).toBeUndefined();
    expect(online.index.follower.halted()).toBeUndefined();
  });
});

describe("an index that could not be written", () => {
  it("is not written to before it was opened anew: level loses what follows half a record", async () => {
    const folder = mkdtempSync(join(tmpdir(), "causeway-index-"));
    closers.push(() => rmSync(folder, { recursive: true, force: true }));
    const store = new IndexStore(join(folder, "sidecar"));
    await store.open();
    closers.push(() => store.close());
    const level: LevelBatches = Reflect.get(Reflect.get(store, "level"), "level");
    const batch = level.batch.bind(level);
    let written = 0;
    jest.spyOn(level, "batch").mockImplementation(() => {
      return Object.assign(batch(), {
        write: () => {
          written += 1;
          return Promise.reject(new Error("IO error: No space left on device"));
        },
      });
    });
    const write = { key: indexKey("meta", Buffer.from("registry")), value: Buffer.from("[]") };
    for (let tries = 0; tries < 3; tries += 1) {
      await expect(store.commit([write])).rejects.toMatchObject({ code: "WRITE_FAILED" });
    }
    expect(written).toBe(1);
    await store.recover();
    await store.commit([write]);
    expect(store.meta("registry")).toBe("[]");
  });
});

describe("an index with a torn file", () => {
  it("is refused with the remedy, and leaves the folder to whoever deletes it", async () => {
    const { folder, url } = await startChain();
    const online = onlineServer(url, { folder });
    await online.indexed(2);
    await online.rpc.close();
    const place = join(folder, "sidecar");
    const store = new IndexStore(place);
    // What was written to the log is in a table once it was opened again.
    await store.open();
    await store.close();
    const table = readdirSync(place).find((name) => name.endsWith(".ldb")) ?? "";
    truncateSync(join(place, table), 100);
    const refused = { code: "INDEX_CORRUPT", message: expect.stringContaining("delete it") };
    await expect(store.open()).rejects.toMatchObject(refused);
    rmSync(place, { recursive: true });
    await store.open();
    expect(store.tip()).toBeUndefined();
    await store.close();
  });
});

it("is its owner's alone where the process lets everybody write", async () => {
  const home = mkdtempSync(join(tmpdir(), "open-home-"));
  closers.push(() => rmSync(home, { recursive: true }));
  const mask = process.umask(0);
  closers.push(() => void process.umask(mask));
  const store = new IndexStore(join(home, "data", "sidecar"));
  await store.open();
  await store.startOver();
  await store.close();
  const modes = ["data", join("data", "sidecar")].map((name) => statSync(join(home, name)).mode);
  expect(modes.map((mode) => mode & 0o077)).toEqual([0, 0]);
});

describe("an index that is to begin anew and cannot", () => {
  it("begins anew as soon as it can", async () => {
    const { folder, url } = await startChain();
    const before = onlineServer(url, { folder, registry: new TokenRegistry([]) });
    await before.indexed(2);
    await before.rpc.close();
    const online = onlineServer(url, { folder, registry: REGISTRY });
    closers.push(() => online.rpc.close());
    const { store, follower } = online.index;
    // First the new index' format cannot be written, then its registry.
    jest
      .spyOn(store, "commit")
      .mockRejectedValueOnce(writeFails())
      .mockRejectedValueOnce(writeFails());
    await until(() => follower.fault() !== undefined, { timeoutMs: 10_000 });
    await online.indexed(2);
    await until(() => follower.fault() === undefined, { timeoutMs: 10_000 });
    expect(store.meta("formatVersion")).toBe(String(INDEX_FORMAT_VERSION));
    expect(store.meta("registry")).toContain("GOLD");
  });

  it("does so although an earlier one was not thrown away to its end", async () => {
    const { folder } = await startChain();
    const store = new IndexStore(join(folder, "sidecar"));
    await store.open();
    closers.push(() => store.close());
    mkdirSync(join(folder, "sidecar.discarded"));
    writeFileSync(join(folder, "sidecar.discarded", "000005.ldb"), "left over");
    await store.startOver();
    expect(store.meta("formatVersion")).toBe(String(INDEX_FORMAT_VERSION));
    expect(existsSync(join(folder, "sidecar.discarded"))).toBe(false);
  });
});
