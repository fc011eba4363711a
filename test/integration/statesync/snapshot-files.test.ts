/** Snapshots on disk: taken at the right moment, kept, pruned, and whole whatever happens. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { keccak256 } from "../../../chain/hashes.js";
import { type Hash32, ZERO_HASH } from "../../../chain/hex.js";
import {
  SNAPSHOT_FAILPOINTS,
  SnapshotFolder,
} from "../../../node/statesync/snapshot/snapshot-folder.js";
import { restoreSnapshot } from "../../../node/statesync/snapshot/snapshot-restore.js";
import { diskRoomOf, RESERVED_BYTES } from "../../../node/statesync/snapshot/snapshot-room.js";
import { SnapshotService } from "../../../node/statesync/snapshot/snapshot-service.js";
import { storeKey } from "../../../node/store/database.js";
import type { Logger } from "../../../runtime/process/logger.js";
import {
  makeHistory,
  quietLog,
  readFiles,
  roomyDisk,
  SnapshotChain,
  temporaryFolder,
  words,
} from "../../helpers/chains/snapshot-chain.js";
import { until } from "../../helpers/until.js";
import { ValidatorNode } from "../../helpers/chains/validator-node.js";

let chain: SnapshotChain;
let made: Awaited<ReturnType<typeof makeHistory>>;
let folder: string;
let genesisHash: Hash32;

beforeAll(async () => {
  chain = await SnapshotChain.open();
  made = await makeHistory(chain);
  genesisHash = chain.hash(0);
});

beforeEach(() => {
  folder = temporaryFolder("snapshots");
});

afterEach(() => {
  fs.rmSync(folder, { recursive: true, force: true });
});

afterAll(() => chain.close());

type Failpoint = (name: (typeof SNAPSHOT_FAILPOINTS)[number]) => void;

const open = (failpoint?: Failpoint, headHeight = chain.node.height, oldestBlock = 0) =>
  SnapshotFolder.open({
    folder,
    genesisHash,
    headHeight,
    oldestBlock,
    log: quietLog,
    disk: roomyDisk,
    ...(failpoint === undefined ? {} : { failpoint }),
  });

const withDisk = (disk: typeof roomyDisk) =>
  SnapshotFolder.open({
    folder,
    genesisHash,
    headHeight: chain.node.height,
    oldestBlock: 0,
    log: quietLog,
    disk,
  });

/** On a disk that has so many bytes free, as the node sees it. */
const withFree = (free: () => number) =>
  withDisk(async () => ({ freeBytes: free(), totalBytes: 1_000 * RESERVED_BYTES }));

function service(
  files: SnapshotFolder,
  intervalBlocks: number,
  keepRecent: number,
  log = quietLog,
) {
  const { stores, bus } = chain.node;
  return new SnapshotService({
    folder: files,
    database: stores.database,
    blocks: stores.blocks,
    bus,
    genesisHash,
    intervalBlocks,
    keepRecent,
    log,
    signal: new AbortController().signal,
  });
}

const WAIT = { timeoutMs: 10_000 };

const heightsOf = (files: SnapshotFolder) => files.list().map(({ height }) => height);

