/** The lock of starts that install or build: one that is held is nobody else's. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "@jest/globals";

const LOCK = "../../../bin/lock.mjs";

interface Owner {
  readonly pid: number;
  readonly startTicks: string | undefined;
}

interface SetupLock {
  startTicks(pid: number): string | undefined;
  removeStale(path: string): void;
}

let lock: SetupLock;
let folder: string;
let path: string;

beforeEach(async () => {
  lock = await import(LOCK);
  folder = mkdtempSync(join(tmpdir(), "causeway-lock-"));
  path = join(folder, "setup.lock");
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

function makeLock(owner?: Owner): void {
  mkdirSync(path);
  if (owner !== undefined) writeFileSync(join(path, "owner.json"), JSON.stringify(owner));
}

it("is not taken from a start that took it over after it was judged stale", () => {
  makeLock({ pid: process.pid, startTicks: lock.startTicks(process.pid) });
  lock.removeStale(path);
  expect(existsSync(join(path, "owner.json"))).toBe(true);
  expect(readdirSync(folder)).toEqual(["setup.lock"]);
});

it("is not taken from a start that is just making it", () => {
  makeLock();
  lock.removeStale(path);
  expect(readdirSync(folder)).toEqual(["setup.lock"]);
});

it("goes with a start that is gone, and with one that never wrote who it is", () => {
  makeLock({ pid: process.pid, startTicks: "1" });
  lock.removeStale(path);
  expect(readdirSync(folder)).toEqual([]);
  makeLock();
  utimesSync(path, 1, 1);
  lock.removeStale(path);
  lock.removeStale(path);
  expect(readdirSync(folder)).toEqual([]);
});
