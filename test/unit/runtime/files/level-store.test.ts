/** Faults of opening a store are told apart by what level says, not by the folder's name. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { spawnSync } from "node:child_process";
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LevelStore, openLevelStore } from "../../../../runtime/files/level-store.js";

/** What a walk over keys alone gives. */
async function keysOf(store: LevelStore, key: Buffer): Promise<Buffer[]> {
  const found: Buffer[] = [];
  for await (const one of store.keys({ from: key, to: key })) found.push(one);
  return found;
}

const OPTIONS = { cacheBytes: 1 << 20, writeBufferBytes: 1 << 20 };

describe("a store in a folder whose name has a lock in it", () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "causeway-blockchain-"));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  it("is in use while it is open", async () => {
    const store = await openLevelStore(folder, OPTIONS);
    await expect(openLevelStore(folder, OPTIONS)).rejects.toMatchObject({ code: "LOCKED" });
    await store.close();
  });

  it("is not in use when it is damaged", async () => {
    await (await openLevelStore(folder, OPTIONS)).close();
    for (const name of readdirSync(folder)) {
      if (name.startsWith("MANIFEST")) writeFileSync(join(folder, name), "x");
    }
    await expect(openLevelStore(folder, OPTIONS)).rejects.toMatchObject({
      code: "CORRUPT",
      message: expect.stringContaining(folder),
    });
  });

  it("is damaged where a file of it was cut short", async () => {
    const key = Buffer.from("kept");
    const store = await openLevelStore(folder, OPTIONS);
    await store.write([{ key, value: Buffer.alloc(1_000, 7) }], { durable: true });
    await store.close();
    // What was written last is a table once the store was opened again.
    await (await openLevelStore(folder, OPTIONS)).close();
    const table = readdirSync(folder).find((name) => name.endsWith(".ldb")) ?? "";
    truncateSync(join(folder, table), 100);
    const torn = await openLevelStore(folder, OPTIONS);
    try {
      expect(() => torn.get(key)).toThrow(expect.objectContaining({ code: "CORRUPT" }));
      await expect(keysOf(torn, key)).rejects.toMatchObject({ code: "CORRUPT" });
    } finally {
      await torn.close();
    }
  });

  it("is not made anew over its records where the file that names them is gone", async () => {
    const key = Buffer.from("kept");
    const store = await openLevelStore(folder, OPTIONS);
    await store.write([{ key, value: key }], { durable: true });
    await store.close();
    await (await openLevelStore(folder, OPTIONS)).close();
    const current = join(folder, "CURRENT");
    renameSync(current, `${folder}.current`);
    const left = readdirSync(folder);
    await expect(openLevelStore(folder, OPTIONS)).rejects.toMatchObject({
      code: "CORRUPT",
      message: expect.stringContaining("CURRENT is gone"),
    });
    expect(readdirSync(folder)).toEqual(left);
    renameSync(`${folder}.current`, current);
    const again = await openLevelStore(folder, OPTIONS);
    expect(again.get(key)).toEqual(key);
    await again.close();
  });

  it("is not damaged where a file of it cannot be opened for another reason", async () => {
    const key = Buffer.from("kept");
    const store = await openLevelStore(folder, OPTIONS);
    await store.write([{ key, value: key }], { durable: true });
    await store.close();
    await (await openLevelStore(folder, OPTIONS)).close();
    const table = join(folder, readdirSync(folder).find((name) => name.endsWith(".ldb")) ?? "");
    const later = await openLevelStore(folder, OPTIONS);
    try {
      renameSync(table, `${table}.away`);
      symlinkSync(table, table);
      const refused = { code: "READ_FAILED", message: expect.stringContaining("symbolic links") };
      expect(() => later.get(key)).toThrow(expect.objectContaining(refused));
      await expect(later.few({ from: key, to: key })).rejects.toMatchObject(refused);
      await expect(keysOf(later, key)).rejects.toMatchObject(refused);
      renameSync(`${table}.away`, table);
      expect(later.get(key)).toEqual(key);
    } finally {
      await later.close();
    }
  });

  it("gives nothing from behind what cannot be read, to whoever would stop there, too", async () => {
    const key = (letter: string, index: number) => Buffer.from(`${letter}${1_000 + index}`);
    const tables: string[] = [];
    // What is written between two openings becomes a table of its own.
    for (const letter of ["a", "b", "c"]) {
      const store = await openLevelStore(folder, OPTIONS);
      const writes = Array.from({ length: 300 }, (_, index) => {
        return { key: key(letter, index), value: Buffer.from([index & 255]) };
      });
      await store.write(writes, { durable: true });
      await store.close();
      await (await openLevelStore(folder, OPTIONS)).close();
      const names = readdirSync(folder).filter((name) => name.endsWith(".ldb"));
      tables.push(...names.filter((name) => !tables.includes(name)));
    }
    expect(tables).toHaveLength(3);
    const store = await openLevelStore(folder, OPTIONS);
    const range = { from: key("a", 0), to: key("c", 299) };
    const seen: string[] = [];
    const walk = async (walked: AsyncIterable<[Buffer, Buffer] | Buffer>) => {
      seen.length = 0;
      for await (const one of walked) {
        const letter = (Array.isArray(one) ? one[0] : one).toString().slice(0, 1);
        if (seen.at(-1) !== letter) seen.push(letter);
        if (seen.length === 2) return;
      }
    };
    try {
      await walk(store.entries(range));
      expect(seen).toEqual(["a", "b"]);
      await store.close();
      const table = join(folder, tables[1] ?? "");
      renameSync(table, `${table}.away`);
      symlinkSync(table, table);
      const torn = await openLevelStore(folder, OPTIONS);
      const refused = { code: "READ_FAILED" };
      for (const reverse of [false, true]) {
        const behind = reverse ? "a" : "c";
        await expect(walk(torn.entries({ ...range, reverse }))).rejects.toMatchObject(refused);
        expect(seen).not.toContain(behind);
        await expect(walk(torn.keys({ ...range, reverse }))).rejects.toMatchObject(refused);
        expect(seen).not.toContain(behind);
      }
      // As an account's newest version up to a height: what is older must not be taken for it.
      const newest = { from: key("a", 0), to: key("b", 299), reverse: true, limit: 1 };
      await expect(torn.few(newest)).rejects.toMatchObject(refused);
      await torn.close();
    } finally {
      await store.close();
    }
  });

  it("is not in use when its lock cannot be taken for another reason", async () => {
    rmSync(folder, { recursive: true });
    writeFileSync(folder, "");
    await expect(openLevelStore(folder, OPTIONS)).rejects.toMatchObject({ code: "UNUSABLE" });
  });

  it("is not damaged when the disk is full, and opens again behind it", async () => {
    const store = await openLevelStore(folder, OPTIONS);
    const key = Buffer.from("kept");
    await store.write([{ key, value: key }], { durable: true });
    await store.close();
    // What was written last becomes a table as the store opens, and the lists of its tables are written
    // anew: their next numbers lead to the device that is always full.
    const numbers = Array.from({ length: 40 }, (_, nth) => String(nth + 1).padStart(6, "0"));
    const taken = new Set(readdirSync(folder));
    const names = numbers.flatMap((number) => [
      `${number}.ldb`,
      `${number}.log`,
      `MANIFEST-${number}`,
    ]);
    const full = names.filter((name) => !taken.has(name)).map((name) => join(folder, name));
    for (const path of full) symlinkSync("/dev/full", path);
    await expect(openLevelStore(folder, OPTIONS)).rejects.toMatchObject({
      code: "UNUSABLE",
      message: expect.stringContaining("No space left on device"),
    });
    for (const path of full) rmSync(path, { force: true });
    const again = await openLevelStore(folder, OPTIONS);
    expect(again.get(key)).toEqual(key);
    await again.close();
  });
});

