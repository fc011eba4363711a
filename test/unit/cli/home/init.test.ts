import assert from "node:assert/strict";
import { afterEach, describe, expect, it } from "@jest/globals";
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HDNodeWallet, Wallet } from "ethers";
import { homePaths, type HomePaths, resolveHome } from "../../../../cli/home/home.js";
import { KIT_CONFIG_FILES } from "../../../../cli/home/kit-config.js";
import { initHome, type InitOptions, isInitialised } from "../../../../cli/home/init.js";
import { planChain } from "../../../../cli/home/network/attach.js";
import { kitNodes } from "../../../../cli/home/network/kit-nodes.js";
import { writeNodeHome } from "../../../../cli/home/node-home.js";
import { writeRoleHomes } from "../../../../cli/home/role-homes.js";
import { itForRoot } from "../../../helpers/processes/for-root.js";
import { loadNodeId } from "../../../../node/consensus/signing/validator-key.js";
import { parseGenesis } from "../../../../node/settings/genesis.js";
import { firstModuleParams, parseModuleParams } from "../../../../node/settings/module-params.js";
import {
  defineConfigFile,
  field,
  loadConfig,
  readPortOffset,
} from "../../../../runtime/config/config.js";
import { explorerConfig } from "../../../../explorer/config.js";
import { sidecarConfig } from "../../../../sidecar/config.js";

const forRoot = itForRoot();

const folders: string[] = [];

function newPaths(): HomePaths {
  const folder = mkdtempSync(join(tmpdir(), "causeway-init-"));
  folders.push(folder);
  return homePaths(join(folder, "home"));
}

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const configFiles = [
  defineConfigFile("app", {
    "json-rpc": { address: field.listenAddress({ default: "127.0.0.1:8545", help: "Where." }) },
  }),
];

function optionsFor(paths: HomePaths): InitOptions {
  return {
    paths,
    portOffset: 100,
    network: "testnet",
    configFiles,
    clock: { nowMs: () => 1_700_000_000_000, monotonicMs: () => 0 },
    scrypt: { n: 1_024, r: 8, p: 1 },
  };
}

function contentsOf(paths: HomePaths): Record<string, string> {
  const files = readdirSync(paths.config);
  return Object.fromEntries(
    files.map((name) => [name, readFileSync(join(paths.config, name), "utf8")]),
  );
}

