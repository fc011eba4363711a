/** The folder of snapshots: what it offers, and what it throws away; whole whatever happens to it. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "@jest/globals";
import { ZERO_HASH } from "../../../../chain/hex.js";
import {
  SNAPSHOT_FAILPOINTS,
  SnapshotFolder,
} from "../../../../node/statesync/snapshot/snapshot-folder.js";
import { RESERVED_BYTES } from "../../../../node/statesync/snapshot/snapshot-room.js";
import { quietLog, readFiles, roomyDisk } from "../../../helpers/chains/snapshot-chain.js";
import { until } from "../../../helpers/until.js";
import { heightsOf, type SnapshotBench, snapshotsForTests } from "./snapshot-bench.js";

let bench: SnapshotBench;

snapshotsForTests((opened) => {
  bench = opened;
});

describe("snapshots that somebody deletes while the node runs", () => {
  const remove = (height: number) =>
    fs.rmSync(path.join(bench.folder, `${height}`), { recursive: true });

  it("are offered no more, and others are written", async () => {
    const files = await bench.open();
    const written = async () => {
      await bench.chain.take();
      await bench.chain.addTo(files);
      return bench.chain.node.height;
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
    expect(fs.readdirSync(bench.folder)).toEqual([`${fifth}`]);
  });
});

describe("the folder", () => {
  it("has what is asked for by height, id and index, and nothing else", async () => {
    const files = await bench.open();
    await bench.chain.addTo(files);
    await bench.chain.addTo(files);
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
    const files = await bench.open();
    await bench.chain.addTo(files);
    const [offer] = files.list();
    if (offer === undefined) throw new Error("no snapshot");
    const { height, id } = offer;
    const file = path.join(bench.folder, `${height}`, "chunk-0");
    const bytes = fs.readFileSync(file);
    bytes[100] = (bytes[100] ?? 0) ^ 1;
    fs.writeFileSync(file, bytes);
    expect(await files.chunk(height, id, 0)).toBeUndefined();
    fs.truncateSync(file, 10);
    expect(await files.chunk(height, id, 0)).toBeUndefined();
    fs.rmSync(file);
    expect(await files.chunk(height, id, 0)).toBeUndefined();
    fs.writeFileSync(path.join(bench.folder, `${height}`, "manifest"), "no manifest");
    expect(await files.manifest(height, id)).toBeUndefined();
    // A damaged one is gone after the next start, as one of another bench.chain.
    expect((await bench.open()).list()).toEqual([]);
    expect(fs.readdirSync(bench.folder)).toEqual([]);
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
      const files = await bench.open();
      await bench.chain.addTo(files);
      const [offer] = files.list();
      if (offer === undefined) throw new Error("no snapshot");
      const { height, id } = offer;
      spoil(path.join(bench.folder, `${height}`));
      const asked = [await files.manifest(height, id), await files.chunk(height, id, 0)];
      expect(asked).toContain(undefined);
      expect(files.list()).toEqual([]);
      expect(await files.manifest(height, id)).toBeUndefined();
    },
  );

  it("offers none of which a chunk is not there when it is opened", async () => {
    await bench.chain.addTo(await bench.open());
    fs.rmSync(path.join(bench.folder, `${bench.chain.node.height}`, "chunk-0"));
    expect((await bench.open()).list()).toEqual([]);
    expect(fs.readdirSync(bench.folder)).toEqual([]);
  });

  it("keeps a snapshot that cannot be read now, and offers it when it can", async () => {
    const files = await bench.open();
    await bench.chain.addTo(files);
    const [offer] = files.list();
    if (offer === undefined) throw new Error("no snapshot");
    const { height, id } = offer;
    const manifest = path.join(bench.folder, `${height}`, "manifest");
    const aside = path.join(bench.folder, "aside");
    fs.renameSync(manifest, aside);
    // A fault when it is opened, as with too many open files, and one when it is read, as of a bad disk.
    for (const spoil of [
      () => fs.symlinkSync("manifest", manifest),
      () => fs.mkdirSync(manifest),
    ]) {
      spoil();
      expect((await bench.open()).list()).toEqual([]);
      expect(await files.manifest(height, id)).toBeUndefined();
      fs.rmSync(manifest, { recursive: true });
    }
    fs.renameSync(aside, manifest);
    expect((await bench.open()).list()).toEqual([offer]);
  });

  it("is opened where nothing can be removed, and offers what is whole alone", async () => {
    await bench.chain.addTo(await bench.open());
    const { height } = bench.chain.node;
    const useless = ["writing-5", "retired-6", "3", `${height + 1}`];
    for (const name of useless) {
      fs.mkdirSync(path.join(bench.folder, name));
      fs.writeFileSync(path.join(bench.folder, name, "manifest"), "no manifest");
    }
    for (const name of fs.readdirSync(bench.folder)) {
      fs.chmodSync(path.join(bench.folder, name), 0o555);
      for (const file of fs.readdirSync(path.join(bench.folder, name))) {
        fs.chmodSync(path.join(bench.folder, name, file), 0o444);
      }
    }
    fs.chmodSync(bench.folder, 0o555);
    // Nothing is forbidden to root.
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) process.seteuid?.(65_534);
    try {
      expect(heightsOf(await bench.open())).toEqual([height]);
    } finally {
      if (isRoot) process.seteuid?.(0);
      for (const name of ["", ...fs.readdirSync(bench.folder)]) {
        fs.chmodSync(path.join(bench.folder, name), 0o700);
      }
    }
    expect(fs.readdirSync(bench.folder).toSorted()).toEqual([...useless, `${height}`].toSorted());
    expect(heightsOf(await bench.open())).toEqual([height]);
    expect(fs.readdirSync(bench.folder)).toEqual([`${height}`]);
  });

  it("offers nothing where it cannot be listed", async () => {
    fs.rmdirSync(bench.folder);
    fs.writeFileSync(bench.folder, "in its place");
    const files = await bench.open();
    expect([files.list(), files.count, files.oldestHeight]).toEqual([[], 0, undefined]);
    await expect(bench.chain.addTo(files)).rejects.toMatchObject({ code: "SNAPSHOT_WRITE_FAILED" });
  });

  it("throws away snapshots of another chain and what has no height for a name", async () => {
    await bench.chain.addTo(await bench.open());
    fs.mkdirSync(path.join(bench.folder, "writing-7"));
    fs.mkdirSync(path.join(bench.folder, "retired-8"));
    fs.writeFileSync(path.join(bench.folder, "notes.txt"), "of the operator");
    expect((await bench.open()).list()).toHaveLength(1);
    const foreign = await SnapshotFolder.open({
      folder: bench.folder,
      genesisHash: ZERO_HASH,
      headHeight: bench.chain.node.height,
      oldestBlock: 0,
      log: quietLog,
      disk: roomyDisk,
    });
    expect(foreign.list()).toEqual([]);
    expect(fs.readdirSync(bench.folder)).toEqual(["notes.txt"]);
  });

  it("throws away what is above the head of a chain that was put back older", async () => {
    await bench.chain.addTo(await bench.open());
    const kept = bench.chain.node.height;
    await bench.chain.take();
    await bench.chain.addTo(await bench.open());
    expect(heightsOf(await bench.open())).toEqual([kept + 1, kept]);
    const older = await bench.open(undefined, kept);
    expect(heightsOf(older)).toEqual([kept]);
    expect(fs.readdirSync(bench.folder)).toEqual([`${kept}`]);
    // The height's own one is written once the chain comes to it again.
    await bench.chain.addTo(older);
    expect(heightsOf(older)).toEqual([kept + 1, kept]);
  });

  it("throws away what whoever joined by it would find no next block for", async () => {
    await bench.chain.addTo(await bench.open());
    const { height } = bench.chain.node;
    await bench.chain.take();
    await bench.chain.take();
    const openAt = (oldestBlock: number) =>
      bench.open(undefined, bench.chain.node.height, oldestBlock);
    expect(heightsOf(await openAt(height + 1))).toEqual([height]);
    expect(heightsOf(await openAt(height + 2))).toEqual([]);
    expect(fs.readdirSync(bench.folder)).toEqual([]);
  });

  it.each(SNAPSHOT_FAILPOINTS)("is whole after a crash at %s", async (name) => {
    await bench.chain.addTo(await bench.open());
    const former = bench.chain.node.height;
    await bench.chain.take();
    const image = `${bench.folder}.image`;
    const files = await bench.open((reached) => {
      if (reached === name) fs.cpSync(bench.folder, image, { recursive: true });
    });
    await bench.chain.addTo(files);
    await files.keepNewest(1);
    fs.rmSync(bench.folder, { recursive: true, force: true });
    fs.renameSync(image, bench.folder);
    const after = await bench.open();
    const [newest] = after.list();
    const isThere = name === "snapshot.after-rename" || name === "snapshot.after-retire";
    expect(newest?.height).toBe(isThere ? bench.chain.node.height : former);
    expect(after.list()).toHaveLength(name === "snapshot.after-rename" ? 2 : 1);
    expect(fs.readdirSync(bench.folder)).toHaveLength(after.list().length);
    expect((await readFiles(after)).chunks.length).toBeGreaterThan(0);
  });

  it("says that a disk is full, leaves nothing of the snapshot, and works on with space", async () => {
    const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=64k", "none", bench.folder]);
    if (mounted.status !== 0) {
      process.stdout.write("left out: no tmpfs can be mounted here\n");
      return;
    }
    try {
      // Somebody else has filled it since it was asked for its room.
      const files = await bench.withFree(() => 2 * RESERVED_BYTES);
      const ballast = path.join(bench.folder, "ballast");
      fs.writeFileSync(ballast, Buffer.alloc(60 * 1024));
      await expect(bench.chain.addTo(files)).rejects.toMatchObject({
        code: "SNAPSHOT_WRITE_FAILED",
        details: {
          folder: bench.folder,
          height: bench.chain.node.height,
          reason: expect.stringContaining("ENOSPC"),
        },
      });
      expect(fs.readdirSync(bench.folder)).toEqual(["ballast"]);
      expect(files.list()).toEqual([]);
      fs.rmSync(ballast);
      await bench.chain.addTo(files);
      expect(files.list()).toHaveLength(1);
    } finally {
      await until(() => spawnSync("umount", [bench.folder]).status === 0, { timeoutMs: 10_000 });
    }
  });
});
