/** What a home remembers of its ledger, where several processes write it. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, jest } from "@jest/globals";
import { HomeMark, markPath } from "../../../ledger/guard/home-mark.js";
import { takeLockFile } from "../../../runtime/files/lock-file.js";

let home: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "causeway-mark-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const markAt = (eventSeq: number, nextAddressIndex: number) => ({
  ledgerId: "6f1f9e0c-6f6e-4a44-9d0e-0d6c9b5f0a11",
  epoch: 1,
  nextAddressIndex,
  eventSeq,
});

const onDisk = () => JSON.parse(readFileSync(markPath(home), "utf8")) as unknown;

it("is never lowered by a process that knows less than another one has told", async () => {
  const [one, other] = [await HomeMark.open(home), await HomeMark.open(home)];
  await one.raise(markAt(120, 3));
  // It had read its ledger before.
  await other.raise(markAt(110, 5));
  expect(onDisk()).toEqual(markAt(120, 5));
  expect(other.value).toEqual(markAt(120, 5));
});

it("keeps with each number the time of what has it", async () => {
  const [one, other] = [await HomeMark.open(home), await HomeMark.open(home)];
  const at = (second: number) => `2026-11-27T03:26:${second}.123456Z`;
  await one.raise({ ...markAt(7, 3), eventAt: at(30), readAt: at(31), addressAt: at(29) });
  // It had read an address more, and an event less.
  await other.raise({ ...markAt(6, 4), eventAt: at(20), readAt: at(21), addressAt: at(28) });
  const both = { ...markAt(7, 4), eventAt: at(30), readAt: at(31), addressAt: at(28) };
  expect(onDisk()).toEqual(both);
  // Behind a recovery they are given out anew.
  await one.raise({ ...markAt(7, 4), epoch: 2, addressAt: at(40) });
  expect(onDisk()).toEqual({ ...markAt(7, 4), epoch: 2, addressAt: at(40) });
});

it("is not taken for a missing one where it has become unreadable", async () => {
  const mark = await HomeMark.open(home);
  await mark.raise(markAt(1, 1));
  writeFileSync(markPath(home), "{");
  await expect(mark.raise(markAt(2, 1))).rejects.toMatchObject({ code: "HOME_MARK_UNUSABLE" });
  expect(readFileSync(markPath(home), "utf8")).toBe("{");
  rmSync(markPath(home));
  await mark.raise(markAt(3, 1));
  expect(onDisk()).toEqual(markAt(3, 1));
});

it("names the process that keeps its lock", async () => {
  const mark = await HomeMark.open(home);
  await mark.raise(markAt(1, 1));
  const lock = await takeLockFile(`${markPath(home)}.lock`);
  // Nobody is waited for as long as it is a holder that stands still.
  const { setTimeout: wait } = globalThis;
  const impatient = (work: () => void, ms?: number) => wait(work, Math.min(ms ?? 0, 20));
  jest.spyOn(globalThis, "setTimeout").mockImplementation(impatient);
  try {
    await expect(mark.raise(markAt(2, 1))).rejects.toMatchObject({
      code: "HOME_MARK_UNUSABLE",
      message: expect.stringContaining(`(the process ${process.pid} holds the lock`),
      retriable: true,
    });
  } finally {
    jest.restoreAllMocks();
    await lock.release();
  }
  await mark.raise(markAt(2, 1));
  expect(onDisk()).toEqual(markAt(2, 1));
});

it("is never lowered by processes that write at once", async () => {
  const [one, other] = [await HomeMark.open(home), await HomeMark.open(home)];
  for (let turn = 1; turn <= 20; turn += 1) {
    // Each knows of the other's only what is on disk.
    await Promise.all([one.raise(markAt(turn, 0)), other.raise(markAt(0, turn))]);
    expect(onDisk()).toEqual(markAt(turn, turn));
  }
  expect(readdirSync(join(home, "data"))).toEqual(["ledger-mark.json"]);
});

it.each([
  ["an epoch that no ledger's column holds", { epoch: 2 ** 31 }],
  ["an epoch of before the first", { epoch: 0 }],
  ["more addresses than an xpub has", { nextAddressIndex: 2 ** 31 + 1 }],
  ["addresses below none", { nextAddressIndex: -1 }],
  ["a number of an event behind which none is left", { eventSeq: Number.MAX_SAFE_INTEGER }],
  ["a time that is none", { eventAt: "yesterday" }],
  ["a time of an address that is none", { addressAt: "yesterday" }],
  ["a time that no database reads", { readAt: "2026-13-01T00:00:00.000000Z" }],
])("is not believed with %s", async (_what, wrong) => {
  const mark = await HomeMark.open(home);
  const times = { eventAt: "2026-11-27T03:26:35.123456Z", readAt: "2026-11-27T03:26:36.123456Z" };
  await mark.raise({ ...markAt(1, 1), ...times });
  expect((await HomeMark.open(home)).value).toMatchObject(times);
  // What the guard writes into the ledger stays there: such a one could never be recovered.
  writeFileSync(markPath(home), JSON.stringify({ ...markAt(1, 1), ...times, ...wrong }));
  await expect(HomeMark.open(home)).rejects.toMatchObject({ code: "HOME_MARK_UNUSABLE" });
});
