/** A folder over a network may do what it is asked, lose the answer, and refuse the repeated question. */
import { afterEach, beforeEach, expect, it, jest } from "@jest/globals";
import * as fs from "node:fs";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

jest.resetModules();
jest.unstable_mockModule("node:fs", () => ({
  ...fs,
  linkSync(from: string, to: string) {
    fs.linkSync(from, to);
    throw Object.assign(new Error("EEXIST: file already exists, link"), { code: "EEXIST" });
  },
}));
const { createFileOnce, SECRET_MODE } = await import("../../../../runtime/files/durable-file.js");
const { takeLockFile } = await import("../../../../runtime/files/lock-file.js");

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "causeway-answer-"));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

it("a file that got its name was created, and the next one of that name was not", () => {
  const file = join(folder, "key");
  expect(createFileOnce(file, "first", SECRET_MODE)).toBe(true);
  expect(createFileOnce(file, "second", SECRET_MODE)).toBe(false);
  expect([readFileSync(file, "utf8"), readdirSync(folder)]).toEqual(["first", ["key"]]);
});

it("a lock that was taken is this process' own, and is released", async () => {
  const lock = await takeLockFile(join(folder, "lock"));
  await expect(takeLockFile(join(folder, "lock"))).rejects.toMatchObject({ code: "LOCK_HELD" });
  await lock.release();
  expect(readdirSync(folder)).toEqual([]);
});
