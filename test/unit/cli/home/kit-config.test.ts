import { afterEach, describe, expect, it } from "@jest/globals";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CommandContext } from "../../../../cli/command-context.js";
import { runInit } from "../../../../cli/commands/init.js";
import {
  checkChain,
  checkKeyModes,
  checkKillSwitch,
  checkSettings,
  checkWallets,
} from "../../../../cli/probe/doctor-checks.js";
import { homePaths } from "../../../../cli/home/home.js";
import { leftOut, parseKitArguments } from "../../../../cli/supervisor/kit-arguments.js";
import { loadKitConfig } from "../../../../cli/home/kit-config.js";
import { createProgram } from "../../../../cli/program/program.js";
import { SWITCH_UNTOUCHED } from "../../../../ledger/kill-switch/kill-switch-level.js";
import { writeKillSwitchFile } from "../../../../ledger/kill-switch/kill-switch-file.js";
import { readRolePasswords, ROLE_NAMES } from "../../../../cli/home/role-homes.js";
import { toQuantity } from "../../../../chain/hex.js";
import { loadGenesis } from "../../../../node/settings/genesis.js";
import { createEvmClient } from "../../../../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../../../../rpc-client/json-rpc.js";
import { startFakeNode } from "../../../helpers/chains/fake-node.js";
import { hashOf } from "../../../helpers/chains/journal-chain.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { ConfigError } from "../../../../runtime/config/config.js";

const folders: string[] = [];
const signal = new AbortController().signal;

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "causeway-config-"));
  folders.push(folder);
  return folder;
}

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function contextFor(home: string, lines: string[] = []): CommandContext {
  return { home, portOffset: 0, json: true, env: {}, signal, print: (line) => lines.push(line) };
}

