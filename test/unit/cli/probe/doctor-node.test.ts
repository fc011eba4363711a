/** `causeway doctor` on the home of a node alone. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { runDoctorChecks } from "../../../../cli/probe/doctor.js";
import { checkHistory, checkPeers } from "../../../../cli/probe/doctor-node.js";
import { homePaths } from "../../../../cli/home/home.js";
import { createTestnet } from "../../../../cli/home/network/testnet.js";
import { APP_FILE, CONFIG_FILE } from "../../../../node/settings/config.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { type Environment, loadConfig } from "../../../../runtime/config/config.js";
import { freePort } from "../../../helpers/ports.js";

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** The home of a validator that does not run. */
async function writeHome(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "causeway-doctor-"));
  folders.push(folder);
  const portOffset = ((await freePort()) % 8_000) + 12_000;
  const options = { out: folder, validators: 1, fullNodes: 0, portOffset, clock: systemClock };
  const { nodes } = await createTestnet(options);
  return nodes[0]?.home ?? "";
}

function check(home: string, env: Environment = {}) {
  return runDoctorChecks({
    paths: homePaths(home),
    env,
    portOffset: 0,
    clock: systemClock,
    signal: new AbortController().signal,
    readLedgerSwitch: async () => undefined,
    readLedgerPolicy: async () => undefined,
    createEvm: () => {
      throw new Error("the node does not answer: its JSON-RPC is not asked");
    },
  });
}

const appOf = (env: Environment) => loadConfig({ home: "/nonexistent", env }, APP_FILE);

const STATUS = {
  nodeId: "",
  moniker: "",
  network: "",
  height: 900,
  oldestHeight: 800,
  catching_up: false,
  peers: 1,
  blockAgeSeconds: 1,
  validator: { address: "", votingPower: "0" },
};

const OWN_ID = "cd".repeat(20);
const PEER = `${"ab".repeat(20)}@127.0.0.1:26656`;

describe("the doctor of a node's home", () => {
  it("looks at files and settings, and says that the node does not run", async () => {
    const findings = await check(await writeHome());
    expect(findings.map(({ id, severity }) => [id, severity])).toEqual([
      ["settings", "pass"],
      ["node", "fail"],
      ["key-modes", "pass"],
      ["disk", expect.any(String)],
      ["crypto", expect.any(String)],
    ]);
    expect(findings[1]?.remedy).toContain("start it");
  });

  it("tells all wrong settings of both files at once, and asks no node then", async () => {
    const home = await writeHome();
    const app = join(home, "config", "app.toml");
    const text = readFileSync(app, "utf8").replace('pruning = "default"', 'pruning = "custom"');
    writeFileSync(app, text);
    const findings = await check(home, { CAUSEWAY_CONFIG_RPC_LADDR: "nowhere" });
    const faults = findings.filter(({ severity }) => severity === "fail");
    expect(faults.map(({ value }) => value)).toEqual([
      expect.stringContaining("CAUSEWAY_CONFIG_RPC_LADDR"),
      `${app}: pruning-keep-recent = 0`,
      `${app}: pruning-interval = 0`,
    ]);
    expect(faults[1]?.remedy).toBe('allowed: at least 2 with pruning = "custom"');
    expect(findings.some(({ id }) => id === "node")).toBe(false);
  });

  it.each([
    [0, {}, "pass"],
    [2, { CAUSEWAY_CONFIG_P2P_SEEDS: "seed1.example.org:26656" }, "warn"],
    [3, { CAUSEWAY_CONFIG_P2P_SEEDS: "seed1.example.org:26656" }, "pass"],
    [0, { CAUSEWAY_CONFIG_P2P_PERSISTENT_PEERS: `${"ab".repeat(20)}@127.0.0.1:26656` }, "warn"],
    [1, { CAUSEWAY_CONFIG_P2P_PERSISTENT_PEERS: `${"ab".repeat(20)}@127.0.0.1:26656` }, "pass"],
    // Itself among them, as a network's homes have it: nobody is a peer of one's own.
    [1, { CAUSEWAY_CONFIG_P2P_PERSISTENT_PEERS: `${PEER},${OWN_ID}@127.0.0.1:1` }, "pass"],
    [0, { CAUSEWAY_CONFIG_P2P_PERSISTENT_PEERS: `${PEER},${OWN_ID}@127.0.0.1:1` }, "warn"],
    [0, { CAUSEWAY_CONFIG_P2P_PERSISTENT_PEERS: `${OWN_ID}@127.0.0.1:1` }, "pass"],
  ])("warns where a node of a network has few peers: %p, %p", (peers, env, severity) => {
    const node = loadConfig({ home: "/nonexistent", env }, CONFIG_FILE);
    expect(checkPeers({ peers, nodeId: OWN_ID }, node)).toMatchObject({ id: "peers", severity });
  });

  it.each([
    [{}, "pass"],
    [{ CAUSEWAY_APP_PRUNING: "nothing" }, "pass"],
    [{ CAUSEWAY_APP_PRUNING: "everything" }, "warn"],
    [{ CAUSEWAY_APP_MIN_RETAIN_BLOCKS: "500" }, "warn"],
  ])("warns where the node of an exchange prunes: %p", (env, severity) => {
    const exchange = checkHistory(STATUS, appOf(env), true);
    expect(exchange.severity).toBe(severity);
    expect(exchange.value).toMatch(/^blocks from 800 on; pruning = /);
    expect(checkHistory(STATUS, appOf(env), false).severity).toBe("pass");
  });
});