describe("a snapshot", () => {
  it("is the same whatever the store knew before, and however often it is taken", async () => {
    const first = await chain.snapshot();
    const again = await chain.snapshot();
    expect(again.manifestBytes).toEqual(first.manifestBytes);
    const { database } = chain.node.stores;
    const code = Buffer.from("600160015500", "hex");
    const key = storeKey("code", keccak256(code));
    await database.write([{ key, value: code }], { durable: true });
    expect((await chain.snapshot()).manifestBytes).toEqual(first.manifestBytes);
    const counts = { accounts: expect.any(Number), slots: expect.any(Number), codes: 6 };
    // Three contracts and the genesis' predeploys; two contracts share their code.
    expect({ ...first.manifest.counts, codes: 6 }).toEqual(counts);
    await chain.take([{ to: made.keeper, data: words(77, 1) }]);
    const next = await chain.snapshot();
    expect(next.manifest.counts.slots).toBe(first.manifest.counts.slots + 1);
    expect(next.manifestBytes).not.toEqual(first.manifestBytes);
  });

  it("of a restored node is the original's", async () => {
    const { height } = chain.node;
    const files = await chain.snapshot();
    await chain.take();
    await chain.take([{ to: made.keeper, data: words(78, 1) }]);
    const home = temporaryFolder("restored");
    await restoreSnapshot({
      ...chain.restoreBase(path.join(home, "data", "chain")),
      manifest: files.manifest,
      trusted: chain.trusted(height),
      readChunk: async (index) => files.chunks[index] ?? new Uint8Array(0),
    });
    const node = await ValidatorNode.open({ genesis: chain.genesis, seed: undefined, home });
    try {
      for (const at of [height + 1, height + 2]) {
        const decided = chain.node.consensus.load(at);
        if (decided === undefined) throw new Error("no block");
        await node.consensus.apply(decided);
      }
      const mine = await open();
      const view = node.stores.database.snapshot();
      const supply = node.view.supply(node.height);
      if (supply === undefined) throw new Error("no head");
      const { database } = node.stores;
      const input = { database, view, height: node.height, supply, genesisHash };
      await mine.add(input, new AbortController().signal);
      await view.close();
      const original = await chain.snapshot();
      expect((await readFiles(mine)).manifestBytes).toEqual(original.manifestBytes);
    } finally {
      await node.stop();
    }
  });
});

describe("a disk that does not tell its room", () => {
  it("is taken to have room", async () => {
    const { freeBytes, totalBytes } = await diskRoomOf(folder);
    expect(freeBytes).toBeLessThanOrEqual(totalBytes);
    const disk = async () => ({ freeBytes: 0, totalBytes: 0 });
    const headHeight = chain.node.height;
    const files = await SnapshotFolder.open({
      folder,
      genesisHash,
      headHeight,
      oldestBlock: 0,
      log: quietLog,
      disk,
    });
    await chain.addTo(files);
    expect(heightsOf(files)).toEqual([chain.node.height]);
  });
});

describe("a disk that has little room", () => {
  it("gets no snapshot that would leave less than the reserve", async () => {
    let free = RESERVED_BYTES - 1;
    const files = await withFree(() => free);
    await expect(chain.addTo(files)).rejects.toMatchObject({ code: "SNAPSHOT_NO_ROOM" });
    // Enough for the reserve, and not for the state as well.
    free = RESERVED_BYTES + 10;
    await expect(chain.addTo(files)).rejects.toMatchObject({ code: "SNAPSHOT_NO_ROOM" });
    expect(fs.readdirSync(folder)).toEqual([]);
    free = 2 * RESERVED_BYTES;
    await chain.addTo(files);
    expect(heightsOf(files)).toEqual([chain.node.height]);
  });

  it("is not filled by one that is being written", async () => {
    let asked = 0;
    const files = await withFree(() => (asked++ === 0 ? 2 * RESERVED_BYTES : RESERVED_BYTES - 1));
    await expect(chain.addTo(files)).rejects.toMatchObject({ code: "SNAPSHOT_NO_ROOM" });
    expect(fs.readdirSync(folder)).toEqual([]);
  });

  it("is told of once, until there is room again", async () => {
    const said: string[] = [];
    const lines: string[] = [];
    const log = Object.assign(Object.create(quietLog) as Logger, {
      warn: (_fields: unknown, text: string) => void said.push(text),
      info: (_fields: unknown, text: string) => void lines.push(text),
    });
    let [free, asked] = [0, 0];
    const files = await withFree(() => {
      asked++;
      return free;
    });
    const running = service(files, 1, 0, log);
    /** One block more, and others where the last one's snapshot was still under way. */
    const takeOne = () =>
      until(async () => {
        const { length } = lines;
        await chain.take();
        return !lines.slice(length).some((line) => line.startsWith("snapshot left out"));
      }, WAIT);
    try {
      await takeOne();
      await until(() => said.length === 1, WAIT);
      const before = asked;
      await takeOne();
      await until(() => asked > before, WAIT);
      free = 2 * RESERVED_BYTES;
      await takeOne();
      await until(() => lines.includes("snapshot written"), WAIT);
      expect(said).toHaveLength(1);
      free = 0;
      await takeOne();
      await until(() => said.length > 1, WAIT);
    } finally {
      await running.close();
    }
    expect(said).toEqual(["snapshot left out: make room", "snapshot left out: make room"]);
    expect(heightsOf(files)).toHaveLength(1);
  });
});

