/** A disk that has little room: what is not written, what goes to make room, and what is said of it. */
import fs from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { SnapshotFolder } from "../../../../node/statesync/snapshot/snapshot-folder.js";
import { diskRoomOf, RESERVED_BYTES } from "../../../../node/statesync/snapshot/snapshot-room.js";
import type { Logger } from "../../../../runtime/process/logger.js";
import { quietLog } from "../../../helpers/chains/snapshot-chain.js";
import { until } from "../../../helpers/until.js";
import { heightsOf, type SnapshotBench, snapshotsForTests, WAIT } from "./snapshot-bench.js";

let bench: SnapshotBench;

snapshotsForTests((opened) => {
  bench = opened;
});

describe("a disk that does not tell its room", () => {
  it("is taken to have room", async () => {
    const { freeBytes, totalBytes } = await diskRoomOf(bench.folder);
    expect(freeBytes).toBeLessThanOrEqual(totalBytes);
    const disk = async () => ({ freeBytes: 0, totalBytes: 0 });
    const headHeight = bench.chain.node.height;
    const files = await SnapshotFolder.open({
      folder: bench.folder,
      genesisHash: bench.genesisHash,
      headHeight,
      oldestBlock: 0,
      log: quietLog,
      disk,
    });
    await bench.chain.addTo(files);
    expect(heightsOf(files)).toEqual([bench.chain.node.height]);
  });
});

describe("a disk that has little room", () => {
  it("gets no snapshot that would leave less than the reserve", async () => {
    let free = RESERVED_BYTES - 1;
    const files = await bench.withFree(() => free);
    await expect(bench.chain.addTo(files)).rejects.toMatchObject({ code: "SNAPSHOT_NO_ROOM" });
    // Enough for the reserve, and not for the state as well.
    free = RESERVED_BYTES + 10;
    await expect(bench.chain.addTo(files)).rejects.toMatchObject({ code: "SNAPSHOT_NO_ROOM" });
    expect(fs.readdirSync(bench.folder)).toEqual([]);
    free = 2 * RESERVED_BYTES;
    await bench.chain.addTo(files);
    expect(heightsOf(files)).toEqual([bench.chain.node.height]);
  });

  it("is not filled by one that is being written", async () => {
    let asked = 0;
    const files = await bench.withFree(() =>
      asked++ === 0 ? 2 * RESERVED_BYTES : RESERVED_BYTES - 1,
    );
    await expect(bench.chain.addTo(files)).rejects.toMatchObject({ code: "SNAPSHOT_NO_ROOM" });
    expect(fs.readdirSync(bench.folder)).toEqual([]);
  });

  it("is told of once, until there is room again", async () => {
    const said: string[] = [];
    const lines: string[] = [];
    const log = Object.assign(Object.create(quietLog) as Logger, {
      warn: (_fields: unknown, text: string) => void said.push(text),
      info: (_fields: unknown, text: string) => void lines.push(text),
    });
    let [free, asked] = [0, 0];
    const files = await bench.withFree(() => {
      asked++;
      return free;
    });
    const running = bench.service(files, 1, 0, log);
    /** One block more, and others where the last one's snapshot was still under way. */
    const takeOne = () =>
      until(async () => {
        const { length } = lines;
        await bench.chain.take();
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

describe("the service", () => {
  it("lets the oldest go at each height that is left out for want of room, the last one late", async () => {
    await bench.addBlocks(await bench.open(), 2);
    const newest = bench.chain.node.height;
    const poor = await bench.withFree(() => 0);
    const running = bench.service(poor, 1, 3);
    try {
      await bench.chain.take();
      await until(() => poor.oldestHeight === newest, WAIT);
      await until(() => fs.readdirSync(bench.folder).join(",") === `${newest}`, WAIT);
      await bench.chain.take();
      await until(() => poor.oldestHeight === undefined, WAIT);
    } finally {
      await running.close();
    }
    expect(fs.readdirSync(bench.folder)).toEqual([]);
  });

  it("keeps its only snapshot where room is missed once", async () => {
    await bench.addBlocks(await bench.open(), 1);
    let asked = 0;
    const poor = await bench.withFree(() => {
      asked++;
      return 0;
    });
    const running = bench.service(poor, 1, 1);
    await bench.chain.take();
    await until(() => asked > 0, WAIT);
    await running.close();
    expect(heightsOf(poor)).toEqual([bench.chain.node.height - 1]);
  });

  it("deletes none for want of room where all are to be kept", async () => {
    await bench.addBlocks(await bench.open(), 2);
    let asked = 0;
    const poor = await bench.withFree(() => {
      asked++;
      return 0;
    });
    const running = bench.service(poor, 1, 0);
    await until(async () => {
      await bench.chain.take();
      return asked > 2;
    }, WAIT);
    await running.close();
    expect(heightsOf(poor)).toHaveLength(2);
  });
});
