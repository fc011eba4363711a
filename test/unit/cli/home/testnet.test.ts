import { afterEach, describe, expect, it } from "@jest/globals";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Wallet } from "ethers";
import { parse as parseToml } from "smol-toml";
import { parseAddress } from "../../../../chain/address.js";
import { homePaths } from "../../../../cli/home/home.js";
import {
  initNetworkHome,
  readNetworkGenesis,
} from "../../../../cli/home/network/network-source.js";
import { parseNetworkFlag } from "../../../../cli/commands/init.js";
import { parseTestnetFlags } from "../../../../cli/commands/testnet.js";
import { createProgram } from "../../../../cli/program/program.js";
import { createTestnet, type TestnetOptions } from "../../../../cli/home/network/testnet.js";
import { createGenesisBlock } from "../../../../node/blocks/genesis-block.js";
import { loadGenesis, parseGenesis } from "../../../../node/settings/genesis.js";
import { parseModuleParams } from "../../../../node/settings/module-params.js";

const folders: string[] = [];

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "causeway-testnet-"));
  folders.push(folder);
  return folder;
}

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function optionsFor(out: string, others: Partial<TestnetOptions> = {}): TestnetOptions {
  const clock = { nowMs: () => 1_700_000_000_000, monotonicMs: () => 0 };
  return { out, validators: 3, fullNodes: 1, portOffset: 1_000, clock, ...others };
}

/** Lines `path mode` of all files below a folder. */
function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => ({ name, stats: statSync(join(folder, name)) }))
    .filter(({ stats }) => stats.isFile())
    .map(({ name, stats }) => `${name} ${(stats.mode & 0o777).toString(8)}`)
    .toSorted();
}

/** A settings file as any TOML reader sees it. */
function settings(home: string, name: string): Record<string, Record<string, unknown>> {
  const text = readFileSync(join(home, "config", `${name}.toml`), "utf8");
  return parseToml(text) as Record<string, Record<string, unknown>>;
}

function json(path: string): Record<string, Record<string, string>> {
  return JSON.parse(readFileSync(path, "utf8")) as Record<string, Record<string, string>>;
}

/** SHA-256(ed25519 public key)[0..20] of a key file's text, without any of our code. */
function idOf(keyFile: string): string {
  const key = Buffer.from(json(keyFile)["priv_key"]?.["value"] ?? "", "base64");
  return createHash("sha256").update(key.subarray(32)).digest("hex").slice(0, 40);
}

describe("a genesis file", () => {
  it("that cannot be used is named, whatever is wrong with it", () => {
    const file = join(newFolder(), "genesis.json");
    expect(() => loadGenesis(file)).toThrow(`cannot read ${file}`);
    for (const text of ["{", "{}"]) {
      writeFileSync(file, text);
      expect(() => loadGenesis(file)).toThrow(
        expect.objectContaining({
          code: "GENESIS_INVALID",
          message: expect.stringContaining(`${file}: genesis is not valid: `),
        }),
      );
    }
  });
});

