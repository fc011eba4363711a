/** The section statesync of config.toml, as CometBFT's operators write it. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CONFIG_FILE } from "../../../node/settings/config.js";
import { stateSyncSettings } from "../../../node/settings/state-sync-config.js";
import { rpcProvider } from "../../../node/statesync/light/light-rpc.js";
import { type ConfigFault, ConfigError, loadConfig } from "../../../runtime/config/config.js";

const HASH = "CE71A2B0".repeat(8);

let home: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "statesync-"));
  mkdirSync(join(home, "config"));
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

function load(lines: readonly string[], env: Record<string, string> = {}) {
  writeFileSync(join(home, "config", "config.toml"), `[statesync]\n${lines.join("\n")}\n`);
  return stateSyncSettings(loadConfig({ home, env }, CONFIG_FILE).statesync);
}

function faultsOf(lines: readonly string[]): readonly ConfigFault[] {
  try {
    load(lines);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
}

describe("the settings of state sync", () => {
  it("are off by default, whatever else is written", () => {
    expect(load([])).toBeUndefined();
    expect(load(["enable = false", 'temp_dir = "/tmp"', 'rpc_servers = ""'])).toBeUndefined();
  });

  it("are read as they stand in a CometBFT home", () => {
    const settings = load([
      "enable = true",
      'rpc_servers = "http://10.0.0.1:26657,tcp://node.example.org:26657,[::1]:26657"',
      "trust_height = 1234",
      `trust_hash = "${HASH}"`,
      'trust_period = "168h0m0s"',
      'discovery_time = "15s"',
      'temp_dir = ""',
      'chunk_request_timeout = "1m10.5s"',
      'chunk_fetchers = "4"',
    ]);
    expect(settings).toEqual({
      servers: ["http://10.0.0.1:26657", "tcp://node.example.org:26657", "[::1]:26657"],
      trustHeight: 1_234,
      trustHash: `0x${HASH.toLowerCase()}`,
      trustPeriodMs: 168 * 3_600_000,
      discoveryMs: 15_000,
      chunkTimeoutMs: 70_500,
      chunkFetchers: 4,
      maxSnapshotBytes: 68_719_476_736,
    });
  });

  it("that do not go together are all reported at once", () => {
    const faults = faultsOf(["enable = true", 'rpc_servers = "a:1"', 'trust_period = "0s"']);
    expect(faults.map(({ key }) => key)).toEqual([
      "statesync.rpc_servers",
      "statesync.trust_height",
      "statesync.trust_hash",
      "statesync.trust_period",
    ]);
    expect(faults.every(({ file }) => file === join(home, "config", "config.toml"))).toBe(true);
  });

  it("are reported once, together with what cannot be read", () => {
    const keys = faultsOf([
      "enable = true",
      'trust_hash = "AB"',
      'discovery_time = "15"',
      'rpc_servers = "a b"',
      "chunk_fetchers = 0",
      "unknown = 1",
    ]).map(({ key }) => key);
    expect(keys.toSorted()).toEqual([
      "statesync.chunk_fetchers",
      "statesync.discovery_time",
      "statesync.rpc_servers",
      "statesync.trust_hash",
      "statesync.trust_height",
      "statesync.unknown",
    ]);
  });

  it.each([
    "node.example.org:99999",
    "https://node.example.org:65536",
    "[::::]:26657",
    "999.1.1.1:26657",
  ])("name the server %s, with which nothing can be asked", (server) => {
    const servers = `rpc_servers = "127.0.0.1:26657,${server}"`;
    const [fault, ...others] = faultsOf([servers]);
    expect(others).toEqual([]);
    expect(fault).toMatchObject({
      key: "statesync.rpc_servers",
      allowed: expect.stringContaining("host:port"),
    });
    expect(fault?.value).toContain(server);
  });

  it("take servers that can be asked", () => {
    const servers = ["node.example.org", "http://[::1]:26657/", "tcp://127.0.0.1:65535"];
    expect(faultsOf([`rpc_servers = "${servers.join(",")}"`])).toEqual([]);
    for (const server of servers) expect(rpcProvider(server).name).not.toBe("");
  });

  it.each(["15s", "500ms", "168h0m0s", "1h", "2m3s", "0s"])("take the time %s", (text) => {
    expect(faultsOf([`discovery_time = "${text}"`])).toEqual([]);
  });

  it.each(["", "15", "1s1h", "-1s", "s", "1d"])("refuse the time %j", (text) => {
    expect(faultsOf([`discovery_time = "${text}"`])).toHaveLength(1);
  });
});
