/** Snapshots at every interval: the heights that get one, how many are kept, and which are left out. */
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "@jest/globals";
import type { Logger } from "../../../../runtime/process/logger.js";
import { quietLog, roomyDisk, words } from "../../../helpers/chains/snapshot-chain.js";
import { until } from "../../../helpers/until.js";
import { heightsOf, type SnapshotBench, snapshotsForTests, WAIT } from "./snapshot-bench.js";

let bench: SnapshotBench;

snapshotsForTests((opened) => {
  bench = opened;
});

describe("the service", () => {
  it("takes the state of each multiple of the interval, although the chain goes on", async () => {
    const files = await bench.open();
    const running = bench.service(files, 2, 0);
    const expected = new Map<number, Uint8Array>();
    try {
      for (let index = 0; index < 6; index++) {
        await bench.chain.take([{ to: bench.made.keeper, data: words(500 + index, 1) }]);
        const { height } = bench.chain.node;
        if (height % 2 !== 0) continue;
        expected.set(height, (await bench.chain.snapshot()).manifestBytes);
        // At once, without waiting for the files.
        await bench.chain.take([{ to: bench.made.keeper, data: words(600 + index, 1) }]);
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
    const files = await bench.open();
    const running = bench.service(files, 1, 2);
    const off = bench.service(files, 0, 1);
    try {
      for (let index = 0; index < 5; index++) {
        await bench.chain.take();
        const { height } = bench.chain.node;
        await until(() => heightsOf(files)[0] === height, { timeoutMs: 5_000 });
      }
      await until(() => fs.readdirSync(bench.folder).length === 2, { timeoutMs: 5_000 });
      const { height } = bench.chain.node;
      expect(heightsOf(files)).toEqual([height, height - 1]);
      expect(files.oldestHeight).toBe(height - 1);
      expect(fs.readdirSync(bench.folder).toSorted()).toEqual(
        [`${height - 1}`, `${height}`].toSorted(),
      );
    } finally {
      await running.close();
      await off.close();
    }
  });

  it("deletes at its start what the settings do not keep any more", async () => {
    const files = await bench.open();
    await bench.addBlocks(files, 3);
    const { height } = bench.chain.node;
    const cases: [intervalBlocks: number, keepRecent: number, left: number[]][] = [
      [0, 0, [height, height - 1, height - 2]],
      [1_000_000, 2, [height, height - 1]],
      [1_000_000, 1, [height]],
      // None follows these: for ever they would keep all blocks from theirs on.
      [0, 1, []],
    ];
    for (const [intervalBlocks, keepRecent, left] of cases) {
      const running = bench.service(files, intervalBlocks, keepRecent);
      await until(() => fs.readdirSync(bench.folder).length === left.length, WAIT);
      await running.close();
      expect(heightsOf(files)).toEqual(left);
    }
    expect(files.oldestHeight).toBeUndefined();
  });

  it("lets them go as well where none can be written for another reason, which it says", async () => {
    await bench.addBlocks(await bench.open(), 2);
    const newest = bench.chain.node.height;
    const reasons: string[] = [];
    const log = Object.assign(Object.create(quietLog) as Logger, {
      error: ({ reason }: { readonly reason: string }, text: string) =>
        void reasons.push(`${text}: ${reason}`),
    });
    const faulty = await bench.withDisk(async () => {
      throw Object.assign(new Error("EROFS: read-only file system"), { code: "EROFS" });
    });
    const running = bench.service(faulty, 1, 3, log);
    try {
      await bench.chain.take();
      await until(() => faulty.oldestHeight === newest, WAIT);
      await bench.chain.take();
      await until(() => faulty.oldestHeight === undefined, WAIT);
    } finally {
      await running.close();
    }
    expect(fs.readdirSync(bench.folder)).toEqual([]);
    const reason = expect.stringMatching(/^snapshot not written: .*EROFS/);
    expect(reasons).toEqual([reason, reason]);
  });

  it("keeps what is there when it is closed in the middle of a snapshot", async () => {
    await bench.addBlocks(await bench.open(), 2);
    let hasAsked = false;
    let proceed: () => void = () => undefined;
    const files = await bench.withDisk(async () => {
      hasAsked = true;
      await new Promise<void>((resolve) => (proceed = resolve));
      return roomyDisk();
    });
    const running = bench.service(files, 1, 3);
    await bench.chain.take();
    await until(() => hasAsked, WAIT);
    const closing = running.close();
    proceed();
    await closing;
    expect(files.count).toBe(2);
  });

  it("holds no blocks for snapshots that cannot be deleted", async () => {
    const files = await bench.open();
    await bench.addBlocks(files, 2);
    const heights = heightsOf(files);
    // A folder takes no name that a file has.
    for (const height of heights)
      fs.writeFileSync(path.join(bench.folder, `retired-${height}`), "");
    const running = bench.service(files, 0, 1);
    try {
      await until(() => files.oldestHeight === undefined, WAIT);
    } finally {
      await running.close();
    }
    for (const height of heights) expect(fs.readdirSync(bench.folder)).toContain(`${height}`);
  });

  it("says of a height that has a snapshot already that it is left out", async () => {
    const lines: string[] = [];
    const log = Object.assign(Object.create(quietLog) as Logger, {
      info: (_fields: unknown, text: string) => void lines.push(text),
    });
    const files = await bench.open();
    await bench.chain.take();
    await bench.chain.addTo(files);
    const running = bench.service(files, 1, 0, log);
    try {
      const committed = bench.chain.node.view.block(bench.chain.node.height);
      if (committed === undefined) throw new Error("no block");
      bench.chain.node.bus.emit("block", committed);
      await until(() => lines.length > 0, WAIT);
    } finally {
      await running.close();
    }
    expect(lines).toEqual(["snapshot left out: its height has one"]);
  });

  it("leaves out a height while the last one is being written, and nothing when it is closed", async () => {
    const files = await bench.open();
    const running = bench.service(files, 1, 0);
    await bench.chain.take();
    const first = bench.chain.node.height;
    // Published in the same turn, before anything could be written.
    const committed = bench.chain.node.view.block(first);
    if (committed === undefined) throw new Error("no block");
    bench.chain.node.bus.emit("block", committed);
    await until(() => heightsOf(files).length > 0, { timeoutMs: 5_000 });
    expect(heightsOf(files)).toEqual([first]);
    let closing: Promise<void> | undefined;
    const unsubscribe = bench.chain.node.bus.on("block", () => {
      closing = running.close();
    });
    await bench.chain.take();
    unsubscribe();
    await closing;
    expect(closing).toBeDefined();
    expect(fs.readdirSync(bench.folder)).toEqual([`${first}`]);
    await bench.chain.take();
    expect(heightsOf(files)).toEqual([first]);
  });
});
