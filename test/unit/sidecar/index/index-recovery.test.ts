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
import { parseAddress } from "../../../../chain/address.js";
import { toQuantity } from "../../../../chain/hex.js";
import { LevelStoreError } from "../../../../runtime/files/level-store.js";
import { IndexStore } from "../../../../sidecar/index/index-store.js";
import { INDEX_FORMAT_VERSION, indexKey } from "../../../../sidecar/index/key-spaces.js";
import { TokenRegistry } from "../../../../sidecar/rosetta/token-registry.js";
import { until } from "../../../helpers/until.js";
import {
  BOB,
  change,
  hashOf,
  journals,
  POOL,
  startFakeChain,
  transaction,
} from "../../../helpers/chains/journal-chain.js";
import { GOLD, REGISTRY } from "../../../helpers/chains/known-tokens.js";
import { onlineServer } from "../servers.js";

/** What of level reads and writes. */
interface LevelBatches {
  batch(): { write(): Promise<void> };
  getSync(key: Buffer): Buffer | undefined;
}

const closers: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  jest.restoreAllMocks();
  for (const close of closers.splice(0).toReversed()) await close();
});

const writeFails = () => new LevelStoreError("WRITE_FAILED", "no space left on device");

function nextBlock(blocks: Record<string, unknown>[], transactions: unknown[] = []): void {
  const height = blocks.length;
  blocks.push({
    blockHash: hashOf(`block ${height}`),
    blockNumber: toQuantity(height),
    parentHash: blocks[height - 1]?.["blockHash"],
    timestampMs: 1_790_000_000_000 + height,
    transactions,
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
  const heights = ([, from, to]: readonly unknown[]) => ({
    heights: [1].filter((height) => Number(from) <= height && height <= Number(to)),
    next: null,
  });
  const word = (units: number) => `0x${units.toString(16).padStart(64, "0")}`;
  const methods = {
    causeway_getAccountHeights: heights,
    // Each block from the third on gives BOB seven units of a token.
    eth_call: ([message, at]: readonly unknown[]) => {
      const { blockHash } = at as { blockHash: string };
      const { to, data } = message as { to: string; data: string };
      const height = blocks.findIndex((block) => block["blockHash"] === blockHash);
      const isGold = to.toLowerCase() === gold && data.endsWith(BOB.slice(2));
      return word(isGold ? 7 * Math.max(height - 2, 0) : 0);
    },
  };
  const node = await startFakeChain(methods, blocks);
  closers.push(() => node.close());
  return { folder, blocks, url: node.url };
}

const gold = parseAddress(GOLD.metadata.contractAddress.toLowerCase());
const mintedToBob = (height: number) =>
  transaction(`mint ${height}`, 0, {
    to: gold,
    logs: [
      {
        address: gold,
        topics: [
          hashOf("Transfer(address,address,uint256)"),
          `0x${"00".repeat(32)}`,
          `0x${BOB.slice(2).padStart(64, "0")}`,
        ],
        data: `0x${"7".padStart(64, "0")}`,
      },
    ],
  });

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

describe("an index that cannot be read for a moment", () => {
  it("counts what it had read of a block once, and is called neither damaged nor to be deleted", async () => {
    const { folder, blocks, url } = await startChain();
    const online = onlineServer(url, { folder });
    closers.push(() => online.rpc.close());
    await online.indexed(2);
    const { store, follower } = online.index;
    const level: LevelBatches = Reflect.get(Reflect.get(store, "level"), "level");
    const read = level.getSync.bind(level);
    const [space] = indexKey("postingHead");
    let refused = 0;
    jest.spyOn(level, "getSync").mockImplementation((key, ...rest: []) => {
      if (refused > 0 || key[0] !== space) return read(key, ...rest);
      refused += 1;
      throw new Error("IO error: /srv/000007.ldb: Too many open files");
    });
    const faults = new Set<string>();
    nextBlock(blocks, [mintedToBob(3)]);
    await until(
      () => {
        const fault = follower.fault();
        if (fault !== undefined) faults.add(fault);
        return fault !== undefined;
      },
      { timeoutMs: 10_000 },
    );
    expect(follower.halted()).toBeUndefined();
    nextBlock(blocks, [mintedToBob(4)]);
    await online.indexed(4);
    expect([...(await store.quarantines())]).toEqual([]);
    expect(store.holder(gold, parseAddress(BOB))).toEqual({ height: 4, units: 14n });
    expect([...faults]).toEqual([expect.stringContaining("Too many open files")]);
    expect([...faults].join()).not.toMatch(/damaged|delete/);
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
