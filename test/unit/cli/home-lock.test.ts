import { afterEach, describe, expect, it } from "@jest/globals";
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lockHome } from "../../../cli/home/home-lock.js";
import { recordProcess, isStillRunning } from "../../../runtime/process/process-identity.js";

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
