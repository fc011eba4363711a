/** Settings of memory and files reach the caches and the store. */
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { describe, expect, it } from "@jest/globals";
import { serverConnections } from "../../../node/compose/connection-room.js";
import { mostPeerFiles } from "../../../node/p2p/peers/peer-connections.js";
import { APP_FILE, CONFIG_FILE } from "../../../node/settings/config.js";
import { databaseSettings, memoryBytes } from "../../../node/settings/memory-config.js";
import { memorySteps } from "../../../node/store/blocks/block-store.js";
import { openDatabase } from "../../../node/store/database.js";
import { type ConnectionBounds, connectionBounds } from "../../../node/rpc/connection-bounds.js";
import { allAtOnce } from "../../../chain/steps/steps.js";
import { account, listing } from "../mempool/support.js";
import { loadConfig } from "../../../runtime/config/config.js";

const MIB = 1024 * 1024;

const MEMORY = {
  "trie-cache": 1,
  "state-cache": 2,
  "block-cache": 3,
  "rpc-cache": 6,
  "store-cache": 4,
  "store-write-buffer": 5,
};

describe("memory and files of a node", () => {
  it("are bytes where settings are MiB, the RPC servers' share divided", () => {
    expect(memoryBytes(MEMORY)).toEqual({
      trieBytes: MIB,
      stateBytes: 2 * MIB,
      recentBlockBytes: 3 * MIB,
      evmRpcBytes: 4 * MIB,
      cometRpcBytes: expect.closeTo(2 * MIB, -1),
    });
  });

  it("are few large files, all of them kept open, unless somebody says otherwise", () => {
    const { store } = loadConfig({ home: "/nonexistent", env: {} }, APP_FILE);
    expect(databaseSettings(MEMORY, store)).toEqual({
      cacheBytes: 4 * MIB,
      writeBufferBytes: 5 * MIB,
      fileBytes: 64 * MIB,
      openFiles: 10_000,
    });
  });

  it("count with what the lists of the newest blocks take once they are read", async () => {
    const tx = await listing(account(1), 0);
    const block = { transactions: [{ tx, from: account(1).address }] };
    const committed = { block, receipts: [], journal: { transactions: [] } };
    // Measured: 140 bytes for an address, 23 on the wire.
    expect(allAtOnce(memorySteps(committed as never))).toBeGreaterThan(6 * tx.raw.length);
  });

  it("make files of the size that is set", async () => {
    const largest = async (fileMib: number) => {
      const folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-files-"));
      const store = { "file-size": fileMib, "open-files": 1_000_000 };
      const database = await openDatabase(folder, { database: databaseSettings(MEMORY, store) });
      // Twice, for what is written once is not merged into files of its own size.
      for (let n = 0; n < 16; n++) {
        const writes = [{ key: Buffer.of(n % 8), value: randomBytes(MIB) }];
        await database.write(writes, { durable: false });
      }
      await database.compact(Buffer.of(0), Buffer.of(255));
      await database.close();
      const sizes = fs
        .readdirSync(folder)
        .filter((name) => name.endsWith(".ldb"))
        .map((name) => fs.statSync(path.join(folder, name)).size);
      fs.rmSync(folder, { recursive: true });
      return Math.max(...sizes);
    };
    expect(await largest(1)).toBeLessThan(3 * MIB);
    expect(await largest(64)).toBeGreaterThan(7 * MIB);
  });

  it("leave fewer connections where few files may be open, and warn", () => {
    const from = { home: "/nonexistent", env: {} };
    const [config, app] = [loadConfig(from, CONFIG_FILE), loadConfig(from, APP_FILE)];
    const said: unknown[] = [];
    const log = { warn: (fields: unknown) => void said.push(fields) };
    const bounds = (limit: number) => serverConnections({ config, app, log }, limit);
    for (const limit of [1_024, 4_096]) {
      const connections = bounds(limit);
      const clients = Object.values(connections).reduce((sum, count) => sum + count);
      const peers = mostPeerFiles(
        { maxInboundPeers: 40, maxOutboundPeers: 10, reservedCount: 0 },
        limit,
      );
      expect(clients).toBeGreaterThan(200);
      expect(clients + peers + limit / 2).toBeLessThanOrEqual(limit - 128);
      expect(Math.min(...Object.values(connections))).toBeGreaterThanOrEqual(8);
      expect(said.splice(0)).toEqual([{ openFileLimit: limit, connections }]);
    }
    expect(bounds(1_048_576)).toEqual({
      evmHttp: 4_096,
      evmSocket: 1_256,
      comet: 1_024,
      rest: 1_000,
      grpc: 1_000,
      metrics: 256,
    });
    expect(said).toEqual([]);
  });

  it("leave the kit's own port as many connections as its processes hold, as long as there are", () => {
    const wanted = {
      evmHttp: 4_096,
      evmSocket: 1_256,
      comet: 1_024,
      rest: 1_000,
      grpc: 0,
      metrics: 256,
    };
    const first = { evmHttp: 256, evmSocket: 64, comet: 64, rest: 16, grpc: 0, metrics: 8 };
    const total = (bounds: ConnectionBounds) => Object.values(bounds).reduce((sum, n) => sum + n);
    expect(connectionBounds(wanted, total(wanted))).toBe(wanted);
    expect(connectionBounds(wanted, total(first))).toEqual(first);
    expect(connectionBounds(wanted, (total(wanted) + total(first)) / 2)).toEqual({
      evmHttp: (4_096 + 256) / 2,
      evmSocket: (1_256 + 64) / 2,
      comet: (1_024 + 64) / 2,
      rest: (1_000 + 16) / 2,
      grpc: 0,
      metrics: (256 + 8) / 2,
    });
    const few = { evmHttp: 128, evmSocket: 32, comet: 32, rest: 8, grpc: 0, metrics: 8 };
    expect(connectionBounds(wanted, total(first) / 2)).toEqual(few);
    // Who is to ask what is wrong finds a place even so.
    const least = { evmHttp: 8, evmSocket: 8, comet: 8, rest: 8, grpc: 0, metrics: 8 };
    expect(connectionBounds(wanted, -100)).toEqual(least);
    expect(connectionBounds({ ...wanted, rest: 3 }, 100)).toMatchObject({ rest: 3 });
  });
});