describe("the settings of the kit", () => {
  it("name every port that nobody could find, beside all else, and leave the peers' own to the system", () => {
    const home = newFolder();
    const file = join(home, "config", "worker.toml");
    mkdirSync(join(home, "config"));
    writeFileSync(file, '[api]\nlisten = "127.0.0.1:0"\n');
    const env = { CAUSEWAY_SIDECAR_ONLINE_LISTEN: ":0", CAUSEWAY_CONFIG_P2P_LADDR: "127.0.0.1:0" };
    const allowed = expect.stringContaining("1 to 65535");
    const faults = [
      { file: "environment", key: "CAUSEWAY_SIDECAR_ONLINE_LISTEN", value: '"0.0.0.0:0"', allowed },
      { file, key: "api.listen", value: '"127.0.0.1:0"', allowed },
    ];
    expect(() => loadKitConfig({ home, env, portOffset: 0 })).toThrow(
      expect.objectContaining({ code: "INVALID_CONFIG", faults }),
    );
    writeFileSync(file, '[api]\nlisten = "127.0.0.1:0"\nlisden = "127.0.0.1:1"\n');
    const unknown = expect.objectContaining({ file, key: "api.lisden" });
    expect(() => loadKitConfig({ home, env, portOffset: 0 })).toThrow(
      expect.objectContaining({ faults: [unknown, ...faults] }),
    );
    const peers = { CAUSEWAY_CONFIG_P2P_LADDR: "127.0.0.1:0" };
    const own = newFolder();
    expect(loadKitConfig({ home: own, env: peers, portOffset: 0 }).nodes).toHaveLength(1);
    expect(() => loadKitConfig({ home: own, env: peers, portOffset: 0, validators: 4 })).toThrow(
      expect.objectContaining({ faults: expect.arrayContaining([expect.anything()]) }),
    );
  });

  it("do not ask for the port of what is switched off, or left out of the kit", () => {
    const off = {
      CAUSEWAY_CONFIG_INSTRUMENTATION_PROMETHEUS: "false",
      CAUSEWAY_CONFIG_INSTRUMENTATION_PROMETHEUS_LISTEN_ADDR: "127.0.0.1:0",
      CAUSEWAY_APP_API_ENABLE: "false",
      CAUSEWAY_APP_API_ADDRESS: "tcp://127.0.0.1:0",
    };
    const metrics = { CAUSEWAY_CONFIG_INSTRUMENTATION_PROMETHEUS_LISTEN_ADDR: "127.0.0.1:0" };
    const indexer = { CAUSEWAY_INDEXER_API_LISTEN: "127.0.0.1:0" };
    const sources = { home: "/nonexistent", portOffset: 0 };
    const { endpoints, wantedPorts } = loadKitConfig({ ...sources, env: off });
    expect(endpoints).toMatchObject({ metricsUrl: undefined, restUrl: undefined });
    expect(wantedPorts.map(({ part }) => part)).not.toContain("the node's metrics");
    // A command beside a kit is not told what it was started without; no kit starts with such a part.
    const beside = loadKitConfig({ ...sources, env: indexer });
    expect(beside.endpoints.indexerUrl).toBeUndefined();
    expect(beside.endpoints.explorerUrl).toBe("http://127.0.0.1:3000");
    const started = { without: new Set(["indexer"] as const), env: indexer };
    expect(loadKitConfig({ ...sources, ...started }).endpoints.indexerUrl).toBeUndefined();
    for (const [env, key] of [
      [indexer, "CAUSEWAY_INDEXER_API_LISTEN"],
      [metrics, "CAUSEWAY_CONFIG_INSTRUMENTATION_PROMETHEUS_LISTEN_ADDR"],
    ] as const) {
      expect(() => loadKitConfig({ ...sources, env, without: new Set() })).toThrow(
        expect.objectContaining({ faults: [expect.objectContaining({ key })] }),
      );
    }
  });

  it("know every port of the contract with the offset, all on 127.0.0.1", () => {
    const { wantedPorts, endpoints } = loadKitConfig({
      home: "/nonexistent",
      env: {},
      portOffset: 1_000,
    });
    expect(new Set(wantedPorts.map(({ port }) => port))).toEqual(
      new Set([
        27656, 27657, 27660, 9545, 9546, 9080, 9081, 9082, 9083, 9084, 4000, 4001, 2317, 10090,
      ]),
    );
    expect(new Set(wantedPorts.map(({ host }) => host))).toEqual(new Set(["127.0.0.1"]));
    expect(endpoints).toMatchObject({
      jsonRpcUrl: "http://127.0.0.1:9545",
      webSocketUrl: "ws://127.0.0.1:9546",
      depositUrl: "http://127.0.0.1:9082",
      withdrawalUrl: "http://127.0.0.1:9083",
    });
  });

  it("know the ports of every validator of a network, the first on the kit's own", () => {
    const sources = { home: "/nonexistent", env: {}, portOffset: 1_000, validators: 4 };
    const { wantedPorts, endpoints, nodes } = loadKitConfig(sources);
    const of = (name: string): number[] =>
      wantedPorts.filter(({ part }) => part.startsWith(`${name},`)).map(({ port }) => port);
    expect(new Set(of("node0"))).toEqual(new Set([27656, 27657, 27660, 9545, 9546, 2317, 10090]));
    expect(new Set(of("node3"))).toEqual(new Set([27956, 27957, 27960, 9845, 9846, 2617, 10390]));
    expect(wantedPorts).toHaveLength(4 * 7 + 7);
    expect(endpoints.jsonRpcUrl).toBe("http://127.0.0.1:9545");
    expect(endpoints.otherNodes[2]?.cometRpcUrl).toBe("http://127.0.0.1:27957");
    expect(nodes.map(({ home }) => home)).toContain("/nonexistent/nodes/node3");
    // A wrong variable is wrong for all of them, and told once.
    const env = { CAUSEWAY_CONFIG_RPC_LADDR: "nonsense" };
    expect(() => loadKitConfig({ ...sources, env })).toThrow(
      /^settings are wrong:\n[^\n]+CAUSEWAY_CONFIG_RPC_LADDR[^\n]+$/,
    );
  });

  it("calls a part that listens on all interfaces through the loopback", () => {
    const env = { CAUSEWAY_APP_JSON_RPC_ADDRESS: "0.0.0.0:7777" };
    const { endpoints } = loadKitConfig({ home: "/nonexistent", env, portOffset: 0 });
    expect(endpoints.jsonRpcUrl).toBe("http://127.0.0.1:7777");
  });

  it("report the faults of all files together", () => {
    const env = {
      CAUSEWAY_APP_JSON_RPC_ADDRESS: "nonsense",
      CAUSEWAY_WATCHER_WATCHER_POLL_INTERVAL_MS: "-1",
      CAUSEWAY_WORKER_NO_SUCH_KEY: "1",
    };
    try {
      loadKitConfig({ home: "/nonexistent", env, portOffset: 0 });
      throw new Error("no fault was found");
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError);
      expect(String(error)).toContain("CAUSEWAY_APP_JSON_RPC_ADDRESS");
      expect(String(error)).toContain("CAUSEWAY_WATCHER_WATCHER_POLL_INTERVAL_MS");
      expect(String(error)).toContain("CAUSEWAY_WORKER_NO_SUCH_KEY");
    }
  });
});

