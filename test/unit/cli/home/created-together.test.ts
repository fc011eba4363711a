/** Files that are created together, where there are as many as an exchange has customers. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
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
