/** The lock of starts that install or build: one that is held is nobody else's. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "@jest/globals";

const LOCK = "../../../../bin/setup/lock.mjs";
const COMPILE = "../../../../bin/setup/compile.mjs";
const ASSETS = "../../../../bin/setup/assets.mjs";

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

it("finds what a build with this very process id left behind, as in a container it may be", async () => {
  const { removeLeftovers }: { removeLeftovers(this: void, final: string): void } = await import(
    COMPILE
  );
  const final = join(folder, "dist");
  for (const name of ["", `.${process.pid}.old`, `.${process.ppid}`]) mkdirSync(`${final}${name}`);
  writeFileSync(join(`${final}.${process.pid}.old`, "x"), "");
  removeLeftovers(final);
  expect(readdirSync(folder).toSorted()).toEqual(["dist", `dist.${process.ppid}`]);
});

it("keeps nothing of the modes of the clone's files in a build", async () => {
  const { copyAssets }: { copyAssets(this: void, root: string, target: string): Promise<void> } =
    await import(ASSETS);
  const [root, target] = [join(folder, "clone"), join(folder, "build")];
  const asset = "cli/home/npm-flags.mjs";
  mkdirSync(join(root, "cli", "home"), { recursive: true });
  writeFileSync(join(root, asset), "", { mode: 0o600 });
  await copyAssets(root, target);
  expect(statSync(join(target, asset)).mode & 0o777).toBe(0o666 & ~process.umask());
});