describe("the arguments of npm start", () => {
  it("leave out every part that they name", () => {
    const without = (...argv: string[]) => [...leftOut(parseKitArguments(argv).args)];
    expect(without()).toEqual([]);
    expect(without("--no-console")).toEqual(["console"]);
    expect(without("--no-explorer")).toEqual(["explorer"]);
    expect(without("--no-indexer", "--no-explorer", "--no-console")).toEqual([
      "indexer",
      "explorer",
      "console",
    ]);
  });

  it("are read, and wrong ones are refused with a reason", () => {
    expect(
      parseKitArguments(["--once", "--home", "/h", "--port-offset", "7", "--evm", "ethereumjs"]),
    ).toEqual({
      args: {
        home: "/h",
        portOffset: 7,
        chain: {},
        once: true,
        noDemo: false,
        noIndexer: false,
        noExplorer: false,
        noConsole: false,
        blockIntervalMs: undefined,
        evm: "ethereumjs",
        help: false,
      },
      faults: [],
    });
    const argv =
      "--once --no-demo --port-offset 99999 --block-interval-ms=1 --bogus x --home --help";
    const { faults } = parseKitArguments(argv.split(" "));
    expect(faults.map(({ key, value, allowed }) => `${key} ${value} ${allowed}`)).toEqual([
      '--bogus "" no such flag, see --help',
      'argument "x" flags only, see --help',
      '--home "--help" a value after the flag',
      '--once "beside --no-demo" one of the two',
      '--port-offset "99999" a whole number from 0 to 38000',
      '--block-interval-ms "1" a whole number from 50 to 60000',
    ]);
  });
});

