/** How a restored store takes the place of the chain, whatever step a crash leaves it at. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statfsSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { heightBytes } from "../../../chain/encoding/height-bytes.js";
import type { NodeOptions } from "../../../node/compose/node.js";
import { startJoiningNode } from "../../../node/compose/state-sync.js";
import { openDatabase, storeKey } from "../../../node/store/database.js";
import { StateSyncFolders } from "../../../node/statesync/state-sync-folders.js";
import { createLogger } from "../../../runtime/process/logger.js";

let data: string;
let folders: StateSyncFolders;

beforeEach(() => {
  data = mkdtempSync(path.join(tmpdir(), "folders-"));
  folders = new StateSyncFolders(data);
});

afterEach(() => rmSync(data, { recursive: true, force: true }));

/** A folder with a file that tells whose it is. */
function put(name: string, owner = path.basename(name)): void {
  mkdirSync(path.join(data, name), { recursive: true });
  writeFileSync(path.join(data, name, owner), "");
}

/** A store that the restore has marked. */
async function putRestored(): Promise<void> {
  const folder = path.join(data, "chain.restoring");
  mkdirSync(folder);
  const database = await openDatabase(folder);
  const key = storeKey("meta", Buffer.from("restored", "ascii"));
  await database.write([{ key, value: Buffer.from("7") }], { durable: true });
  await database.close();
  writeFileSync(path.join(folder, "restored"), "");
}

const names = () => readdirSync(data).toSorted();
const isIn = (folder: string, file: string) => existsSync(path.join(data, folder, file));

describe("a start", () => {
  it("changes nothing where nothing was restored", async () => {
    expect(await folders.adopt()).toBe(false);
    expect(names()).toEqual([]);
    put("chain");
    put("statesync/9-ab");
    expect(await folders.adopt()).toBe(false);
    expect(names()).toEqual(["chain", "statesync"]);
  });

  it("takes a complete store, and deletes the old one and the chunks", async () => {
    put("chain");
    put("statesync/9-ab");
    await putRestored();
    expect(await folders.adopt()).toBe(true);
    expect(names()).toEqual(["chain"]);
    expect(isIn("chain", "restored")).toBe(true);
    expect(await folders.adopt()).toBe(false);
    expect(isIn("chain", "restored")).toBe(true);
  });

  it.each([
    ["has blocks, as a backup that was put there since", 5, false],
    ["has the genesis alone", 0, true],
  ])("looks whether the chain that is there %s", async (_name, height, isAdopted) => {
    put("chain", "old");
    const database = await openDatabase(path.join(data, "chain"));
    await database.write([{ key: storeKey("tip"), value: heightBytes(height) }], { durable: true });
    await database.close();
    await putRestored();
    expect(await folders.adopt()).toBe(isAdopted);
    expect(names()).toEqual(["chain"]);
    expect([isIn("chain", "old"), isIn("chain", "restored")]).toEqual([!isAdopted, isAdopted]);
  });

  it("goes on after a crash between the two renames", async () => {
    put("chain.replaced", "old");
    await putRestored();
    expect(await folders.adopt()).toBe(true);
    expect(names()).toEqual(["chain"]);
    expect(isIn("chain", "restored")).toBe(true);
  });

  it("cleans up after a crash behind them", async () => {
    put("chain", "restored");
    put("chain.replaced", "old");
    expect(await folders.adopt()).toBe(false);
    expect(names()).toEqual(["chain"]);
    expect(isIn("chain", "restored")).toBe(true);
  });

  it("deletes a part of a store, and keeps the chain and the chunks", async () => {
    put("chain", "old");
    put("statesync/9-ab");
    const folder = path.join(data, "chain.restoring");
    mkdirSync(folder);
    await (await openDatabase(folder)).close();
    expect(await folders.adopt()).toBe(false);
    expect(names()).toEqual(["chain", "statesync"]);
    expect(isIn("chain", "old")).toBe(true);
  });
});

describe("chunks", () => {
  it("of other snapshots are deleted", async () => {
    put("statesync/9-ab");
    put("statesync/10-cd");
    await folders.keepOnlyChunks("10-cd");
    expect(readdirSync(path.join(data, "statesync"))).toEqual(["10-cd"]);
    await folders.keepOnlyChunks(undefined);
    expect(names()).toEqual([]);
  });

  it.each([
    ["are kept where state sync goes on from the genesis", { isOn: true, height: 0 }, true],
    ["are kept where there is no chain yet", { isOn: true, height: undefined }, true],
    ["are deleted where the chain has blocks", { isOn: true, height: 5 }, false],
    ["are deleted where state sync is off", { isOn: false, height: undefined }, false],
  ])("%s", async (_name, { isOn, height }, isKept) => {
    put("statesync/9-ab");
    if (height !== undefined) {
      put("chain");
      const database = await openDatabase(path.join(data, "chain"));
      const value = heightBytes(height);
      await database.write([{ key: storeKey("tip"), value }], { durable: true });
      await database.close();
    }
    expect(await folders.dropUselessChunks({ isOn })).toBe(!isKept);
    expect(names().includes("statesync")).toBe(isKept);
    expect(await folders.dropUselessChunks({ isOn: false })).toBe(isKept);
    expect(await folders.dropUselessChunks({ isOn: false })).toBe(false);
  });
});

describe("a node that is started without state sync", () => {
  it("deletes what one had fetched that was given up, whatever becomes of the start", async () => {
    put("data/statesync/9-ab");
    const options: Pick<NodeOptions, "home" | "log"> = {
      home: data,
      log: createLogger({ component: "test", level: "silent" }),
    };
    // Neither genesis nor settings beside it: it comes no further.
    const config = { statesync: { enable: false } };
    await expect(startJoiningNode({ ...options, config } as NodeOptions)).rejects.toThrow(
      TypeError,
    );
    expect(readdirSync(path.join(data, "data"))).not.toContain("statesync");
  });
});

describe("room for a snapshot", () => {
  it("is what is free, and what chunks take that it goes on with or deletes", async () => {
    const { bavail, bsize } = statfsSync(data);
    const neededBytes = bavail * bsize + 2 ** 29;
    expect(await folders.hasRoom(0)).toBe(true);
    expect(await folders.hasRoom(neededBytes)).toBe(false);
    // Half of it lies in each of two snapshots' folders, in files that take no room here.
    for (const name of ["9-ab", "8-cd"]) {
      put(`statesync/${name}`, "chunk-0");
      truncateSync(path.join(data, "statesync", name, "chunk-0"), 2 ** 29);
    }
    expect(await folders.hasRoom(neededBytes)).toBe(true);
    expect(await folders.hasRoom(neededBytes + 2 ** 31)).toBe(false);
  });

  it("is taken to be there where the disk does not tell", async () => {
    const untold = new StateSyncFolders(data, async () => ({ freeBytes: 0, totalBytes: 0 }));
    expect(await untold.hasRoom(Number.MAX_SAFE_INTEGER)).toBe(true);
  });
});
