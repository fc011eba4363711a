/** The second node of watcher and worker: another one than the first, or no second opinion. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { watcherConfigFile } from "../../../../deposit-watcher/config.js";
import { ConfigError, loadConfig } from "../../../../runtime/config/config.js";
import { workerConfigFile } from "../../../../withdrawal-worker/config.js";

let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "causeway-second-"));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

const FILES = [watcherConfigFile, workerConfigFile] as const;

function load(file: (typeof FILES)[number], first: string, second: string): unknown {
  const flags = { "node.json-rpc-url": first, "node.second-json-rpc-url": second };
  try {
    return loadConfig<typeof watcherConfigFile>(
      { home, env: {}, flags },
      file as typeof watcherConfigFile,
    ).node["second-json-rpc-url"];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.faults.map(({ key, allowed }) => `${key}: ${allowed}`);
  }
}

describe.each(FILES)("$name.toml", (file) => {
  it.each([
    ["http://10.0.0.1:8545", "http://10.0.0.1:8545"],
    ["http://Node.example", "http://node.example:80/"],
    ["http://127.0.0.1:8545", "http://localhost:8545/"],
    ["https://node.example/key?a=1", "https://node.example/key?a=1#second"],
  ])("refuses %s and %s: one node", (first, second) => {
    expect(load(file, first, second)).toEqual([
      "node.second-json-rpc-url: the URL of another node than node.json-rpc-url, or empty",
    ]);
  });

  it.each([
    ["http://10.0.0.1:8545", ""],
    ["http://10.0.0.1:8545", "http://10.0.0.1:18545"],
    ["https://node.example/key", "https://node.example/other"],
    ["http://10.0.0.1:8545", "http://10.0.0.2:8545"],
  ])("takes %s and %j", (first, second) => {
    expect(load(file, first, second)).toBe(second);
  });
});