describe("homes by role", () => {
  it("hold what each process needs and no secret of another", async () => {
    const folder = newFolder();
    const home = join(folder, "operator");
    const roleHomes = join(folder, "roles");
    const lines: string[] = [];
    expect(await runInit(contextFor(home, lines), { roleHomes })).toBe(0);
    expect(lines.join("\n")).not.toContain(readFileSync(homePaths(home).faucetKey, "utf8").trim());
    expect(readdirSync(roleHomes).toSorted()).toEqual([...ROLE_NAMES].toSorted());
    const filesOf = (role: string): string[] =>
      readdirSync(join(roleHomes, role, "config")).toSorted();
    expect(filesOf("sidecar")).toEqual(["genesis.json", "sidecar.toml", "tokens.json"]);
    expect(filesOf("deposit-watcher")).not.toContain("hot-wallet.passphrase");
    expect(filesOf("deposit-watcher")).not.toContain("deposit.seed");
    for (const role of ROLE_NAMES) {
      const hasSeed = filesOf(role).includes("deposit.seed");
      expect({ role, hasSeed }).toEqual({ role, hasSeed: role === "treasury" });
    }
    expect(filesOf("treasury")).not.toContain("hot-wallet.passphrase");
    for (const role of ["deposit-watcher", "treasury"]) {
      const wallet = readFileSync(join(roleHomes, role, "config/hot-wallet.json"), "utf8");
      expect(Object.keys(JSON.parse(wallet))).toEqual(["address"]);
    }
    const secret = (path: string) => readFileSync(path, "utf8").trim();
    const owner = secret(homePaths(home).postgresPassword);
    const passwords = ["watcher", "worker", "operator", "indexer"].map((service) =>
      secret(join(home, `config/database-roles/${service}.password`)),
    );
    expect(new Set([owner, ...passwords]).size).toBe(5);
    const [watcher, worker, operator, indexer] = passwords;
    for (const [role, user, password] of [
      ["migrate", "causeway", owner],
      ["deposit-watcher", "causeway_watcher", watcher],
      ["withdrawal-worker", "causeway_worker", worker],
      ["treasury", "causeway_worker", worker],
      ["desk", "causeway_operator", operator],
      ["indexer", "causeway_indexer", indexer],
    ] as const) {
      const pgpass = join(roleHomes, role, "config/pgpass");
      expect(readFileSync(pgpass, "utf8")).toBe(`*:*:causeway:${user}:${password}\n`);
      expect(statSync(pgpass).mode & 0o777).toBe(0o600);
      const others = [owner, ...passwords].filter((each) => each !== password);
      for (const other of role === "migrate" ? [] : others) {
        const files = filesOf(role).filter((name) => name !== "database-roles");
        const texts = files.map((name) => secret(join(roleHomes, role, "config", name)));
        expect(texts.join()).not.toContain(other);
      }
    }
    expect(readRolePasswords(join(roleHomes, "migrate"))).toEqual({
      watcher,
      worker,
      operator,
      indexer,
    });
    expect(readRolePasswords(join(roleHomes, "deposit-watcher"))).toBeUndefined();
    expect(secret(join(roleHomes, "redis/config/redis.conf"))).toBe(
      `requirepass ${secret(join(roleHomes, "withdrawal-worker/config/redis.password"))}`,
    );
    for (const role of ["desk", "migrate"]) {
      expect(filesOf(role)).not.toContain("hot-wallet.passphrase");
    }
    for (const role of ROLE_NAMES) expect(filesOf(role)).not.toContain("faucet.key");
  });

  it("are not changed by a second init", async () => {
    const folder = newFolder();
    const context = contextFor(join(folder, "operator"));
    await runInit(context, { roleHomes: folder });
    const state = join(folder, "node/data/priv_validator_state.json");
    const before = readFileSync(state, "utf8");
    await runInit(context, { roleHomes: folder });
    expect(readFileSync(state, "utf8")).toBe(before);
  });
});

describe("a second init", () => {
  it("has no other time between blocks for a chain that is made", async () => {
    const home = newFolder();
    await runInit(contextFor(home), { blockIntervalMs: 400 });
    expect(await runInit(contextFor(home), { blockIntervalMs: 400 })).toBe(0);
    await expect(runInit(contextFor(home), { blockIntervalMs: 900 })).rejects.toThrow(
      `${home} has a chain: --block-interval-ms belongs to a new one only.`,
    );
  });
});

function settingsOf(home: string, env: Readonly<Record<string, string>> = {}) {
  return checkSettings({
    paths: homePaths(home),
    env,
    portOffset: 0,
    clock: systemClock,
    signal,
    readLedgerSwitch: async () => undefined,
    readLedgerPolicy: async () => undefined,
    createEvm: () => {
      throw new Error("no node is asked");
    },
  });
}