describe("causeway testnet", () => {
  it("writes nothing where no node would start from its genesis", async () => {
    const out = join(newFolder(), "net");
    const modules = parseModuleParams({ "staking.max_validators": "2" });
    await expect(createTestnet(optionsFor(out, { modules }))).rejects.toMatchObject({
      code: "GENESIS_INVALID",
      message: expect.stringContaining("more validators than staking.max_validators"),
    });
    expect(existsSync(out)).toBe(false);
    await createTestnet(optionsFor(out, { modules, validators: 2 }));
  });

  it("refuses a file, and a file system that takes no folders, in a sentence and at once", async () => {
    const file = join(newFolder(), "file");
    writeFileSync(file, "");
    for (const out of [file, "/proc/causeway-testnet"]) {
      const refused = expect.objectContaining({
        code: "HOME_UNUSABLE",
        message: expect.stringContaining(out),
      });
      await expect(createTestnet(optionsFor(out))).rejects.toEqual(refused);
    }
  });

  it("writes a complete home for every node and nothing else", async () => {
    const out = newFolder();
    await createTestnet(optionsFor(out));
    const home = [
      "config/app.toml 600",
      "config/config.toml 600",
      "config/genesis.json 644",
      "config/node_key.json 600",
      "config/priv_validator_key.json 600",
      "data/priv_validator_state.json 600",
    ];
    const names = ["full0", "node0", "node1", "node2"];
    const all = names.flatMap((name) => {
      const operator = name === "full0" ? [] : ["config/operator.key 600"];
      return [...home, ...operator].toSorted().map((file) => `${name}/${file}`);
    });
    expect(filesOf(out)).toEqual(["faucet.key 600", ...all]);
    expect(json(join(out, "node1", "data", "priv_validator_state.json"))).toEqual({
      height: "0",
      round: 0,
      step: 0,
    });
  });

  it("spreads the ports by 100, full nodes counting on, each written as a number", async () => {
    const out = newFolder();
    await createTestnet(optionsFor(out));
    for (const [index, name] of ["node0", "node1", "node2", "full0"].entries()) {
      const config = settings(join(out, name), "config");
      const app = settings(join(out, name), "app");
      const offset = 1_000 + 100 * index;
      expect([name, config["p2p"]?.["laddr"], config["rpc"]?.["laddr"]]).toEqual([
        name,
        `tcp://127.0.0.1:${26_656 + offset}`,
        `tcp://127.0.0.1:${26_657 + offset}`,
      ]);
      const metrics = config["instrumentation"]?.["prometheus_listen_addr"];
      expect(metrics).toBe(`127.0.0.1:${26_660 + offset}`);
      expect(app["json-rpc"]?.["address"]).toBe(`127.0.0.1:${8_545 + offset}`);
      expect(app["json-rpc"]?.["ws-address"]).toBe(`127.0.0.1:${8_546 + offset}`);
      expect(config["moniker"]).toBe(name);
    }
  });

  it("names all validators as persistent peers, and looks for nobody else", async () => {
    const out = newFolder();
    await createTestnet(optionsFor(out));
    const addresses = [0, 1, 2].map((index) => {
      const id = idOf(join(out, `node${index}`, "config", "node_key.json"));
      return `${id}@127.0.0.1:${27_656 + 100 * index}`;
    });
    for (const name of ["node0", "node1", "node2", "full0"]) {
      const { p2p } = settings(join(out, name), "config");
      expect([name, p2p?.["persistent_peers"], p2p?.["pex"], p2p?.["seeds"]]).toEqual([
        name,
        addresses.join(","),
        false,
        "",
      ]);
    }
  });

  it("gives all one genesis with the validators' keys, equal power and a funded faucet", async () => {
    const out = newFolder();
    await createTestnet(optionsFor(out, { blockIntervalMs: 200 }));
    const texts = ["node0", "node1", "node2", "full0"].map((name) =>
      readFileSync(join(out, name, "config", "genesis.json"), "utf8"),
    );
    expect(new Set(texts).size).toBe(1);
    const genesis = parseGenesis(texts[0] ?? "");
    const keys = [0, 1, 2].map(
      (index) => json(join(out, `node${index}`, "config", "priv_validator_key.json"))["pub_key"],
    );
    expect(genesis.validators.map(({ publicKey }) => publicKey)).toEqual(
      keys.map((key) => key?.["value"]),
    );
    expect(new Set(genesis.validators.map(({ power }) => power)).size).toBe(1);
    expect(genesis.params.blockIntervalMs).toBe(200);
    expect(genesis.cosmosChainId).toBe("chain_6940-1");
    const key = readFileSync(join(out, "faucet.key"), "utf8").trim();
    expect(key).toMatch(/^0x[0-9a-f]{64}$/);
    const faucet = new Wallet(key).address.toLowerCase();
    const balance = [...genesis.alloc].find(([address]) => address === faucet)?.[1].balanceAtoken;
    expect(balance).toBeGreaterThanOrEqual(10_000n * 10n ** 18n);
  });

  it("puts each node on a host of its own when hosts are named", async () => {
    const out = newFolder();
    const hosts = ["10.0.0.1", "b.example", "[fd00::3]", "d.example"];
    const { nodes } = await createTestnet(optionsFor(out, { hosts }));
    const reached = nodes.map(({ peerAddress }) => peerAddress.split("@")[1]);
    expect(reached).toEqual(hosts.map((host) => `${host}:27656`));
    const { p2p, rpc } = settings(join(out, "node1"), "config");
    expect(p2p?.["laddr"]).toBe("tcp://0.0.0.0:27656");
    expect(p2p?.["external_address"]).toBe("b.example:27656");
    expect(rpc?.["laddr"]).toBe("tcp://127.0.0.1:27657");
    expect(p2p?.["persistent_peers"]).toBe(
      [0, 1, 2].map((index) => nodes[index]?.peerAddress).join(","),
    );
  });

  it("leaves a network that is there as it is", async () => {
    const out = newFolder();
    await createTestnet(optionsFor(out));
    const before = readFileSync(join(out, "faucet.key"), "utf8");
    await expect(createTestnet(optionsFor(out))).rejects.toMatchObject({ code: "HOME_EXISTS" });
    rmSync(join(out, "faucet.key"));
    await expect(createTestnet(optionsFor(out))).rejects.toMatchObject({
      code: "HOME_EXISTS",
      message: expect.stringContaining(join(out, "node0")),
    });
    expect(before).toMatch(/^0x/);
    expect(readdirSync(out).toSorted()).toEqual(["full0", "node0", "node1", "node2"]);
  });

  it("tells all wrong flags at once", () => {
    const flags = { validators: "0", out: "x", fullNodes: "-1", portOffset: "70000", hosts: "a b" };
    expect(() => parseTestnetFlags(flags)).toThrow(
      /--validators must be .*--full-nodes must be .*--port-offset must be .*--hosts names "a b"/,
    );
    const few = { validators: "2", out: "x", hosts: "a,a" };
    expect(() => parseTestnetFlags(few)).toThrow("2 different hosts");
    expect(() => parseTestnetFlags({ validators: "2", out: "" })).toThrow("--out needs a folder");
    expect(() => parseTestnetFlags({ validators: "2" })).toThrow("--out needs a folder");
    const two = { validators: "2", out: "x", home: "y" };
    expect(() => parseTestnetFlags(two)).toThrow(/^--out x and --home y name different folders/);
    const high = { validators: "4", out: "x", portOffset: "37900" };
    expect(() => parseTestnetFlags(high)).toThrow("above 65535");
    expect(parseTestnetFlags({ ...high, validators: "2" })).toMatchObject({ portOffset: 37_900 });
  });

  it("takes --home for its folder, as every command has one", () => {
    const [validators, home] = ["2", "x"];
    for (const flags of [{ home }, { out: "./x", home }]) {
      const { out } = parseTestnetFlags({ validators, ...flags });
      expect({ flags, out: resolve(out) }).toEqual({ flags, out: resolve("x") });
    }
  });
});

