/** A database whose password file was lost gets another one, unless there is no room for its name. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { checkCluster } from "../../../../cli/postgres/cluster.js";
import { postgresPasswordPath } from "../../../../runtime/config/service-urls.js";

let home: string;
let told: string;
let password: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "causeway-lost-password-"));
  told = join(home, "told.sql");
  password = postgresPasswordPath(home);
  mkdirSync(join(home, "data", "postgres"), { recursive: true });
  mkdirSync(join(home, "config"));
  writeFileSync(join(home, "data", "postgres", "PG_VERSION"), "18\n");
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

/** With a server's program that keeps what it is told, and does something before it ends. */
function check(further = ""): Promise<void> {
  const postgres = join(home, "postgres");
  writeFileSync(postgres, `#!/bin/sh\ncat > '${told}'\n${further}\n`, { mode: 0o755 });
  const folder = join(home, "data", "postgres");
  return checkCluster({
    home,
    place: { folder, isNew: false, link: undefined, account: undefined },
    binaries: { postgres, initdb: "", majorVersion: 18 },
    signal: new AbortController().signal,
  });
}

it("is told the password that the file has then", async () => {
  await check();
  expect(readFileSync(told, "utf8")).toContain(
    `PASSWORD '${readFileSync(password, "utf8").trim()}'`,
  );
});

it("keeps its password where the file is a link to nothing, which is named", async () => {
  symlinkSync(join(home, "gone"), password);
  await expect(check()).rejects.toThrow(`${password} links to a file that is gone`);
  expect(existsSync(told)).toBe(false);
});

it("does not start where somebody else has written the file meanwhile", async () => {
  await expect(check(`echo other > '${password}'`)).rejects.toThrow("somebody else");
});
