/** Signs that the holder of a lock lives, as others see them. */
import { afterEach, beforeEach, expect, it, jest } from "@jest/globals";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as errors from "../../../../chain/errors.js";
import { until } from "../../../helpers/until.js";

/** Faults that were looked at: a file that is not there is one. */
let faults = 0;
jest.resetModules();
jest.unstable_mockModule("../../../../chain/errors.js", () => ({
  ...errors,
  errorCode(error: unknown) {
    faults += 1;
    return errors.errorCode(error);
  },
}));
const { isBeating, isLifeShown, showLife, startBeat } = await import(
  "../../../../runtime/files/sign-of-life.js"
);

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

const whose = (content: string) => {
  if (content === "own") return "own";
  return content === "" ? "unreadable" : "other";
};

it("a file that cannot be read once, or is gone for a moment, is not lost to its owner", async () => {
  const file = join(folder, "lock");
  writeFileSync(file, "own");
  const timers = jest.spyOn(globalThis, "setInterval");
  timers.mockReturnValue(setTimeout(() => undefined));
  const onLost = jest.fn();
  const read = jest.fn(whose);
  const beat = startBeat(file, { whose: read, onLost });
  const [[next] = []] = timers.mock.calls;
  const looks = () => read.mock.calls.length + faults;
  /** One look that finds what is there now: a beat is left out while the look before has not ended. */
  const beatNow = async () => {
    const before = looks();
    const isSeen = () => looks() > before;
    const beats = () => isSeen() || (next?.(), isSeen());
    await until(beats, { timeoutMs: 10_000, what: "a look at the file" });
  };
  // As a tool that writes the same bytes in their place: it cuts off what is there first.
  for (const content of ["", "own", "", "own"]) {
    writeFileSync(file, content);
    await beatNow();
  }
  renameSync(file, `${file}.aside`);
  await beatNow();
  renameSync(`${file}.aside`, file);
  await beatNow();
  expect(onLost).not.toHaveBeenCalled();
  beat.end();
});

it("a file that is another's is lost at the first look, one that stays unreadable at the second", async () => {
  const looks = async (content: string): Promise<number> => {
    const file = join(folder, "lock");
    writeFileSync(file, content);
    const looked = jest.fn(whose);
    const onLost = jest.fn();
    const beat = startBeat(file, { whose: looked, onLost });
    await until(() => onLost.mock.calls.length > 0, { timeoutMs: 10_000 });
    beat.end();
    return looked.mock.calls.length;
  };
  expect(await looks("another's")).toBe(1);
  expect(await looks("")).toBe(2);
});

it("a file that is deleted is lost to its owner, who is told once, and is not made anew", async () => {
  const file = join(folder, "lock");
  writeFileSync(file, "own");
  const onLost = jest.fn();
  const beat = startBeat(file, { whose, onLost });
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