describe("snapshots that somebody deletes while the node runs", () => {
  const remove = (height: number) => fs.rmSync(path.join(folder, `${height}`), { recursive: true });

  it("are offered no more, and others are written", async () => {
    const files = await open();
    const written = async () => {
      await chain.take();
      await chain.addTo(files);
      return chain.node.height;
    };
    const [first, second] = [await written(), await written()];
    remove(second);
    const third = await written();
    expect(heightsOf(files)).toEqual([third, first]);
    // The last ones, too: its size is the state's again.
    for (const height of [third, first]) remove(height);
    const fourth = await written();
    expect(heightsOf(files)).toEqual([fourth]);
    const fifth = await written();
    remove(fourth);
    await files.keepNewest(1);
    expect(heightsOf(files)).toEqual([fifth]);
    expect(fs.readdirSync(folder)).toEqual([`${fifth}`]);
  });
});

describe("the service", () => {
  it("takes the state of each multiple of the interval, although the chain goes on", async () => {
    const files = await open();
    const running = service(files, 2, 0);
    const expected = new Map<number, Uint8Array>();
    try {
      for (let index = 0; index < 6; index++) {
        await chain.take([{ to: made.keeper, data: words(500 + index, 1) }]);
        const { height } = chain.node;
        if (height % 2 !== 0) continue;
        expected.set(height, (await chain.snapshot()).manifestBytes);
        // At once, without waiting for the files.
        await chain.take([{ to: made.keeper, data: words(600 + index, 1) }]);
        await until(() => heightsOf(files).includes(height), { timeoutMs: 5_000 });
      }
      expect(heightsOf(files)).toEqual([...expected.keys()].toReversed());
      for (const { height, id } of files.list()) {
        expect(await files.manifest(height, id)).toEqual(Buffer.from(expected.get(height) ?? []));
      }
    } finally {
      await running.close();
    }
  });

  it("keeps the newest ones only, and writes none with interval 0", async () => {
    const files = await open();
    const running = service(files, 1, 2);
    const off = service(files, 0, 1);
    try {
      for (let index = 0; index < 5; index++) {
        await chain.take();
        const { height } = chain.node;
        await until(() => heightsOf(files)[0] === height, { timeoutMs: 5_000 });
      }
      await until(() => fs.readdirSync(folder).length === 2, { timeoutMs: 5_000 });
      const { height } = chain.node;
      expect(heightsOf(files)).toEqual([height, height - 1]);
      expect(files.oldestHeight).toBe(height - 1);
      expect(fs.readdirSync(folder).toSorted()).toEqual([`${height - 1}`, `${height}`].toSorted());
    } finally {
      await running.close();
      await off.close();
    }
  });

  const addBlocks = async (files: SnapshotFolder, count: number) => {
    for (let added = 0; added < count; added++) {
      await chain.take();
      await chain.addTo(files);
    }
  };

  it("deletes at its start what the settings do not keep any more", async () => {
    const files = await open();
    await addBlocks(files, 3);
    const { height } = chain.node;
    const cases: [intervalBlocks: number, keepRecent: number, left: number[]][] = [
      [0, 0, [height, height - 1, height - 2]],
      [1_000_000, 2, [height, height - 1]],
      [1_000_000, 1, [height]],
      // None follows these: for ever they would keep all blocks from theirs on.
      [0, 1, []],
    ];
    for (const [intervalBlocks, keepRecent, left] of cases) {
      const running = service(files, intervalBlocks, keepRecent);
      await until(() => fs.readdirSync(folder).length === left.length, WAIT);
      await running.close();
      expect(heightsOf(files)).toEqual(left);
    }
    expect(files.oldestHeight).toBeUndefined();
  });

  it("lets the oldest go at each height that is left out for want of room, the last one late", async () => {
    await addBlocks(await open(), 2);
    const newest = chain.node.height;
    const poor = await withFree(() => 0);
    const running = service(poor, 1, 3);
    try {
      await chain.take();
      await until(() => poor.oldestHeight === newest, WAIT);
      await until(() => fs.readdirSync(folder).join(",") === `${newest}`, WAIT);
      await chain.take();
      await until(() => poor.oldestHeight === undefined, WAIT);
    } finally {
      await running.close();
    }
    expect(fs.readdirSync(folder)).toEqual([]);
  });

  it("keeps its only snapshot where room is missed once", async () => {
    await addBlocks(await open(), 1);
    let asked = 0;
    const poor = await withFree(() => {
      asked++;
      return 0;
    });
    const running = service(poor, 1, 1);
    await chain.take();
    await until(() => asked > 0, WAIT);
    await running.close();
    expect(heightsOf(poor)).toEqual([chain.node.height - 1]);
  });

  it("deletes none for want of room where all are to be kept", async () => {
    await addBlocks(await open(), 2);
    let asked = 0;
    const poor = await withFree(() => {
      asked++;
      return 0;
    });
    const running = service(poor, 1, 0);
    await until(async () => {
      await chain.take();
      return asked > 2;
    }, WAIT);
    await running.close();
    expect(heightsOf(poor)).toHaveLength(2);
  });

  it("lets them go as well where none can be written for another reason, which it says", async () => {
    await addBlocks(await open(), 2);
    const newest = chain.node.height;
    const reasons: string[] = [];
    const log = Object.assign(Object.create(quietLog) as Logger, {
      error: ({ reason }: { readonly reason: string }, text: string) =>
        void reasons.push(`${text}: ${reason}`),
    });
    const faulty = await withDisk(async () => {
      throw Object.assign(new Error("EROFS: read-only file system"), { code: "EROFS" });
    });
    const running = service(faulty, 1, 3, log);
    try {
      await chain.take();
      await until(() => faulty.oldestHeight === newest, WAIT);
      await chain.take();
      await until(() => faulty.oldestHeight === undefined, WAIT);
    } finally {
      await running.close();
    }
    expect(fs.readdirSync(folder)).toEqual([]);
    const reason = expect.stringMatching(/^snapshot not written: .*EROFS/);
    expect(reasons).toEqual([reason, reason]);
  });

  it("keeps what is there when it is closed in the middle of a snapshot", async () => {
    await addBlocks(await open(), 2);
    let hasAsked = false;
    let proceed: () => void = () => undefined;
    const files = await withDisk(async () => {
      hasAsked = true;
      await new Promise<void>((resolve) => (proceed = resolve));
      return roomyDisk();
    });
    const running = service(files, 1, 3);
    await chain.take();
    await until(() => hasAsked, WAIT);
    const closing = running.close();
    proceed();
    await closing;
    expect(files.count).toBe(2);
  });

  it("holds no blocks for snapshots that cannot be deleted", async () => {
    const files = await open();
    await addBlocks(files, 2);
    const heights = heightsOf(files);
    // A folder takes no name that a file has.
    for (const height of heights) fs.writeFileSync(path.join(folder, `retired-${height}`), "");
    const running = service(files, 0, 1);
    try {
      await until(() => files.oldestHeight === undefined, WAIT);
    } finally {
      await running.close();
    }
    for (const height of heights) expect(fs.readdirSync(folder)).toContain(`${height}`);
  });

  it("says of a height that has a snapshot already that it is left out", async () => {
    const lines: string[] = [];
    const log = Object.assign(Object.create(quietLog) as Logger, {
      info: (_fields: unknown, text: string) => void lines.push(text),
    });
    const files = await open();
    await chain.take();
    await chain.addTo(files);
    const running = service(files, 1, 0, log);
    try {
      const committed = chain.node.view.block(chain.node.height);
      if (committed === undefined) throw new Error("no block");
      chain.node.bus.emit("block", committed);
      await until(() => lines.length > 0, WAIT);
    } finally {
      await running.close();
    }
    expect(lines).toEqual(["snapshot left out: its height has one"]);
  });

  it("leaves out a height while the last one is being written, and nothing when it is closed", async () => {
    const files = await open();
    const running = service(files, 1, 0);
    await chain.take();
    const first = chain.node.height;
    // Published in the same turn, before anything could be written.
    const committed = chain.node.view.block(first);
    if (committed === undefined) throw new Error("no block");
    chain.node.bus.emit("block", committed);
    await until(() => heightsOf(files).length > 0, { timeoutMs: 5_000 });
    expect(heightsOf(files)).toEqual([first]);
    let closing: Promise<void> | undefined;
    const unsubscribe = chain.node.bus.on("block", () => {
      closing = running.close();
    });
    await chain.take();
    unsubscribe();
    await closing;
    expect(closing).toBeDefined();
    expect(fs.readdirSync(folder)).toEqual([`${first}`]);
    await chain.take();
    expect(heightsOf(files)).toEqual([first]);
  });
});

