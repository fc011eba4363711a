import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compiledFolder } from "../../helpers/services/services.js";

let folder: string;
let home: string;

beforeAll(async () => {
  folder = await compiledFolder();
  home = mkdtempSync(join(tmpdir(), "causeway-urls-"));
  mkdirSync(join(home, "config"));
  // Nothing else of the home is there: what looks for it before the settings are read fails.
  for (const name of ["watcher", "worker", "indexer"]) {
    writeFileSync(join(home, "config", `${name}.toml`), "unheard-of = 1\n");
  }
});

afterAll(() => rmSync(home, { recursive: true }));

describe("a service that is started by itself", () => {
  it.each([
    ["deposit-watcher", ["DATABASE_URL"]],
    ["withdrawal-worker", ["DATABASE_URL", "REDIS_URL"]],
    ["withdrawal-worker/treasury", ["DATABASE_URL"]],
    ["indexer", ["DATABASE_URL"]],
  ])("as %s refuses wrong URLs with its other settings", (name, keys) => {
    const entry = join(folder, name, "main.js");
    const { status, stderr } = spawnSync(process.execPath, [entry, "--home", home], {
      env: { PATH: process.env["PATH"], DATABASE_URL: "hush-db", REDIS_URL: "redis:hush" },
      encoding: "utf8",
      timeout: 60_000,
    });
    expect(status).toBe(1);
    const found = stderr.matchAll(/environment: (\w+) = \*\*\* \(allowed: a URL/g);
    expect([...found].map(([, key]) => key)).toEqual(keys);
    expect(stderr).toContain("unheard-of");
    expect(stderr).not.toContain("hush");
  });
});