describe("causeway init --network", () => {
  const init = (home: string, network: "mainnet" | "testnet") =>
    initNetworkHome({ paths: homePaths(home), network, portOffset: 0, moniker: "mine" });

  it("writes a full node's home with the network's seeds and genesis", async () => {
    for (const [network, chain] of [
      ["mainnet", "chain_6941-1"],
      ["testnet", "chain_6940-1"],
    ] as const) {
      const home = join(newFolder(), network);
      const { nodeId } = await init(home, network);
      expect(nodeId).toBe(idOf(join(home, "config", "node_key.json")));
      const { p2p, moniker } = settings(home, "config");
      const seeds = [1, 2, 3].map((index) => `seed${index}.${network}.example:26656`);
      expect(p2p?.["seeds"]).toBe(seeds.join(","));
      expect([moniker, p2p?.["pex"], p2p?.["persistent_peers"]]).toEqual(["mine", true, ""]);
      const genesis = parseGenesis(readFileSync(join(home, "config", "genesis.json"), "utf8"));
      expect([genesis.network, genesis.cosmosChainId]).toEqual([network, chain]);
      const ownKey = json(join(home, "config", "priv_validator_key.json"))["pub_key"]?.["value"];
      expect(genesis.validators.map(({ publicKey }) => publicKey)).not.toContain(ownKey);
    }
  });

  it("refuses a home that is one already, and completes one that was cut off", async () => {
    const home = join(newFolder(), "home");
    await init(home, "mainnet");
    const before = filesOf(home);
    await expect(init(home, "testnet")).rejects.toMatchObject({ code: "HOME_EXISTS" });
    expect(filesOf(home)).toEqual(before);
    const key = readFileSync(join(home, "config", "priv_validator_key.json"), "utf8");
    rmSync(join(home, "config", "genesis.json"));
    rmSync(join(home, "config", "node_key.json"));
    const { nodeId } = await init(home, "mainnet");
    expect(nodeId).toBe(idOf(join(home, "config", "node_key.json")));
    expect(readFileSync(join(home, "config", "priv_validator_key.json"), "utf8")).toBe(key);
    expect(filesOf(home)).toEqual(before);
  });

  it("ships genesis files that never change", async () => {
    // A changed file would be another chain: its nodes would refuse the stores of this one.
    const hashes = await Promise.all(
      (["mainnet", "testnet"] as const).map(async (network) => {
        const text = readNetworkGenesis(network);
        const genesis = parseGenesis(text);
        expect(new Set(genesis.validators.map(({ publicKey }) => publicKey)).size).toBe(4);
        const digest = createHash("sha256").update(text).digest("hex").slice(0, 16);
        return `${digest} ${createGenesisBlock(genesis).committed.block.hash}`;
      }),
    );
    expect(hashes).toEqual([
      "27bd43f002dbfb44 0x04ff937d66ce9d4ce7818f9e6574e489a8a6acf162d9dc2ee848e5b29a71f94a",
      "f66e8c26d88da0b7 0x25655f0053f0c8be751ce139ebdb95285125618fdd05ce14f4dcd27b2af7b08e",
    ]);
  });

  it("takes three names, and --network local only for a new home", async () => {
    expect(["mainnet", "testnet", "local"].map(parseNetworkFlag)).toHaveLength(3);
    expect(() => parseNetworkFlag("devnet")).toThrow("mainnet, testnet or local");
    const home = join(newFolder(), "home");
    const run = (...args: string[]): Promise<unknown> =>
      createProgram({
        version: "0",
        env: {},
        signal: new AbortController().signal,
        print: () => undefined,
        warn: () => undefined,
        setExitCode: () => undefined,
      }).parseAsync(["init", "--home", home, ...args], { from: "user" });
    // The kit's nodes have names of their own.
    for (const kits of [[], ["--network", "local"], ["--node-url", "http://127.0.0.1:1"]]) {
      const named = run("--moniker", "mine", ...kits);
      await expect(named).rejects.toMatchObject({
        code: "USAGE",
        message: expect.stringMatching(/^--moniker .*--network mainnet or testnet/),
      });
    }
    expect(existsSync(home)).toBe(false);
    await run("--network", "local");
    await expect(run("--network", "local")).rejects.toMatchObject({ code: "HOME_EXISTS" });
    await expect(run("--network", "mainnet")).rejects.toMatchObject({ code: "HOME_EXISTS" });
    await expect(run()).resolves.toBeDefined();
  });
});

