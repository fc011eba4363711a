/** The log of a child process, whatever becomes of its folder. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogFile } from "../../../../cli/supervisor/log-file.js";

let home: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "causeway-log-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

it("is written on in a new folder where its folder was deleted, and in no new home", () => {
  const logs = join(home, "logs");
  mkdirSync(logs);
  const log = createLogFile(logs, "node");
  log.write(Buffer.from("first\n"));
  rmSync(logs, { recursive: true });
  log.write(Buffer.from("second\n"));
  expect(readFileSync(join(logs, "node.log"), "utf8")).toBe("second\n");
  expect(statSync(logs).mode & 0o777).toBe(0o700);
  rmSync(home, { recursive: true });
  log.write(Buffer.from("third\n"));
  expect(existsSync(home)).toBe(false);
  expect(log.tail()).toEqual(["first", "second", "third"]);
});
