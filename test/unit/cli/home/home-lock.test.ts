import { afterEach, describe, expect, it } from "@jest/globals";
import { spawn } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { lockHome } from "../../../../cli/home/home-lock.js";
import { isLifeShown, showLife, startBeat } from "../../../../runtime/files/sign-of-life.js";
import { recordProcess, isStillRunning } from "../../../../runtime/process/process-identity.js";
import { sleep } from "../../../../runtime/process/task.js";
import { until } from "../../../helpers/until.js";

const folders: string[] = [];

function newHome(): { home: string; lock: string } {
  const home = mkdtempSync(join(tmpdir(), "causeway-lock-"));
  folders.push(home);
  return { home, lock: join(home, "kit.lock") };
}

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Identity of a process that has ended. */
async function deadProcess(): Promise<{ pid: number; startedAt: string }> {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
  const identity = recordProcess(child.pid ?? 0);
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await ended;
  return identity;
}

describe("the lock of a home", () => {
  it("refuses a second holder, names the home, and is free after release", async () => {
    const { home, lock } = newHome();
    const first = await lockHome(lock, home);
    expect(first.tookOver).toBe(false);
    await expect(lockHome(lock, home)).rejects.toMatchObject({
      code: "HOME_LOCKED",
      message: expect.stringContaining(home),
    });
    await first.release();
    await first.release();
    const second = await lockHome(lock, home);
    await second.release();
    expect(readdirSync(home)).toEqual([]);
  });

  it("takes over the lock of a process that is gone", async () => {
    const { home, lock } = newHome();
    const id = "00000000-0000-4000-8000-000000000000";
    writeFileSync(lock, JSON.stringify({ ...(await deadProcess()), id }));
    const held = await lockHome(lock, home);
    expect(held.tookOver).toBe(true);
    await expect(lockHome(lock, home)).rejects.toMatchObject({ code: "HOME_LOCKED" });
    await held.release();
    expect(readdirSync(home)).toEqual([]);
  });

  it("takes over a lock whose pid belongs to another process by now", async () => {
    const { home, lock } = newHome();
    const id = "00000000-0000-4000-8000-000000000001";
    writeFileSync(lock, JSON.stringify({ pid: process.pid, startedAt: "boot:1", id }));
    const held = await lockHome(lock, home);
    expect(held.tookOver).toBe(true);
    await held.release();
  });

  it("takes over an unreadable lock", async () => {
    const { home, lock } = newHome();
    writeFileSync(lock, "");
    const held = await lockHome(lock, home);
    expect(held.tookOver).toBe(true);
    await held.release();
  });

  describe("of a kit in another container, whose process is not to be seen from here", () => {
    const id = "00000000-0000-4000-8000-000000000003";
    const elsewhere = { ...recordProcess(process.pid), space: "pid:[1]", startedAt: "boot:1", id };

    it("is respected as long as its holder listens, however long the home's path is", async () => {
      const { home: parent } = newHome();
      const home = join(parent, "deep-".repeat(30));
      mkdirSync(home);
      const lock = join(home, "kit.lock");
      writeFileSync(lock, JSON.stringify(elsewhere));
      const alive = await showLife(`${lock}.${id}.sock`);
      const refused = lockHome(lock, home);
      await expect(refused).rejects.toMatchObject({ code: "HOME_LOCKED" });
      await expect(refused).rejects.toThrow("in another container");
      await alive?.end();
      const held = await lockHome(lock, home);
      expect(held.tookOver).toBe(true);
      await held.release();
      expect(readdirSync(home)).toEqual([]);
    });

    it("is taken over where it was killed, and what it left behind goes", async () => {
      const { home, lock } = newHome();
      writeFileSync(lock, JSON.stringify(elsewhere));
      const socket = `${lock}.${id}.sock`;
      const source = `require("node:net").createServer().listen(process.argv[1], () => process.kill(process.pid, "SIGKILL"))`;
      const killed = spawn(process.execPath, ["-e", source, socket], { stdio: "ignore" });
      await new Promise((resolve) => killed.once("exit", resolve));
      expect(readdirSync(home)).toContain(basename(socket));
      const held = await lockHome(lock, home);
      expect(held.tookOver).toBe(true);
      await held.release();
      expect(readdirSync(home)).toEqual([]);
    });
  });

  it("of a kit in another container is respected in a folder that takes no socket", async () => {
    const { home, lock } = newHome();
    const id = "00000000-0000-4000-8000-000000000004";
    const unseen = { ...(await deadProcess()), beats: true, id };
    writeFileSync(lock, JSON.stringify(unseen));
    const beat = startBeat(lock);
    const refused = lockHome(lock, home);
    await expect(refused).rejects.toMatchObject({ code: "HOME_LOCKED" });
    await expect(refused).rejects.toThrow("in another container");
    beat.end();
    const held = await lockHome(lock, home);
    expect(held.tookOver).toBe(true);
    await held.release();
  });

  describe("of a kit on another machine, in a network folder", () => {
    /** Process ids count in the same space as here, as they do outside of containers, and sockets lead nowhere. */
    async function lockOfOther(): Promise<{
      home: string;
      lock: string;
      end: () => Promise<void>;
    }> {
      const { home, lock } = newHome();
      const held = await lockHome(lock, home);
      const record = JSON.parse(readFileSync(lock, "utf8"));
      writeFileSync(lock, JSON.stringify({ ...record, startedAt: "boot:1" }));
      return { home, lock, end: () => held.release() };
    }

    it("is respected as long as its holder lives, and is named so", async () => {
      const { home, lock, end } = await lockOfOther();
      const refused = lockHome(lock, home);
      await expect(refused).rejects.toMatchObject({ code: "HOME_LOCKED" });
      await expect(refused).rejects.toThrow("on another machine");
      await end();
      const held = await lockHome(lock, home);
      expect(held.tookOver).toBe(false);
      await held.release();
    });

    it("is taken over when nothing of its holder was seen for a while", async () => {
      const { home, lock, end } = await lockOfOther();
      const record = readFileSync(lock);
      await end();
      writeFileSync(lock, record);
      const held = await lockHome(lock, home);
      expect(held.tookOver).toBe(true);
      await held.release();
      expect(readdirSync(home)).toEqual([]);
    });
  });

  it("tells its holder that another kit has taken it over, and beats for that one no more", async () => {
    const { home, lock } = newHome();
    const held = await lockHome(lock, home);
    const record = JSON.parse(readFileSync(lock, "utf8"));
    // As behind a machine that stood still: its lock was replaced meanwhile.
    writeFileSync(lock, JSON.stringify({ ...record, id: "00000000-0000-4000-8000-000000000005" }));
    utimesSync(lock, 1_000, 1_000);
    await until(() => held.lost.aborted, { timeoutMs: 10_000 });
    await sleep(1_100, { signal: new AbortController().signal });
    expect(statSync(lock).mtimeMs).toBe(1_000_000);
    await held.release();
    expect(readdirSync(home)).toEqual(["kit.lock"]);
  });

  it("that nobody took over is not lost to who holds it or has let go of it", async () => {
    const { home, lock } = newHome();
    const held = await lockHome(lock, home);
    const before = statSync(lock).mtimeMs;
    await until(() => statSync(lock).mtimeMs !== before, { timeoutMs: 10_000 });
    await held.release();
    await sleep(1_100, { signal: new AbortController().signal });
    expect(held.lost.aborted).toBe(false);
  });

  it("shows those in other containers that its holder lives", async () => {
    const { home, lock } = newHome();
    const held = await lockHome(lock, home);
    const { id, space } = JSON.parse(readFileSync(lock, "utf8"));
    expect(space).toBe(readlinkSync("/proc/self/ns/pid"));
    expect(await isLifeShown(`${lock}.${id}.sock`)).toBe(true);
    await held.release();
    expect(await isLifeShown(`${lock}.${id}.sock`)).toBe(false);
  });

  it("gives a dead lock to exactly one of many starts at once", async () => {
    const dead = await deadProcess();
    for (let round = 0; round < 10; round++) {
      const { home, lock } = newHome();
      const id = "00000000-0000-4000-8000-000000000002";
      writeFileSync(lock, JSON.stringify({ ...dead, id }));
      const results = await Promise.allSettled(
        Array.from({ length: 8 }, () => lockHome(lock, home)),
      );
      const held = results.filter((result) => result.status === "fulfilled");
      expect(`round ${round}: ${held.length}`).toBe(`round ${round}: 1`);
    }
  });

  it("tells a process from a later one with the same pid", async () => {
    const own = recordProcess(process.pid);
    expect(isStillRunning(own)).toBe(true);
    expect(isStillRunning({ ...own, startedAt: "boot:1" })).toBe(false);
    expect(isStillRunning(await deadProcess())).toBe(false);
  });
});