describe("validators of a network", () => {
  it("have a hundred TOKEN of stake, owned by the key in their home, and the parameters asked for", async () => {
    const out = newFolder();
    const flags = {
      validators: "2",
      out,
      param: ["staking.unbonding_time=120s", "slashing.signed_blocks_window=20"],
    };
    const clock = { nowMs: () => 1_700_000_000_000, monotonicMs: () => 0 };
    await createTestnet({ ...parseTestnetFlags(flags), clock });
    const text = readFileSync(join(out, "node0", "config", "genesis.json"), "utf8");
    const genesis = parseGenesis(text);
    expect(genesis.modules?.staking.unbonding_time).toBe(120_000n);
    expect(genesis.modules?.slashing.signed_blocks_window).toBe(20n);
    for (const [index, { power, operator, moniker }] of genesis.validators.entries()) {
      const key = readFileSync(join(out, `node${index}`, "config", "operator.key"), "utf8").trim();
      const owner = new Wallet(key).address.toLowerCase();
      expect({ power, operator, moniker }).toEqual({
        power: 100,
        operator: owner,
        moniker: `node${index}`,
      });
    }
    const staking = "0x0000000000000000000000000000000000000800";
    const { changes } = createGenesisBlock(genesis);
    expect(changes.accounts.get(parseAddress(staking))?.balanceAtoken).toBe(200n * 10n ** 18n);
  });

  it("refuses parameters that there are not, and values out of range", () => {
    const flags = (param: string) => ({ validators: "1", out: "/tmp/never", param: [param] });
    expect(() => parseTestnetFlags(flags("staking.speed=1"))).toThrow("staking.unbonding_time");
    expect(() => parseTestnetFlags(flags("staking.max_validators=0"))).toThrow("1 to 500");
    expect(() => parseTestnetFlags(flags("staking.unbonding_time=soon"))).toThrow("no duration");
    expect(() => parseTestnetFlags(flags("anything"))).toThrow("<module>.<name>=<value>");
  });

  it("names every wrong parameter at once", () => {
    const param = ["gov.quorum", "staking.speed=1", "gov.voting_period=soon", "gov.threshold=2"];
    const flags = { validators: "0", out: "/tmp/never", param };
    const words = ["--validators must be", 'not "gov.quorum"', "no duration: soon"];
    for (const said of [...words, "gov.threshold is out of range", "staking.speed: take one of"]) {
      expect(() => parseTestnetFlags(flags)).toThrow(said);
    }
    // What can be taken is said once, however many are unknown.
    const unknown = { ...flags, param: ["a.b=1", "c.d=1"] };
    expect(() => parseTestnetFlags(unknown)).toThrow("no parameter a.b, c.d: take one of");
  });

  it("names a wrong port offset with the rest", async () => {
    const program = createProgram({
      version: "1",
      env: {},
      signal: new AbortController().signal,
      print: () => undefined,
      warn: () => undefined,
      setExitCode: () => undefined,
    });
    const typed = ["testnet", "--validators", "0", "--out", "/tmp/never", "--port-offset", "-5"];
    const run = program.parseAsync(typed, { from: "user" });
    await expect(run).rejects.toThrow(/--validators must be .*--port-offset must be /);
  });
});
