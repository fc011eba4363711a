/** A lock between processes: who waits for it, for how long, and what stops the waiting. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { awaitLockFile, takeLockFile } from "../../../../runtime/files/lock-file.js";

let folder = "";

function lockPath(): string {
  folder = mkdtempSync(join(tmpdir(), "causeway-lock-file-"));
  return join(folder, "some.lock");
}

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const never = () => new AbortController().signal;

describe("a lock file", () => {
  it("is refused to a second holder with its code, and to be tried again", async () => {
    const path = lockPath();
    const first = await takeLockFile(path);
    await expect(takeLockFile(path)).rejects.toMatchObject({
      code: "LOCK_HELD",
      retriable: true,
      details: { pid: process.pid },
    });
    await first.release();
    await (await takeLockFile(path)).release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it("goes to one after the other of all who wait", async () => {
    const path = lockPath();
    let holders = 0;
    let most = 0;
    const work = async () => {
      const lock = await awaitLockFile(path, { patience: never(), signal: never() });
      holders += 1;
      most = Math.max(most, holders);
      await new Promise((resolve) => setTimeout(resolve, 1));
      holders -= 1;
      await lock.release();
    };
    await Promise.all(Array.from({ length: 20 }, work));
    expect(most).toBe(1);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("is waited for until patience ends, or the signal fires with its reason", async () => {
    const path = lockPath();
    const lock = await takeLockFile(path);
    const patience = new AbortController();
    const ending = new AbortController();
    const impatient = awaitLockFile(path, { patience: patience.signal, signal: never() });
    const ended = awaitLockFile(path, { patience: never(), signal: ending.signal });
    patience.abort();
    ending.abort(new Error("stopped"));
    await expect(impatient).rejects.toMatchObject({ code: "LOCK_HELD" });
    await expect(ended).rejects.toThrow("stopped");
    await lock.release();
  });

  it("that a power cut left empty is held by nobody", async () => {
    const path = lockPath();
    writeFileSync(path, "");
    const lock = await awaitLockFile(path, { patience: never(), signal: never() });
    expect(lock.tookOver).toBe(true);
    await lock.release();
    expect(readdirSync(folder)).toEqual([]);
  });
});
