/** Signs that the holder of a lock lives, as others see them. */
import { afterEach, beforeEach, expect, it, jest } from "@jest/globals";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isBeating, startBeat } from "../../../../runtime/files/sign-of-life.js";

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
