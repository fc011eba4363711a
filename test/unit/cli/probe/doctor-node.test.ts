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
import { loadGenesis } from "../../../../node/settings/genesis.js";
import type { EvmClient } from "../../../../rpc-client/evm-client.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { type Environment, loadConfig } from "../../../../runtime/config/config.js";
import { servePages } from "../../../helpers/http/page-server.js";
import { freePort } from "../../../helpers/ports.js";

const folders: string[] = [];
const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
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

/** What a running node says, each page of it on a port of its own. */
interface Told {
  readonly height: number;
  /** Of its page of metrics; none is served where it is undefined. */
  readonly metrics?: string;
  /** How long each of its JSON-RPC's answers takes. */
  readonly answersMs: readonly number[];
}

/** @returns host and port */
async function serve(pages: Readonly<Record<string, string>>): Promise<string> {
  const server = await servePages(pages);
  closers.push(() => server.close());
  return server.place;
}

/** Findings of the home of a node that runs, by their ids. */
async function checkRunning({ height, metrics, answersMs }: Told) {
  const home = await writeHome();
  const genesis = loadGenesis(homePaths(home).genesis);
  const nowMs = genesis.genesisTimeMs + 5_000;
  let monotonicMs = 0;
  const durations = [...answersMs];
  const after = async <T>(answer: T): Promise<T> => {
    monotonicMs += durations.shift() ?? 0;
    return answer;
  };
  const sync_info = {
    latest_block_height: `${height}`,
    earliest_block_height: "1",
    latest_block_time: new Date(nowMs - 1_000).toISOString(),
    catching_up: false,
  };
  const node_info = { id: OWN_ID, network: "chain_6940-1", moniker: "m" };
  const validator_info = { address: "", voting_power: "0" };
  const comet = await serve({
    "/status": JSON.stringify({ result: { node_info, sync_info, validator_info } }),
    "/net_info": JSON.stringify({ result: { n_peers: "3" } }),
  });
  const page = await serve(metrics === undefined ? {} : { "/metrics": metrics });
  const seconds = Math.floor(genesis.genesisTimeMs / 1_000);
  const evm = {
    chainId: () => after(genesis.evmChainId),
    getBlockHeader: () => after({ height: 0, timestampSeconds: seconds }),
    blockNumber: () => after(height),
  } as unknown as EvmClient;
  const findings = await runDoctorChecks({
    paths: homePaths(home),
    env: {
      CAUSEWAY_CONFIG_RPC_LADDR: `tcp://${comet}`,
      CAUSEWAY_CONFIG_INSTRUMENTATION_PROMETHEUS_LISTEN_ADDR: page,
    },
    portOffset: 0,
    clock: { nowMs: () => nowMs, monotonicMs: () => monotonicMs },
    signal: new AbortController().signal,
    readLedgerSwitch: async () => undefined,
    readLedgerPolicy: async () => undefined,
    createEvm: () => evm,
  });
  const read = (wanted: string) =>
    findings
      .filter(({ id }) => id === wanted)
      .map(({ severity, value, remedy }) => [severity, value, remedy !== ""]);
  return { latency: read("rpc-latency"), lag: read("height-lag"), findings };
}

/** The page of metrics of a node at a height, whose peers are at another one. */
const heightsPage = (own: number, network: number) =>
  `cometbft_consensus_height{chain_id="chain_6940-1"} ${own}\n` +
  `causeway_network_height ${network}\n`;

describe("the doctor of a node that runs", () => {
  it.each([
    [[10, 20, 30], "pass", "30 ms"],
    [[10, 20, 500], "pass", "500 ms"],
    [[10, 20, 600], "warn", "600 ms"],
    // The first call connects, and is not measured.
    [[2_000, 20, 30], "pass", "30 ms"],
  ])("warns of a JSON-RPC that takes more than 500 ms: %p", async (answersMs, severity, value) => {
    const { latency, findings } = await checkRunning({ height: 900, answersMs });
    expect(latency).toEqual([[severity, value, severity === "warn"]]);
    const failed = findings.filter(({ severity: one, id }) => one === "fail" && id !== "disk");
    expect(failed).toEqual([]);
  });

  it.each([
    [900, 899, "pass", "0 blocks"],
    [900, 910, "pass", "10 blocks"],
    [900, 911, "warn", "11 blocks"],
  ])("warns more than 10 blocks behind the network: %i of %i", async (own, of, severity, value) => {
    const metrics = heightsPage(own, of);
    const { lag } = await checkRunning({ height: own, metrics, answersMs: [] });
    expect(lag).toEqual([[severity, value, severity === "warn"]]);
  });

  it("says nothing of a network of which nothing is told", async () => {
    const answersMs: readonly number[] = [];
    const silent = heightsPage(900, 0);
    expect((await checkRunning({ height: 900, metrics: silent, answersMs })).lag).toEqual([]);
    expect((await checkRunning({ height: 900, metrics: "", answersMs })).lag).toEqual([]);
    expect((await checkRunning({ height: 900, answersMs })).lag).toEqual([]);
  });
});

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

  it("warns of a variable that is no setting, whether the settings are valid or not", async () => {
    const home = await writeHome();
    for (const more of [{}, { CAUSEWAY_CONFIG_RPC_LADDR: "nowhere" }]) {
      const findings = await check(home, { CAUSEWAY_CONSENSUS_X: "1", ...more });
      expect(findings).toContainEqual({
        id: "settings",
        severity: "warn",
        value: expect.stringContaining("CAUSEWAY_CONSENSUS_X"),
        remedy: "rename it, or take it away",
      });
    }
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