describe("a store whose disk was full for a moment", () => {
  let disk: string;

  beforeEach(() => {
    disk = mkdtempSync(join(tmpdir(), "causeway-full-"));
  });
  afterEach(() => {
    rmSync(disk, { recursive: true });
  });

  /** Writes until there is no room left. */
  function fill(file: string): void {
    const handle = openSync(file, "w");
    try {
      for (;;) writeSync(handle, Buffer.alloc(4_096));
    } catch (error) {
      expect(error).toMatchObject({ code: "ENOSPC" });
    } finally {
      closeSync(handle);
    }
  }

  it("acknowledges no write that would be lost with the half one before it", async () => {
    const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=2m", "none", disk]);
    if (mounted.status !== 0) {
      process.stdout.write("left out: no tmpfs can be mounted here\n");
      return;
    }
    try {
      const folder = join(disk, "store");
      const ballast = join(disk, "ballast");
      const acknowledged: string[] = [];
      const open = () => openLevelStore(folder, OPTIONS);
      let store = await open();
      const write = async (name: string, sizeBytes: number) => {
        const key = Buffer.from(name);
        await store.write([{ key, value: Buffer.alloc(sizeBytes, 1) }], { durable: true });
        acknowledged.push(name);
      };
      await write("before", 1_000);
      fill(ballast);
      const full = write("full", 50_000);
      // On its way already when that fails.
      const beside = write("beside", 100).catch(() => undefined);
      await expect(full).rejects.toMatchObject({ code: "WRITE_FAILED" });
      await beside;
      rmSync(ballast);
      await expect(write("behind", 100)).rejects.toMatchObject({
        code: "WRITE_FAILED",
        message: expect.stringContaining(`an earlier write to ${folder} failed`),
        details: { folder, reason: expect.stringContaining("No space left") },
      });
      expect(store.get(Buffer.from("before"))).toHaveLength(1_000);
      await store.close();
      // Whoever opens it anew goes on.
      store = await open();
      await write("anew", 100);
      await store.close();
      store = await open();
      for (const name of acknowledged) {
        expect([name, store.get(Buffer.from(name)) === undefined]).toEqual([name, false]);
      }
      await store.close();
    } finally {
      // Whatever is still open on it.
      spawnSync("umount", ["-l", disk]);
    }
  });
});

describe("entries of a range", () => {
  it("are the same one by one and together, forwards, backwards and up to a limit", async () => {
    const folder = mkdtempSync(join(tmpdir(), "causeway-level-"));
    const store = await openLevelStore(folder, OPTIONS);
    try {
      const keys = Array.from({ length: 700 }, (_, index) =>
        Buffer.from([index >> 8, index & 255]),
      );
      const writes = keys.map((key) => ({ key, value: Buffer.concat([key, key]) }));
      await store.write(writes, { durable: false });
      const whole = { from: Buffer.from([0, 3]), to: Buffer.from([2, 100]) };
      for (const range of [
        whole,
        { ...whole, limit: 1 },
        { ...whole, reverse: true, limit: 300 },
      ]) {
        const walked: [Buffer, Buffer][] = [];
        for await (const entry of store.entries(range)) walked.push(entry);
        expect(await store.few(range)).toEqual(walked);
        const expected = keys.slice(3, 613);
        if ("reverse" in range) expected.reverse();
        const limit = "limit" in range ? range.limit : undefined;
        expect(walked.map(([key]) => key)).toEqual(expected.slice(0, limit));
      }
    } finally {
      await store.close();
      rmSync(folder, { recursive: true });
    }
  });
});
