/** A kit on a chain that exists: what flags and home mean together, and what the first start writes. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runInit } from "../../../../cli/commands/init.js";
import {
  type ChainFlags,
  planChain,
  planEnvironment,
} from "../../../../cli/home/network/attach.js";
import { readChainOrigin } from "../../../../cli/home/network/chain-origin.js";
import { homePaths, type HomePaths } from "../../../../cli/home/home.js";
import { initAttachedHome, initHome } from "../../../../cli/home/init.js";
import { loadKitConfig } from "../../../../cli/home/kit-config.js";
import { createProgram } from "../../../../cli/program/program.js";
import { KIT_HELP } from "../../../../cli/supervisor/kit-flags.mjs";
import { writeRoleHomes } from "../../../../cli/home/role-homes.js";
import { readNetworkGenesis } from "../../../../cli/home/network/network-source.js";
import { parseHash32 } from "../../../../chain/hex.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { type Environment, loadConfig } from "../../../../runtime/config/config.js";
import { CONFIG_FILE } from "../../../../node/settings/config.js";
import { watcherConfigFile } from "../../../../deposit-watcher/config.js";

const folders: string[] = [];
const scrypt = { n: 1_024, r: 8, p: 1 };
const GENESIS_HASH = parseHash32(`0x${"7e".repeat(32)}`);

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "causeway-attach-"));
  folders.push(folder);
  return folder;
}

const newPaths = (): HomePaths => homePaths(join(newFolder(), "home"));

/** A genesis that is no placeholder: another time of the same accounts. */
function realGenesis(
  network: "mainnet" | "testnet" = "testnet",
  genesisTimeMs = 1_800_000_000_000,
) {
  const file = join(newFolder(), "genesis.json");
  const genesis = { ...JSON.parse(readNetworkGenesis(network)), genesisTimeMs };
  writeFileSync(file, JSON.stringify(genesis));
  return file;
}

const seeds = "seed.chain.test:26656";

function faultsOf(flags: ChainFlags, paths = newPaths(), env: Environment = {}): string {
  try {
    return JSON.stringify(planChain(flags, paths, env));
  } catch (error) {
    return error instanceof Error ? error.message : "";
  }
}

async function joinChain(paths: HomePaths, flags: ChainFlags) {
  const plan = planChain(flags, paths, {});
  if (plan.kind !== "joined") throw new Error("no plan to join");
  return initAttachedHome({ paths, portOffset: 0, plan, node: undefined, scrypt });
}

async function attach(paths: HomePaths, nodeUrl: string) {
  const plan = planChain({ nodeUrl }, paths, {});
  if (plan.kind !== "remote") throw new Error("no plan to attach");
  const node = { network: "testnet" as const, genesisHash: GENESIS_HASH };
  return initAttachedHome({ paths, portOffset: 40, plan, node, scrypt });
}

