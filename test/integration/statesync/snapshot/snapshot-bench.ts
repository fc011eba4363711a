/** Folders of snapshots beside a chain that goes on, and the services that write them. */
import fs from "node:fs";
import type { Hash32 } from "../../../../chain/hex.js";
import {
  SNAPSHOT_FAILPOINTS,
  SnapshotFolder,
} from "../../../../node/statesync/snapshot/snapshot-folder.js";
import { RESERVED_BYTES } from "../../../../node/statesync/snapshot/snapshot-room.js";
import { SnapshotService } from "../../../../node/statesync/snapshot/snapshot-service.js";
import {
  makeHistory,
  quietLog,
  roomyDisk,
  SnapshotChain,
  temporaryFolder,
} from "../../../helpers/chains/snapshot-chain.js";
import { afterAll, afterEach, beforeAll, beforeEach } from "@jest/globals";

type Failpoint = (name: (typeof SNAPSHOT_FAILPOINTS)[number]) => void;

/** How long a service may take for what it has to do. */
export const WAIT = { timeoutMs: 10_000 };

/** Heights of the snapshots that a folder offers, the newest first. */
export const heightsOf = (files: SnapshotFolder) => files.list().map(({ height }) => height);

/** The chain of a file's tests, and the folder of the one that runs. */
export class SnapshotBench {
  /** Of this test alone. */
  folder = "";

  private constructor(
    readonly chain: SnapshotChain,
    readonly made: Awaited<ReturnType<typeof makeHistory>>,
    readonly genesisHash: Hash32,
  ) {}

  static async start(): Promise<SnapshotBench> {
    const chain = await SnapshotChain.open();
    const made = await makeHistory(chain);
    return new SnapshotBench(chain, made, chain.hash(0));
  }

  open(
    failpoint?: Failpoint,
    headHeight = this.chain.node.height,
    oldestBlock = 0,
  ): Promise<SnapshotFolder> {
    return SnapshotFolder.open({
      folder: this.folder,
      genesisHash: this.genesisHash,
      headHeight,
      oldestBlock,
      log: quietLog,
      disk: roomyDisk,
      ...(failpoint === undefined ? {} : { failpoint }),
    });
  }

  withDisk(disk: typeof roomyDisk): Promise<SnapshotFolder> {
    return SnapshotFolder.open({
      folder: this.folder,
      genesisHash: this.genesisHash,
      headHeight: this.chain.node.height,
      oldestBlock: 0,
      log: quietLog,
      disk,
    });
  }

  /** On a disk that has so many bytes free, as the node sees it. */
  withFree(free: () => number): Promise<SnapshotFolder> {
    return this.withDisk(async () => ({
      freeBytes: free(),
      totalBytes: 1_000 * RESERVED_BYTES,
    }));
  }

  /** Writes snapshots of the chain's blocks until it is closed. */
  service(files: SnapshotFolder, intervalBlocks: number, keepRecent: number, log = quietLog) {
    const { stores, bus } = this.chain.node;
    return new SnapshotService({
      folder: files,
      database: stores.database,
      blocks: stores.blocks,
      bus,
      genesisHash: this.genesisHash,
      intervalBlocks,
      keepRecent,
      log,
      signal: new AbortController().signal,
    });
  }

  /** So many blocks more, each with its snapshot. */
  async addBlocks(files: SnapshotFolder, count: number): Promise<void> {
    for (let added = 0; added < count; added++) {
      await this.chain.take();
      await this.chain.addTo(files);
    }
  }
}

/** One chain for all tests of a file, and an empty folder for each. */
export function snapshotsForTests(take: (bench: SnapshotBench) => void): void {
  let bench: SnapshotBench | undefined;
  beforeAll(async () => {
    bench = await SnapshotBench.start();
    take(bench);
  });
  beforeEach(() => {
    if (bench !== undefined) bench.folder = temporaryFolder("snapshots");
  });
  afterEach(() => {
    if (bench !== undefined) fs.rmSync(bench.folder, { recursive: true, force: true });
  });
  afterAll(() => bench?.chain.close());
}