describe("init", () => {
  it("writes every file of the contract, secrets with mode 600", async () => {
    const paths = newPaths();
    const result = await initHome(optionsFor(paths));
    expect(result.created).toBe(true);
    const names = readdirSync(paths.config).toSorted();
    expect(names).toEqual([
      "api.key",
      "app.toml",
      "deposit.seed",
      "deposit.xpub",
      "faucet.key",
      "genesis.json",
      "hot-wallet.json",
      "hot-wallet.passphrase",
      "kill-switch.json",
      "node_key.json",
      "operator.key",
      "policy.json",
      "postgres.password",
      "priv_validator_key.json",
      "tokens.json",
    ]);
    for (const name of names.filter((file) => !["genesis.json", "tokens.json"].includes(file))) {
      const mode = statSync(join(paths.config, name)).mode & 0o777;
      expect(`${name} ${mode.toString(8)}`).toBe(`${name} 600`);
    }
    expect(statSync(paths.config).mode & 0o777).toBe(0o700);
    expect(readPortOffset(paths.home, ["app"])).toBe(100);
    expect(readFileSync(join(paths.config, "app.toml"), "utf8")).toContain("127.0.0.1:8645");
  });

  it("funds the faucet and the hot wallet whose keys lie in the home", async () => {
    const paths = newPaths();
    const result = await initHome(optionsFor(paths));
    const genesis = parseGenesis(readFileSync(paths.genesis, "utf8"));
    const faucet = new Wallet(readFileSync(paths.faucetKey, "utf8").trim());
    expect(result.faucetAddress).toBe(faucet.address.toLowerCase());
    const passphrase = readFileSync(paths.hotWalletPassphrase, "utf8").trim();
    const hot = await Wallet.fromEncryptedJson(readFileSync(paths.hotWallet, "utf8"), passphrase);
    expect(result.hotWalletAddress).toBe(hot.address.toLowerCase());
    expect(genesis.alloc.get(result.faucetAddress)?.balanceAtoken).toBeGreaterThan(10n ** 18n);
    expect(genesis.alloc.get(result.hotWalletAddress)?.balanceAtoken).toBeGreaterThan(10n ** 18n);
    expect(genesis.evmChainId).toBe(6940n);
    const words = readFileSync(paths.depositSeed, "utf8").trim();
    const xpub = readFileSync(paths.depositXpub, "utf8").trim();
    expect(HDNodeWallet.fromExtendedKey(xpub).deriveChild(7).address).toBe(
      HDNodeWallet.fromPhrase(words, "", "m/44'/60'/0'/0/7").address,
    );
  });

  it("gives the validator stake, owned by the operator whose key lies in the home", async () => {
    const paths = newPaths();
    const modules = parseModuleParams({ "staking.unbonding_time": "120s" });
    await initHome({ ...optionsFor(paths), modules });
    const genesis = parseGenesis(readFileSync(paths.genesis, "utf8"));
    const operator = new Wallet(readFileSync(paths.operatorKey, "utf8").trim());
    expect(genesis.validators).toMatchObject([
      { operator: operator.address.toLowerCase(), power: 100, moniker: "causeway" },
    ]);
    expect(genesis.modules?.staking.unbonding_time).toBe(120_000n);
    const plain = newPaths();
    await initHome(optionsFor(plain));
    expect(parseGenesis(readFileSync(plain.genesis, "utf8")).modules).toEqual(firstModuleParams());
  });

  it("bounds the age of the newest block by the interval of the chain", async () => {
    const boundsOf = async (blockIntervalMs?: number) => {
      const paths = newPaths();
      const options = { ...optionsFor(paths), configFiles: KIT_CONFIG_FILES };
      await initHome(blockIntervalMs === undefined ? options : { ...options, blockIntervalMs });
      return [sidecarConfig, explorerConfig].map(
        (file) => loadConfig({ home: paths.home, env: {} }, file).node["max-block-age-ms"],
      );
    };
    expect(await boundsOf()).toEqual([60_000, 60_000]);
    expect(await boundsOf(4_000)).toEqual([60_000, 60_000]);
    expect(await boundsOf(30_000)).toEqual([450_000, 450_000]);
  });

  it("changes nothing the second time", async () => {
    const paths = newPaths();
    await initHome(optionsFor(paths));
    const before = contentsOf(paths);
    const again = await initHome({ ...optionsFor(paths), portOffset: 0 });
    expect(again.created).toBe(false);
    expect(contentsOf(paths)).toEqual(before);
  });

  it("completes an init that was cut off, keeping the keys that exist", async () => {
    const complete = newPaths();
    await initHome(optionsFor(complete));
    const order = [
      "genesis.json",
      "app.toml",
      "tokens.json",
      "node_key.json",
      "api.key",
      "priv_validator_key.json",
      "kill-switch.json",
      "policy.json",
      "deposit.xpub",
      "deposit.seed",
      "hot-wallet.json",
      "hot-wallet.passphrase",
      "postgres.password",
    ];
    // Files appear in a fixed order: cut the init off before each of them.
    for (const [index] of order.entries()) {
      const lost = order.slice(0, index + 1);
      for (const name of lost) rmSync(join(complete.config, name), { force: true });
      const kept = contentsOf(complete);
      const result = await initHome(optionsFor(complete));
      expect(`${lost.at(-1)} ${result.created}`).toBe(`${lost.at(-1)} true`);
      expect(contentsOf(complete)).toMatchObject(kept);
      const passphrase = readFileSync(complete.hotWalletPassphrase, "utf8").trim();
      const keystore = readFileSync(complete.hotWallet, "utf8");
      await expect(Wallet.fromEncryptedJson(keystore, passphrase)).resolves.toBeDefined();
    }
  });

  it("completes an init that was cut off with the values it began with, and refuses others", async () => {
    const modules = parseModuleParams({ "staking.unbonding_time": "120s" });
    const cuts: readonly Partial<InitOptions>[] = [
      { scrypt: { n: 3, r: 8, p: 1 } },
      { clock: { nowMs: () => assert.fail("cut off"), monotonicMs: () => 0 } },
    ];
    for (const cut of cuts) {
      const paths = newPaths();
      const options = { ...optionsFor(paths), configFiles: KIT_CONFIG_FILES };
      const first = { ...options, modules, blockIntervalMs: 30_000, validators: 2 };
      await expect(initHome({ ...first, ...cut })).rejects.toThrow();
      expect(existsSync(paths.genesis)).toBe(false);

      const others: readonly Partial<InitOptions>[] = [
        { modules: parseModuleParams({ "staking.unbonding_time": "121s" }) },
        { modules: firstModuleParams() },
        { blockIntervalMs: 900 },
      ];
      for (const other of others) {
        await expect(initHome({ ...options, ...other })).rejects.toMatchObject({
          code: "HOME_EXISTS",
          message: expect.stringMatching(/was cut off.*(unbonding_time=120s|-interval-ms=30000)/),
        });
      }
      expect(kitNodes(paths.home)).toHaveLength(2);

      expect(await initHome({ ...options, blockIntervalMs: 30_000 })).toMatchObject({
        created: true,
      });
      const genesis = parseGenesis(readFileSync(paths.genesis, "utf8"));
      expect(genesis.modules).toEqual(modules);
      expect(genesis.params.blockIntervalMs).toBe(30_000);
      expect(genesis.validators).toHaveLength(2);
      const bounds = loadConfig({ home: paths.home, env: {} }, sidecarConfig);
      expect(bounds.node["max-block-age-ms"]).toBe(450_000);
      expect(existsSync(paths.newChain)).toBe(false);
    }
  });

  it("makes no chain where nobody can say what an init that was cut off began with", async () => {
    const paths = newPaths();
    mkdirSync(paths.config, { recursive: true });
    for (const text of ["", "{}", '{"blockIntervalMs":1,"validators":1,"modules":{"a.b":"1"}}']) {
      writeFileSync(paths.newChain, text);
      await expect(initHome(optionsFor(paths))).rejects.toMatchObject({ code: "HOME_INCOMPLETE" });
    }
    expect(readdirSync(paths.config)).toEqual(["new-chain.json"]);
    // No start that is to join a chain takes the home either.
    expect(() => planChain({ network: "testnet" }, paths, {})).toThrow(/a home of its own/);
  });

  it("makes the validators of a network, and completes them with the one genesis", async () => {
    const paths = newPaths();
    const options = { ...optionsFor(paths), configFiles: KIT_CONFIG_FILES, validators: 3 };
    await initHome(options);
    const homes = [0, 1, 2].map((index) => homePaths(join(paths.home, "nodes", `node${index}`)));
    const text = readFileSync(paths.genesis, "utf8");
    const keys = homes.map(({ validatorKey }) =>
      String(JSON.parse(readFileSync(validatorKey, "utf8")).pub_key.value),
    );
    expect(parseGenesis(text).validators.map(({ publicKey }) => publicKey)).toEqual(keys);
    expect(existsSync(paths.validatorKey)).toBe(false);
    expect(homes.map(({ home }) => readPortOffset(home, ["config"]))).toEqual([100, 200, 300]);
    const [first, second, third] = homes.map((home) => contentsOf(home));
    const peers = homes.map(({ nodeKey }, index) => {
      return `${loadNodeId(nodeKey)}@127.0.0.1:${26_656 + 100 * (index + 1)}`;
    });
    for (const { config } of homes) {
      const toml = readFileSync(join(config, "config.toml"), "utf8");
      expect(toml).toContain(`persistent_peers = "${peers.join(",")}"`);
    }

    // Cut off after the first node's genesis; the clock has moved on when it is called again.
    for (const file of [paths.genesis, homes[1]?.genesis, homes[2]?.genesis]) rmSync(file ?? "");
    rmSync(join(homes[2]?.config ?? "", "config.toml"));
    const clock = { nowMs: () => 1_800_000_000_000, monotonicMs: () => 0 };
    const again = { ...options, clock, validators: undefined };
    expect(await initHome(again)).toMatchObject({ created: true });
    expect(readFileSync(paths.genesis, "utf8")).toBe(text);
    expect(homes.map((home) => contentsOf(home))).toEqual([first, second, third]);
  });

  it("refuses a network that lost a validator's key", async () => {
    const paths = newPaths();
    const options = { ...optionsFor(paths), configFiles: KIT_CONFIG_FILES, validators: 2 };
    await initHome(options);
    const lost = homePaths(join(paths.home, "nodes", "node1"));
    rmSync(lost.validatorKey);
    // The number of the chain counts, not the one that is asked for.
    await expect(initHome({ ...options, validators: undefined })).rejects.toMatchObject({
      code: "HOME_INCOMPLETE",
      message: expect.stringContaining(lost.validatorKey),
    });
  });

  it("refuses to replace a lost key of a chain that exists", async () => {
    const paths = newPaths();
    await initHome(optionsFor(paths));
    rmSync(paths.hotWallet);
    await expect(initHome(optionsFor(paths))).rejects.toMatchObject({
      code: "HOME_INCOMPLETE",
      message: expect.stringContaining("hot-wallet.json"),
    });
    expect(existsSync(paths.hotWallet)).toBe(false);
  });

  it("asks for no passphrase where the key of the hot wallet is held elsewhere", async () => {
    const paths = newPaths();
    const options = { ...optionsFor(paths), configFiles: KIT_CONFIG_FILES };
    const { hotWalletAddress: address } = await initHome(options);
    writeFileSync(paths.hotWallet, JSON.stringify({ address }));
    rmSync(paths.hotWalletPassphrase);
    const again = { created: false, hotWalletAddress: address };
    expect(await initHome(options)).toMatchObject(again);
    expect(existsSync(paths.hotWalletPassphrase)).toBe(false);

    // Nor do the homes of single processes, also of a further wallet whose key was taken out.
    mkdirSync(join(paths.config, "wallets"));
    const former = JSON.stringify({ address: `0x${"0f".repeat(20)}` });
    writeFileSync(join(paths.config, "wallets", "former.json"), former);
    const folder = join(paths.home, "roles");
    await writeRoleHomes(paths, folder);
    const config = join(folder, "withdrawal-worker", "config");
    expect(readFileSync(join(config, "wallets", "former.json"), "utf8")).toBe(former);
    expect(readdirSync(config).filter((name) => name.startsWith("hot-wallet"))).toEqual([
      "hot-wallet.json",
    ]);
  });

  forRoot("gives what is new in a role's home to whoever has the folder", async () => {
    const paths = newPaths();
    await initHome({ ...optionsFor(paths), configFiles: KIT_CONFIG_FILES });
    const folder = join(paths.home, "roles");
    await writeRoleHomes(paths, folder);
    const config = join(folder, "withdrawal-worker", "config");
    chownSync(config, 1_234_567, 1_234_567);
    mkdirSync(join(paths.config, "wallets"));
    const further = JSON.stringify({ address: `0x${"0f".repeat(20)}` });
    writeFileSync(join(paths.config, "wallets", "further.json"), further);
    await writeRoleHomes(paths, folder);
    const owners = ["wallets", "wallets/further.json"].map(
      (name) => statSync(join(config, name)).uid,
    );
    expect(owners).toEqual([1_234_567, 1_234_567]);
  });

  it("puts no copy of the first day in the place of what stood in a role's home later", async () => {
    const paths = newPaths();
    await initHome({ ...optionsFor(paths), configFiles: KIT_CONFIG_FILES });
    const folder = join(paths.home, "roles");
    expect(await writeRoleHomes(paths, folder)).toEqual([]);
    const states = [
      "node/config/priv_validator_key.json",
      "node/data/priv_validator_state.json",
      "withdrawal-worker/config/policy.json",
      "withdrawal-worker/config/kill-switch.json",
    ];
    const others = ["node/config/app.toml", "withdrawal-worker/config/worker.toml"];
    for (const name of [...states, ...others]) rmSync(join(folder, name));
    expect(await writeRoleHomes(paths, folder)).toEqual(states);
    const areThere = (names: readonly string[]) => names.filter((n) => existsSync(join(folder, n)));
    expect(areThere([...states, ...others])).toEqual(others);
    // A home whose making was broken off has only some of them.
    rmSync(join(folder, "withdrawal-worker"), { recursive: true });
    mkdirSync(join(folder, "withdrawal-worker", "config"), { recursive: true });
    await writeRoleHomes(paths, folder);
    expect(areThere(states)).toEqual(states.slice(2));
  });

  it("makes homes of roles from one of before there was a policy, and names what it has not", async () => {
    const paths = newPaths();
    await initHome({ ...optionsFor(paths), configFiles: KIT_CONFIG_FILES });
    for (const file of [paths.policy, paths.killSwitch]) rmSync(file);
    const folder = join(paths.home, "roles");
    const names = ["withdrawal-worker", "treasury", "desk"].flatMap((role) => [
      `${role}/config/policy.json`,
      `${role}/config/kill-switch.json`,
    ]);
    expect(await writeRoleHomes(paths, folder)).toEqual(names);
    expect(names.filter((name) => existsSync(join(folder, name)))).toEqual([]);
    expect(existsSync(join(folder, "withdrawal-worker", "config", "hot-wallet.json"))).toBe(true);
    // The worker makes its own ones by its first start.
    for (const name of names.slice(0, 2)) writeFileSync(join(folder, name), "{}");
    expect(await writeRoleHomes(paths, folder)).toEqual(names.slice(2));
  });

  it("names the file of the complete home that homes of roles cannot be made without", async () => {
    const paths = newPaths();
    await initHome({ ...optionsFor(paths), configFiles: KIT_CONFIG_FILES });
    const file = join(paths.data, "priv_validator_state.json");
    rmSync(file);
    const made = writeRoleHomes(paths, join(paths.home, "roles"));
    await expect(made).rejects.toThrow(
      `Cannot read ${file}, of which a copy is to be made: no such`,
    );
  });

  it("refuses to make a new genesis where a chain exists", async () => {
    const paths = newPaths();
    await initHome(optionsFor(paths));
    mkdirSync(join(paths.data, "chain"));
    rmSync(paths.genesis);
    await expect(initHome(optionsFor(paths))).rejects.toMatchObject({
      code: "HOME_INCOMPLETE",
      message: expect.stringContaining("genesis.json"),
    });
    expect(existsSync(paths.genesis)).toBe(false);
  });

  it("makes nothing anew where a validator of a network has a chain", async () => {
    const paths = newPaths();
    const options = { ...optionsFor(paths), configFiles: KIT_CONFIG_FILES, validators: 3 };
    await initHome(options);
    const [first, second] = ["node0", "node1"].map((name) =>
      homePaths(join(paths.home, "nodes", name)),
    );
    if (first === undefined || second === undefined) throw new Error("a network has nodes");
    mkdirSync(second.store);
    const lost = [paths.genesis, paths.policy, first.validatorKey];
    for (const file of [...lost, paths.killSwitch]) rmSync(file);
    const refusal = { code: "HOME_INCOMPLETE", details: { missing: [lost[0], lost[2]] } };
    await expect(initHome({ ...options, validators: undefined })).rejects.toMatchObject(refusal);
    // Nor where no genesis tells how many validators there are.
    rmSync(first.genesis);
    await expect(initHome({ ...options, validators: undefined })).rejects.toMatchObject(refusal);
    expect([...lost, paths.killSwitch].filter((file) => existsSync(file))).toEqual([]);
  });

  it("makes no state of a validator anew where its chain exists", async () => {
    const paths = newPaths();
    await initHome({ ...optionsFor(paths), configFiles: KIT_CONFIG_FILES, validators: 2 });
    const node = homePaths(join(paths.home, "nodes", "node0"));
    const contents = {
      genesis: readFileSync(node.genesis, "utf8"),
      nodeKey: readFileSync(node.nodeKey, "utf8"),
      validatorKey: readFileSync(node.validatorKey, "utf8"),
      portOffset: 0,
      moniker: "node0",
      p2p: {},
    };
    rmSync(node.validatorState);
    mkdirSync(node.store);
    await writeNodeHome(node, contents);
    expect(existsSync(node.validatorState)).toBe(false);
    rmSync(node.store, { recursive: true });
    await writeNodeHome(node, contents);
    expect(existsSync(node.validatorState)).toBe(true);
  });

  it("makes a lost node key and API key anew", async () => {
    const paths = newPaths();
    await initHome(optionsFor(paths));
    rmSync(paths.nodeKey);
    rmSync(paths.apiKey);
    await initHome(optionsFor(paths));
    expect(await isInitialised(paths)).toBe(true);
    expect(readFileSync(paths.apiKey, "utf8")).toMatch(/^[0-9a-f]{64}\n$/);
  });

  it("names folder and cause where it cannot write", async () => {
    const paths = newPaths();
    const file = homePaths("/proc/causeway-home");
    await expect(initHome(optionsFor(file))).rejects.toMatchObject({
      code: "HOME_UNUSABLE",
      message: expect.stringMatching(/^Cannot create the folder \/proc\/causeway-home: /),
    });
    expect(existsSync(paths.home)).toBe(false);
  });
});

describe("the home", () => {
  it("is the flag, else the variable, else .causeway in the clone", () => {
    expect(resolveHome("/a", { CAUSEWAY_HOME: "/b" })).toBe("/a");
    expect(resolveHome(undefined, { CAUSEWAY_HOME: "/b" })).toBe("/b");
    expect(resolveHome(undefined, {})).toBe(join(process.cwd(), ".causeway"));
    expect(resolveHome(undefined, { CAUSEWAY_HOME: "" })).toBe(join(process.cwd(), ".causeway"));
    // As of a variable that was never set: the working folder is not what anybody means.
    expect(() => resolveHome("", { CAUSEWAY_HOME: "/b" })).toThrow("--home needs a folder");
  });
});