describe("the doctor", () => {
  it("finds keys that others can read and says how to close them", async () => {
    const home = join(newFolder(), "our home");
    await runInit(contextFor(home), {});
    const paths = homePaths(home);
    expect(checkKeyModes(paths).map(({ severity }) => severity)).toEqual(["pass"]);
    chmodSync(paths.apiKey, 0o644);
    expect(checkKeyModes(paths)).toEqual([
      {
        id: "key-modes",
        severity: "fail",
        value: `${paths.apiKey} is open to others`,
        remedy: `chmod 600 '${paths.apiKey}'`,
      },
    ]);
  });

  it("names links to nothing, folders, and what cannot be read, and looks at all the others", async () => {
    const home = join(newFolder(), "home");
    await runInit(contextFor(home), {});
    const paths = homePaths(home);
    symlinkSync(join(home, "gone"), join(paths.config, "old.key"));
    const wallets = join(paths.config, "wallets");
    mkdirSync(join(wallets, "former"), { recursive: true });
    chmodSync(join(wallets, "former"), 0o755);
    chmodSync(paths.apiKey, 0o644);
    const found = () => checkKeyModes(paths).map(({ value, remedy }) => `${value}: ${remedy}`);
    const [link, folder, open] = [
      `${paths.config}/old.key links to a file that is gone: bring that file back, or remove the link`,
      `${wallets}/former is open to others: chmod 700 ${wallets}/former`,
      `${paths.apiKey} is open to others: chmod 600 ${paths.apiKey}`,
    ];
    expect(found().toSorted()).toEqual([open, link, folder].toSorted());
    rmSync(wallets, { recursive: true });
    writeFileSync(wallets, "");
    const unread = expect.stringContaining(
      `Cannot use ${wallets}: a part of the path is not a fold`,
    );
    expect(found().slice(-1)).toEqual([unread]);
    expect(settingsOf(home).findings).toMatchObject([
      { severity: "fail", value: `${wallets}: (whole folder) = unusable` },
    ]);
  });

  it("finds those of processes that run apart, of further validators and of the console", async () => {
    const folder = newFolder();
    await runInit(contextFor(join(folder, "operator")), { roleHomes: folder });
    const validator = join(folder, "operator/nodes/node1/config");
    const users = join(folder, "operator/data/console/users");
    for (const made of [validator, users]) mkdirSync(made, { recursive: true });
    writeFileSync(join(validator, "priv_validator_key.json"), "{}", { mode: 0o600 });
    writeFileSync(join(users, "ann.json"), "{}", { mode: 0o600 });
    for (const [role, name] of [
      ["deposit-watcher", "config/pgpass"],
      ["migrate", "config/database-roles/worker.password"],
      ["redis", "config/redis.conf"],
      ["operator", "nodes/node1/config/priv_validator_key.json"],
      ["operator", "data/console/users/ann.json"],
    ] as const) {
      const paths = homePaths(join(folder, role));
      expect(checkKeyModes(paths).map(({ severity }) => severity)).toEqual(["pass"]);
      const file = join(paths.home, name);
      chmodSync(file, 0o640);
      expect(checkKeyModes(paths).map(({ value }) => value)).toEqual([`${file} is open to others`]);
      chmodSync(file, 0o600);
    }
  });

  it("tells what a person has stopped, and what lifts it", async () => {
    const paths = homePaths(join(newFolder(), "home"));
    expect(checkKillSwitch(paths, SWITCH_UNTOUCHED)).toEqual([]);
    await runInit(contextFor(paths.home), {});
    expect(checkKillSwitch(paths, SWITCH_UNTOUCHED)).toMatchObject([
      { id: "kill-switch", severity: "pass" },
    ]);
    const at = "2026-11-22T08:38:05.354Z";
    const state = { level: "stop-new", reason: "odd payments", by: "ann", at } as const;
    await writeKillSwitchFile(paths.killSwitch, state);
    expect(checkKillSwitch(paths, SWITCH_UNTOUCHED)).toEqual([
      {
        id: "kill-switch",
        severity: "fail",
        value: `stop-new since ${at}: odd payments`,
        remedy: "once its cause is gone: causeway killswitch lift --reason TEXT",
      },
    ]);
    writeFileSync(paths.killSwitch, "{");
    expect(checkKillSwitch(paths, SWITCH_UNTOUCHED)).toMatchObject([
      { id: "kill-switch", severity: "fail" },
    ]);
  });

  it("warns where no hot wallet takes new withdrawals", () => {
    const wallet = { address: "0x01", inFlight: 0, isFrozen: false, hasKey: true };
    const severities = (...statuses: readonly string[]) =>
      checkWallets(statuses.map((status) => ({ ...wallet, status }))).map((one) => one.severity);
    expect(severities()).toEqual([]);
    expect(severities("active", "draining")).toEqual(["pass", "pass"]);
    expect(severities("draining", "retired")).toEqual(["pass", "pass", "warn"]);
  });

  it("does not say that a release lifts what the kill switch or an incident stops", () => {
    const frozen = { address: "0x01", inFlight: 0, isFrozen: true, hasKey: true, status: "active" };
    const [{ severity, remedy } = { severity: "", remedy: "" }] = checkWallets([frozen]);
    expect(severity).toBe("fail");
    expect(remedy).toMatch(/withdrawals list says why.*names what else has to be lifted/);
  });

  it("knows the node of another home, although all local chains have one chain id", async () => {
    const paths = homePaths(join(newFolder(), "home"));
    await runInit(contextFor(paths.home), {});
    const begunMs = loadGenesis(paths.genesis).genesisTimeMs;
    let timestampSeconds = Math.floor(begunMs / 1_000);
    const node = await startFakeNode({
      eth_chainId: () => "0x1b1c",
      eth_getBlockByNumber: () => ({
        number: "0x0",
        hash: hashOf("block 0"),
        parentHash: hashOf("nothing"),
        timestamp: toQuantity(timestampSeconds),
      }),
    });
    const rpc = createJsonRpcClient({ url: node.url, timeoutMs: 10_000 });
    const evm = createEvmClient(rpc);
    const ledger = {
      readLedgerSwitch: async () => undefined,
      readLedgerPolicy: async () => undefined,
    };
    const sources = { paths, env: {}, portOffset: 0, clock: systemClock, signal, ...ledger };
    const check = () => checkChain({ ...sources, createEvm: () => evm }, evm);
    try {
      expect(await check()).toMatchObject({ severity: "pass", value: "6940 (testnet)" });
      timestampSeconds += 1;
      expect(await check()).toMatchObject({
        severity: "fail",
        remedy: "another home's node answers: check --home and --port-offset",
      });
    } finally {
      rpc.close();
      await node.close();
    }
  });

  it("turns wrong settings into findings", () => {
    const { findings, config } = settingsOf("/nonexistent", { CAUSEWAY_APP_PRUNING: "sometimes" });
    expect(config).toBeUndefined();
    expect(findings).toHaveLength(1);
    expect(findings[0]).toMatchObject({ severity: "fail" });
    expect(findings[0]?.value).toContain("CAUSEWAY_APP_PRUNING");
  });
});

