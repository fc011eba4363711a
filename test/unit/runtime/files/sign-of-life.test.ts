/** Signs that the holder of a lock lives, as others see them. */
import { afterEach, beforeEach, expect, it, jest } from "@jest/globals";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  isBeating,
  isLifeShown,
  showLife,
  startBeat,
} from "../../../../runtime/files/sign-of-life.js";
import { until } from "../../../helpers/until.js";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "causeway-life-"));
});
afterEach(() => {
  jest.restoreAllMocks();
  rmSync(folder, { recursive: true, force: true });
});

it("a file that beats is seen to, also by who stood still for longer than it looks", async () => {
  const file = join(folder, "lock");
  writeFileSync(file, "");
  // As a machine that is stopped for an hour between two looks.
  let nowMs = 0;
  jest.spyOn(performance, "now").mockImplementation(() => (nowMs += 3_600_000));
  const beat = startBeat(file);
  try {
    expect(await isBeating(file)).toBe(true);
  } finally {
    beat.end();
  }
});

it("a file that is deleted is lost to its owner, who is told once, and is not made anew", async () => {
  const file = join(folder, "lock");
  writeFileSync(file, "own");
  const onLost = jest.fn();
  const beat = startBeat(file, { isOwn: (content) => content === "own", onLost });
  try {
    expect(await isBeating(file)).toBe(true);
    expect(onLost).not.toHaveBeenCalled();
    rmSync(file);
    await until(() => onLost.mock.calls.length > 0, { timeoutMs: 10_000 });
    writeFileSync(file, "own");
    expect(await isBeating(file)).toBe(false);
    expect(onLost).toHaveBeenCalledTimes(1);
  } finally {
    beat.end();
  }
});

it("who shows life does not end with a connection that cannot be taken", async () => {
  const file = join(folder, "life");
  const listening = jest.spyOn(Server.prototype, "listen");
  const sign = await showLife(file);
  const [taking] = listening.mock.contexts;
  try {
    for (let times = 0; times < 2; times += 1)
      (taking as Server).emit("error", new Error("EMFILE"));
    expect(await isLifeShown(file)).toBe(true);
  } finally {
    await sign?.end();
  }
});