describe("which chain a start is about", () => {
  it("is the home's own without a word", () => {
    expect(planChain({}, newPaths(), {})).toEqual({ kind: "local" });
  });

  it("refuses the placeholders that ship, also when their file is named", () => {
    const faults = faultsOf({ network: "mainnet" });
    expect(faults).toMatch(/--genesis = \(not given\) \(allowed: .*mainnet.* is a placeholder/);
    expect(faults).toMatch(/--seeds = \(not given\) \(allowed: .*mainnet.* placeholders/);
    const file = join(newFolder(), "genesis.json");
    writeFileSync(file, JSON.stringify(JSON.parse(readNetworkGenesis("mainnet"))));
    expect(faultsOf({ genesis: file, seeds })).toContain("this file is the placeholder");
  });

  it("names everything that is wrong at once", () => {
    const broken = join(newFolder(), "broken.json");
    writeFileSync(broken, "{}");
    const faults = faultsOf({ network: "goerli", genesis: broken, seeds: "nowhere" });
    expect(faults).toContain('--network = "goerli" (allowed: mainnet or testnet)');
    expect(faults).toContain("genesis is not valid");
    expect(faults).toContain('--seeds = "nowhere"');
    expect(faultsOf({ genesis: "/no/such/file", seeds })).toContain("ENOENT");
    const other = faultsOf({ network: "mainnet", genesis: realGenesis("testnet"), seeds });
    expect(other).toContain("this file is of testnet");
    const both = faultsOf({ nodeUrl: "ftp://node", genesis: broken, seeds });
    for (const key of ["--genesis", "--seeds", "--node-url"]) expect(both).toContain(`${key} = `);
    expect(faultsOf({ nodeWsUrl: "ws://node:1" })).toContain("--node-ws-url");
  });

  it("needs no seeds where settings name peers", () => {
    const env = { CAUSEWAY_CONFIG_P2P_PERSISTENT_PEERS: `${"ab".repeat(20)}@host:26656` };
    expect(planChain({ genesis: realGenesis() }, newPaths(), env)).toMatchObject({
      kind: "joined",
      network: "testnet",
      seeds: undefined,
    });
  });

  it("never mixes a home's own chain with another", async () => {
    const paths = newPaths();
    const common = { portOffset: 0, network: "testnet", clock: systemClock, scrypt } as const;
    await initHome({ ...common, paths, configFiles: [] });
    for (const flags of [{ nodeUrl: "http://node:8545" }, { genesis: realGenesis(), seeds }]) {
      expect(faultsOf(flags, paths)).toContain("the chain of this one was made here");
    }
  });
});

describe("a home with a node of a network", () => {
  it("has no faucet, the genesis that was given, and is remembered", async () => {
    const paths = newPaths();
    const genesis = realGenesis("mainnet");
    const { created } = await joinChain(paths, { genesis, seeds });
    expect(created).toBe(true);
    expect(existsSync(paths.faucetKey)).toBe(false);
    expect(readFileSync(paths.genesis, "utf8")).toBe(readFileSync(genesis, "utf8"));
    expect(readChainOrigin(paths)).toEqual({
      kind: "joined",
      network: "mainnet",
      isComplete: true,
    });
    // The next start needs no flag, and says the same to every process.
    const plan = planChain({}, paths, {});
    expect(plan).toEqual({ kind: "joined", network: "mainnet", source: undefined });
    const sources = { home: paths.home, env: planEnvironment(plan, {}), portOffset: 0 };
    expect(loadConfig(sources, CONFIG_FILE).p2p.seeds).toEqual([seeds]);
    const watcher = loadConfig(sources, watcherConfigFile);
    expect([watcher.chain.network, watcher.watcher["start-height"]]).toEqual(["mainnet", "head"]);
    expect(loadKitConfig(sources).nodes).toHaveLength(1);
    // Another chain needs another home; the same genesis may be named again.
    expect(faultsOf({ genesis, seeds }, paths)).not.toContain("settings are wrong");
    expect(faultsOf({ genesis: realGenesis("mainnet", 1_800_000_000_001) }, paths)).toContain(
      "the genesis that this home has",
    );
    expect(faultsOf({ network: "testnet" }, paths)).toContain("mainnet, which this home is of");
    expect(faultsOf({ nodeUrl: "http://node:8545" }, paths)).toContain("with a node of mainnet");
  });

  it("is never turned into one with a chain of its own", async () => {
    const paths = newPaths();
    await attach(paths, "http://127.0.0.1:8545");
    const options = { paths, portOffset: 0, network: "testnet", scrypt } as const;
    await expect(
      initHome({ ...options, configFiles: [], clock: systemClock }),
    ).rejects.toMatchObject({ code: "HOME_EXISTS" });
    expect(existsSync(paths.faucetKey)).toBe(false);
    const lines: string[] = [];
    const context = { home: paths.home, portOffset: 0, json: false, env: {} };
    const signal = new AbortController().signal;
    const print = (line: string) => lines.push(line);
    expect(await runInit({ ...context, signal, print }, {})).toBe(0);
    expect(lines[0]).toBe(`The home is complete already: ${paths.home}, on testnet`);
  });

  it("that lost a key is refused, and one that was cut off wants its flags again", async () => {
    const paths = newPaths();
    const flags = { genesis: realGenesis(), seeds };
    await joinChain(paths, flags);
    writeFileSync(paths.chain, JSON.stringify({ ...readChainOrigin(paths), isComplete: false }));
    rmSync(paths.genesis);
    expect(faultsOf({}, paths)).toContain("a start with the flags of the first one");
    expect((await joinChain(paths, flags)).created).toBe(true);
    rmSync(paths.hotWallet);
    await expect(joinChain(paths, {})).rejects.toMatchObject({ code: "HOME_INCOMPLETE" });
    writeFileSync(paths.chain, "{}");
    expect(() => readChainOrigin(paths)).toThrow(/does not say which chain/);
    // A home that is a file: nothing is to be restored there.
    expect(() => readChainOrigin(homePaths(paths.chain))).toThrow(
      /part of the path is not a folder/,
    );
  });

  it("keeps settings that lay there before its first start, also where that is cut off", async () => {
    const paths = newPaths();
    mkdirSync(paths.config, { recursive: true });
    const placed = '[chain]\nnetwork = "testnet"\n\n[watcher]\nstart-height = "genesis"\n';
    const file = join(paths.config, "watcher.toml");
    writeFileSync(file, placed);
    const flags = { genesis: realGenesis(), seeds };
    // It ends behind the record of the chain, before the settings.
    writeFileSync(paths.depositSeed, "no seed");
    await expect(joinChain(paths, flags)).rejects.toThrow("deposit.seed");
    rmSync(paths.depositSeed);
    expect((await joinChain(paths, flags)).created).toBe(true);
    expect(readFileSync(file, "utf8")).toBe(placed);
    expect(existsSync(join(paths.config, "worker.toml"))).toBe(true);
    expect(readChainOrigin(paths)).toEqual({
      kind: "joined",
      network: "testnet",
      isComplete: true,
    });
  });

  it("takes a genesis that lies in it already, as in the image's volume", () => {
    const paths = newPaths();
    mkdirSync(paths.config, { recursive: true });
    writeFileSync(paths.genesis, readFileSync(realGenesis("mainnet"), "utf8"));
    expect(faultsOf({ network: "mainnet" }, paths)).toContain("--seeds = (not given)");
    expect(planChain({ network: "mainnet", seeds }, paths, {})).toMatchObject({ kind: "joined" });
    writeFileSync(paths.genesis, readNetworkGenesis("mainnet"));
    expect(faultsOf({ network: "mainnet", seeds }, paths)).toContain("is the placeholder");
  });
});

describe("a home on somebody's node", () => {
  it("has no node, and its URL does not move with the ports", async () => {
    const paths = newPaths();
    // The default port with the offset that the home is written with: never taken for a default.
    await attach(paths, "http://127.0.0.1:8585");
    for (const file of ["genesis.json", "config.toml", "app.toml", "faucet.key"]) {
      expect({ file, isThere: existsSync(join(paths.config, file)) }).toEqual({
        file,
        isThere: false,
      });
    }
    const plan = planChain({}, paths, {});
    expect(plan).toEqual({
      kind: "remote",
      network: "testnet",
      genesisHash: GENESIS_HASH,
      node: undefined,
    });
    const sources = { home: paths.home, env: planEnvironment(plan, {}), portOffset: 60 };
    const { nodes, nodeUrls, endpoints, wantedPorts } = loadKitConfig(sources);
    expect(nodes).toEqual([]);
    expect(nodeUrls).toEqual(["http://127.0.0.1:8585/"]);
    expect(endpoints).toMatchObject({
      jsonRpcUrl: "http://127.0.0.1:8585/",
      webSocketUrl: "ws://127.0.0.1:8586/",
      cometRpcUrl: undefined,
      sidecarOnlineUrl: "http://127.0.0.1:8140",
    });
    expect(wantedPorts.map(({ port }) => port)).toEqual([8140, 8141, 8142, 8143, 8144, 3060, 3061]);
  });

  it("gives every process's home the record of the chain, and none to a node", async () => {
    const paths = newPaths();
    await attach(paths, "http://127.0.0.1:8545");
    const folder = newFolder();
    await writeRoleHomes(paths, folder);
    expect(existsSync(join(folder, "node"))).toBe(false);
    const desk = homePaths(join(folder, "desk"));
    expect(readChainOrigin(desk)).toEqual(readChainOrigin(paths));
    const { endpoints } = loadKitConfig({ home: desk.home, env: {}, portOffset: 40 });
    expect(endpoints.jsonRpcUrl).toBe("http://127.0.0.1:8545/");
  });

  it("has the WebSocket of a URL without a port at the same place, and says so wherever the flag is told", async () => {
    const paths = newPaths();
    await attach(paths, "https://node.example.org");
    const { endpoints } = loadKitConfig({ home: paths.home, env: {}, portOffset: 0 });
    expect(endpoints.webSocketUrl).toBe("wss://node.example.org/");
    const quiet = () => undefined;
    const { signal } = new AbortController();
    const program = createProgram({
      version: "0",
      env: {},
      signal,
      print: quiet,
      warn: quiet,
      setExitCode: quiet,
    });
    const init = program.commands.find((command) => command.name() === "init");
    const flag = init?.options.find(({ long }) => long === "--node-ws-url")?.description;
    const page = readFileSync("docs/operations.md", "utf8");
    const row = /^\| `--node-ws-url URL` .*$/m.exec(page)?.[0];
    for (const told of [KIT_HELP, flag, row]) {
      expect(told?.replaceAll(/\s+/g, " ")).toMatch(
        /\(default: one port above, or the same place where the URL has no port/,
      );
    }
  });

  it("takes another address of the node for one start, and its WebSocket by name", async () => {
    const paths = newPaths();
    await attach(paths, "https://rpc.example.com/key");
    const flags = { nodeUrl: "https://other.example.com", nodeWsUrl: "wss://other.example.com/ws" };
    const env = planEnvironment(planChain(flags, paths, {}), {});
    expect(env).toMatchObject({
      CAUSEWAY_SIDECAR_NODE_URL: "https://other.example.com/",
      CAUSEWAY_WATCHER_NODE_JSON_RPC_URL: "https://other.example.com/",
      CAUSEWAY_WATCHER_NODE_WEB_SOCKET_URL: "wss://other.example.com/ws",
      CAUSEWAY_WORKER_NODE_JSON_RPC_URL: "https://other.example.com/",
    });
    const { endpoints } = loadKitConfig({ home: paths.home, env: {}, portOffset: 40 });
    expect(endpoints.webSocketUrl).toBe("wss://rpc.example.com/key");
    expect(faultsOf({ genesis: realGenesis(), seeds }, paths)).toContain("somebody's node");
  });
});
