/** A file that is replaced while it is what was looked at, though others write it without asking. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { exchangeFile, replaceFile, SECRET_MODE } from "../../../../runtime/files/durable-file.js";

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "causeway-exchange-"));
  file = join(folder, "switch.json");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const read = (path: string) => (existsSync(path) ? readFileSync(path, "utf8") : undefined);

const exchange = (looked: string | undefined, happens?: () => void) =>
  exchangeFile(
    file,
    (path) => {
      const isSame = read(path) === looked;
      happens?.();
      return isSame;
    },
    { content: "lifted", mode: SECRET_MODE },
  );

it("is replaced where it is what was looked at, also where there was none", async () => {
  expect(await exchange(undefined)).toBe(true);
  expect(read(file)).toBe("lifted");
  writeFileSync(file, "set");
  expect(await exchange("set")).toBe(true);
  expect([read(file), readdirSync(folder)]).toEqual(["lifted", ["switch.json"]]);
});

it("stays where it was written between the look and the replacement", async () => {
  writeFileSync(file, "set again");
  for (const looked of ["set", undefined]) {
    expect(await exchange(looked)).toBe(false);
    expect([read(file), readdirSync(folder)]).toEqual(["set again", ["switch.json"]]);
  }
});

it.each([
  { what: "that had it as it was looked at", former: "set" },
  { what: "that had another one", former: "set before" },
  { what: "that had none", former: undefined },
])("stays where it is written in the middle of it, under a name $what", async ({ former }) => {
  if (former !== undefined) writeFileSync(file, former);
  const done = exchange("set", () => writeFileSync(file, "set again"));
  expect(await done).toBe(false);
  expect([read(file), readdirSync(folder)]).toEqual(["set again", ["switch.json"]]);
});

it("is never lost to one of many that replace it at once", async () => {
  for (let turn = 0; turn < 30; turn += 1) {
    writeFileSync(file, "set");
    const lifting = [exchange("set"), exchange("set")];
    await replaceFile(file, `set ${turn}`, SECRET_MODE);
    await Promise.all(lifting);
    // What was written last by who asks nobody stands.
    expect(read(file)).toBe(`set ${turn}`);
  }
});
