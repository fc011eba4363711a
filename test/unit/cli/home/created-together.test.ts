/** Files that are created together, where there are as many as an exchange has customers. */
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, jest } from "@jest/globals";
import { createFilesOnce, SECRET_MODE } from "../../../../cli/home/home-file.js";

const COUNT = 5_000;

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "causeway-together-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const files = Array.from({ length: COUNT }, (_, index) => ({
  path: () => join(folder, `${index}.json`),
  mode: SECRET_MODE,
  content: () => "{}",
}));

const inFolder = () => files.map((file) => ({ ...file, path: file.path() }));

it("end with the reason of who stops them, and none of them stays", async () => {
  const controller = new AbortController();
  const stop = new Error("stopped by a person");
  setImmediate(() => controller.abort(stop));
  const created = createFilesOnce(inFolder(), { signal: controller.signal });
  await expect(created).rejects.toBe(stop);
  expect(readdirSync(folder)).toEqual([]);
});

it("are told of one by one as they are written", async () => {
  const { signal } = new AbortController();
  let [told, last] = [0, 0];
  const onProgress = (done: number, of: number) => {
    told += 1;
    last = of - done;
  };
  expect(await createFilesOnce(inFolder(), { signal, onProgress })).toBeUndefined();
  expect([told, last, readdirSync(folder).length]).toEqual([COUNT, 0, COUNT]);
});

it("are gone where the disk fails when their names are forced on it", async () => {
  const real = await import("../../../../runtime/files/folder.js");
  let forced = 0;
  jest.resetModules();
  jest.unstable_mockModule("../../../../runtime/files/folder.js", () => ({
    ...real,
    syncFolderSync() {
      forced += 1;
      if (forced === 2) throw Object.assign(new Error("EIO: i/o error"), { code: "EIO" });
    },
  }));
  const onFailingDisk = await import("../../../../cli/home/home-file.js");
  const { signal } = new AbortController();
  await expect(onFailingDisk.createFilesOnce(inFolder(), { signal })).rejects.toMatchObject({
    code: "HOME_UNUSABLE",
  });
  expect([forced, readdirSync(folder)]).toEqual([2, []]);
});

it("are created in a folder that may be written and not listed", async () => {
  chmodSync(folder, 0o333);
  const file = inFolder().slice(0, 1);
  const { signal } = new AbortController();
  // Nothing is forbidden to root.
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(65_534);
  try {
    expect(await createFilesOnce(file, { signal })).toBeUndefined();
  } finally {
    if (isRoot) process.seteuid?.(0);
    chmodSync(folder, 0o700);
  }
  expect(file.map(({ path }) => readFileSync(path, "utf8"))).toEqual(["{}"]);
});
