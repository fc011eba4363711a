/** An npm that hangs with a script of its own: nothing of it is left, however the start ends. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { until } from "../../../helpers/until.js";
import { cloneForEachTest } from "./fresh-clone.js";

/** Zombies are gone for this purpose: only their parent's table still knows them. */
function isRunning(pid: number) {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

describe("bin/causeway.mjs in a fresh clone", () => {
  let clone: string;

  const { runCommand, startStuck } = cloneForEachTest((made) => {
    clone = made;
  });

  it.each([
    ["SIGTERM", 143],
    ["SIGINT", 130],
  ] as const)("leaves nothing of a hanging npm when it gets %s", async (signal, code) => {
    const { child, ended, pids } = await startStuck();
    child.kill(signal);
    expect(await ended).toEqual([code, null]);
    await until(() => !pids.some(isRunning), { timeoutMs: 10_000 });
  });

  it("leaves nothing of it either where npm passes the terminal's own Ctrl-C on", async () => {
    const { child, ended, pids } = await startStuck();
    child.kill("SIGINT");
    await until(() => existsSync(join(clone, "npm-signals")), { timeoutMs: 10_000 });
    child.kill("SIGINT");
    expect(await ended).toEqual([130, null]);
    await until(() => !pids.some(isRunning), { timeoutMs: 10_000 });
  });

  it("ends the npm of a start that was killed before it installs itself", async () => {
    const { child, ended, pids } = await startStuck();
    child.kill("SIGKILL");
    await ended;
    expect(pids.every(isRunning)).toBe(true);
    expect((await runCommand()).code).toBe(0);
    await until(() => !pids.some(isRunning), { timeoutMs: 10_000 });
    expect(readdirSync(join(clone, ".cache"))).toEqual([]);
  });
});
