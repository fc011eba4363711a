/** The server's programs where they are copied to be used: whole, or copied again. */
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { ensureCopy } from "../../../../cli/postgres/binaries.js";

let folder: string;
let native: string;
let copy: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "causeway-programs-"));
  native = join(folder, "package", "native");
  copy = join(folder, "postgres-18.0.0");
  for (const name of ["bin", "lib"]) mkdirSync(join(native, name), { recursive: true });
  writeFileSync(join(native, "bin", "postgres"), "a server");
  writeFileSync(join(native, "lib", "libpq.so.5.18"), "a library");
  const links = [{ source: "native/lib/libpq.so.5.18", target: "native/lib/libpq.so.5" }];
  writeFileSync(join(native, "pg-symlinks.json"), JSON.stringify(links));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Whether a start copies them. */
function isCopiedNow(): boolean {
  const notices: string[] = [];
  ensureCopy(native, copy, (sentence) => notices.push(sentence));
  return notices.length === 1;
}

it("are copied once", () => {
  expect([isCopiedNow(), isCopiedNow()]).toEqual([true, false]);
  expect(readlinkSync(join(copy, "lib", "libpq.so.5"))).toBe("libpq.so.5.18");
});

it("are copied again where a power cut has left their names and not their content", () => {
  isCopiedNow();
  const library = join(copy, "lib", "libpq.so.5.18");
  for (const damage of [truncateSync, rmSync]) {
    damage(library);
    expect([isCopiedNow(), isCopiedNow()]).toEqual([true, false]);
    expect(readFileSync(library, "utf8")).toBe("a library");
  }
  expect(readdirSync(folder)).toEqual(["package", "postgres-18.0.0"]);
});