describe("the folder", () => {
  it("has what is asked for by height, id and index, and nothing else", async () => {
    const files = await open();
    await chain.addTo(files);
    await chain.addTo(files);
    const [offer] = files.list();
    if (offer === undefined) throw new Error("no snapshot");
    const { height, id, chunks } = offer;
    expect(files.list()).toHaveLength(1);
    expect(chunks).toBe((await readFiles(files)).chunks.length);
    expect(await files.manifest(height, ZERO_HASH)).toBeUndefined();
    expect(await files.manifest(height + 1, id)).toBeUndefined();
    expect(await files.chunk(height, id, chunks)).toBeUndefined();
    expect(await files.chunk(height, id, -1)).toBeUndefined();
    expect(await files.chunk(height, id, 0.5)).toBeUndefined();
    expect(await files.chunk(height, ZERO_HASH, 0)).toBeUndefined();
    expect(await files.chunk(height, id, 0)).toBeDefined();
  });

  it("does not hand out what is damaged on disk", async () => {
    const files = await open();
    await chain.addTo(files);
    const [offer] = files.list();
    if (offer === undefined) throw new Error("no snapshot");
    const { height, id } = offer;
    const file = path.join(folder, `${height}`, "chunk-0");
    const bytes = fs.readFileSync(file);
    bytes[100] = (bytes[100] ?? 0) ^ 1;
    fs.writeFileSync(file, bytes);
    expect(await files.chunk(height, id, 0)).toBeUndefined();
    fs.truncateSync(file, 10);
    expect(await files.chunk(height, id, 0)).toBeUndefined();
    fs.rmSync(file);
    expect(await files.chunk(height, id, 0)).toBeUndefined();
    fs.writeFileSync(path.join(folder, `${height}`, "manifest"), "no manifest");
    expect(await files.manifest(height, id)).toBeUndefined();
    // A damaged one is gone after the next start, as one of another chain.
    expect((await open()).list()).toEqual([]);
    expect(fs.readdirSync(folder)).toEqual([]);
  });

  const spoilers: [string, (folder: string) => void][] = [
    ["a chunk is lost", (of) => fs.rmSync(path.join(of, "chunk-0"))],
    ["a chunk is another", (of) => fs.writeFileSync(path.join(of, "chunk-0"), "no chunk")],
    ["a chunk is too long", (of) => fs.truncateSync(path.join(of, "chunk-0"), 100_000_000)],
    ["the manifest is lost", (of) => fs.rmSync(path.join(of, "manifest"))],
    ["the manifest is another", (of) => fs.writeFileSync(path.join(of, "manifest"), "none")],
  ];
  // A peer that joins would come back for it again and again, and wait for minutes each time.
  it.each(spoilers)(
    "offers a snapshot no more once it was asked for and %s",
    async (_what, spoil) => {
      const files = await open();
      await chain.addTo(files);
      const [offer] = files.list();
      if (offer === undefined) throw new Error("no snapshot");
      const { height, id } = offer;
      spoil(path.join(folder, `${height}`));
      const asked = [await files.manifest(height, id), await files.chunk(height, id, 0)];
      expect(asked).toContain(undefined);
      expect(files.list()).toEqual([]);
      expect(await files.manifest(height, id)).toBeUndefined();
    },
  );

  it("offers none of which a chunk is not there when it is opened", async () => {
    await chain.addTo(await open());
    fs.rmSync(path.join(folder, `${chain.node.height}`, "chunk-0"));
    expect((await open()).list()).toEqual([]);
    expect(fs.readdirSync(folder)).toEqual([]);
  });

  it("keeps a snapshot that cannot be read now, and offers it when it can", async () => {
    const files = await open();
    await chain.addTo(files);
    const [offer] = files.list();
    if (offer === undefined) throw new Error("no snapshot");
    const { height, id } = offer;
    const manifest = path.join(folder, `${height}`, "manifest");
    const aside = path.join(folder, "aside");
    fs.renameSync(manifest, aside);
    // A fault when it is opened, as with too many open files, and one when it is read, as of a bad disk.
    for (const spoil of [
      () => fs.symlinkSync("manifest", manifest),
      () => fs.mkdirSync(manifest),
    ]) {
      spoil();
      expect((await open()).list()).toEqual([]);
      expect(await files.manifest(height, id)).toBeUndefined();
      fs.rmSync(manifest, { recursive: true });
    }
    fs.renameSync(aside, manifest);
    expect((await open()).list()).toEqual([offer]);
  });

  it("is opened where nothing can be removed, and offers what is whole alone", async () => {
    await chain.addTo(await open());
    const { height } = chain.node;
    const useless = ["writing-5", "retired-6", "3", `${height + 1}`];
    for (const name of useless) {
      fs.mkdirSync(path.join(folder, name));
      fs.writeFileSync(path.join(folder, name, "manifest"), "no manifest");
    }
    for (const name of fs.readdirSync(folder)) {
      fs.chmodSync(path.join(folder, name), 0o555);
      for (const file of fs.readdirSync(path.join(folder, name))) {
        fs.chmodSync(path.join(folder, name, file), 0o444);
      }
    }
    fs.chmodSync(folder, 0o555);
    // Nothing is forbidden to root.
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) process.seteuid?.(65_534);
    try {
      expect(heightsOf(await open())).toEqual([height]);
    } finally {
      if (isRoot) process.seteuid?.(0);
      for (const name of ["", ...fs.readdirSync(folder)]) {
        fs.chmodSync(path.join(folder, name), 0o700);
      }
    }
    expect(fs.readdirSync(folder).toSorted()).toEqual([...useless, `${height}`].toSorted());
    expect(heightsOf(await open())).toEqual([height]);
    expect(fs.readdirSync(folder)).toEqual([`${height}`]);
  });

  it("offers nothing where it cannot be listed", async () => {
    fs.rmdirSync(folder);
    fs.writeFileSync(folder, "in its place");
    const files = await open();
    expect([files.list(), files.count, files.oldestHeight]).toEqual([[], 0, undefined]);
    await expect(chain.addTo(files)).rejects.toMatchObject({ code: "SNAPSHOT_WRITE_FAILED" });
  });

  it("throws away snapshots of another chain and what has no height for a name", async () => {
    await chain.addTo(await open());
    fs.mkdirSync(path.join(folder, "writing-7"));
    fs.mkdirSync(path.join(folder, "retired-8"));
    fs.writeFileSync(path.join(folder, "notes.txt"), "of the operator");
    expect((await open()).list()).toHaveLength(1);
    const foreign = await SnapshotFolder.open({
      folder,
      genesisHash: ZERO_HASH,
      headHeight: chain.node.height,
      oldestBlock: 0,
      log: quietLog,
      disk: roomyDisk,
    });
    expect(foreign.list()).toEqual([]);
    expect(fs.readdirSync(folder)).toEqual(["notes.txt"]);
  });

  it("throws away what is above the head of a chain that was put back older", async () => {
    await chain.addTo(await open());
    const kept = chain.node.height;
    await chain.take();
    await chain.addTo(await open());
    expect(heightsOf(await open())).toEqual([kept + 1, kept]);
    const older = await open(undefined, kept);
    expect(heightsOf(older)).toEqual([kept]);
    expect(fs.readdirSync(folder)).toEqual([`${kept}`]);
    // The height's own one is written once the chain comes to it again.
    await chain.addTo(older);
    expect(heightsOf(older)).toEqual([kept + 1, kept]);
  });

  it("throws away what whoever joined by it would find no next block for", async () => {
    await chain.addTo(await open());
    const { height } = chain.node;
    await chain.take();
    await chain.take();
    const openAt = (oldestBlock: number) => open(undefined, chain.node.height, oldestBlock);
    expect(heightsOf(await openAt(height + 1))).toEqual([height]);
    expect(heightsOf(await openAt(height + 2))).toEqual([]);
    expect(fs.readdirSync(folder)).toEqual([]);
  });

  it.each(SNAPSHOT_FAILPOINTS)("is whole after a crash at %s", async (name) => {
    await chain.addTo(await open());
    const former = chain.node.height;
    await chain.take();
    const image = `${folder}.image`;
    const files = await open((reached) => {
      if (reached === name) fs.cpSync(folder, image, { recursive: true });
    });
    await chain.addTo(files);
    await files.keepNewest(1);
    fs.rmSync(folder, { recursive: true, force: true });
    fs.renameSync(image, folder);
    const after = await open();
    const [newest] = after.list();
    const isThere = name === "snapshot.after-rename" || name === "snapshot.after-retire";
    expect(newest?.height).toBe(isThere ? chain.node.height : former);
    expect(after.list()).toHaveLength(name === "snapshot.after-rename" ? 2 : 1);
    expect(fs.readdirSync(folder)).toHaveLength(after.list().length);
    expect((await readFiles(after)).chunks.length).toBeGreaterThan(0);
  });

  it("says that a disk is full, leaves nothing of the snapshot, and works on with space", async () => {
    const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=64k", "none", folder]);
    if (mounted.status !== 0) {
      process.stdout.write("left out: no tmpfs can be mounted here\n");
      return;
    }
    try {
      // Somebody else has filled it since it was asked for its room.
      const files = await withFree(() => 2 * RESERVED_BYTES);
      const ballast = path.join(folder, "ballast");
      fs.writeFileSync(ballast, Buffer.alloc(60 * 1024));
      await expect(chain.addTo(files)).rejects.toMatchObject({
        code: "SNAPSHOT_WRITE_FAILED",
        details: { folder, height: chain.node.height, reason: expect.stringContaining("ENOSPC") },
      });
      expect(fs.readdirSync(folder)).toEqual(["ballast"]);
      expect(files.list()).toEqual([]);
      fs.rmSync(ballast);
      await chain.addTo(files);
      expect(files.list()).toHaveLength(1);
    } finally {
      await until(() => spawnSync("umount", [folder]).status === 0, { timeoutMs: 10_000 });
    }
  });
});