describe("the causeway command", () => {
  it("reports a kit that is not running with exit code 1 and one JSON document", async () => {
    const lines: string[] = [];
    let exitCode = -1;
    const program = createProgram({
      version: "1.2.3",
      env: {},
      signal,
      print: (line) => lines.push(line),
      warn: () => undefined,
      setExitCode: (code) => {
        exitCode = code;
      },
    });
    const home = join(newFolder(), "home");
    const argv = ["status", "--json", "--home", home, "--port-offset", "37000"];
    await program.parseAsync(argv, { from: "user" });
    expect(exitCode).toBe(1);
    const document = JSON.parse(lines.join("\n"));
    expect(document).toMatchObject({ schemaVersion: 1, ready: false });
    expect(document.parts.map(({ part }: { part: string }) => part)).toContain("node");
  });

  it("has help for every command", () => {
    const program = createProgram({
      version: "1.2.3",
      env: {},
      signal,
      print: () => undefined,
      warn: () => undefined,
      setExitCode: () => undefined,
    });
    const names = program.commands.map((command) => command.name());
    expect(names).toEqual(
      expect.arrayContaining([
        "init",
        "status",
        "doctor",
        "migrate",
        "reconcile",
        "deposits",
        "withdrawals",
      ]),
    );
    const nested = program.commands.flatMap((command) => command.commands);
    expect(nested.map((command) => command.name())).toEqual(
      expect.arrayContaining(["list", "status", "resume", "show", "freeze", "release"]),
    );
    for (const command of [...program.commands, ...nested]) {
      expect(`${command.name()}: ${command.description()}`).toMatch(/: \S/);
    }
  });
});
