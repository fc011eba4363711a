/**
 * Files that operators bring along: CometBFT 0.38.17's own config.toml, written by its program, and
 * an app.toml with all keys of SDK 0.50 and evmd. Comments are left out, values are the defaults.
 */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  APP_FILE,
  CONFIG_FILE,
  consensusTimeouts,
  loadNodeSettings,
} from "../../../../node/settings/config.js";
import {
  type ConfigError,
  type ConfigFile,
  loadConfig,
} from "../../../../runtime/config/config.js";

const FIXTURES = join(import.meta.dirname, "..", "..", "..", "fixtures", "settings");
const COMET = join(FIXTURES, "cometbft-0.38.17-config.toml");
const SDK = join(FIXTURES, "sdk-0.50-app.toml");

describe("an operator's settings file", () => {
  let home: string;
  let warnings: string[];

  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "causeway-operator-"));
    mkdirSync(join(home, "config"));
    warnings = [];
  });
  afterEach(() => {
    rmSync(home, { recursive: true });
  });

  const target = (file: ConfigFile) => join(home, "config", `${file.name}.toml`);
  const load = <F extends ConfigFile>(file: F) =>
    loadConfig({ home, env: {}, onWarning: (text) => warnings.push(text) }, file);
  const faultsOf = (file: ConfigFile): readonly string[] => {
    try {
      load(file);
    } catch (error) {
      return (error as ConfigError).faults.map(({ key, value }) => `${key} = ${value}`);
    }
    return [];
  };

  it("of CometBFT is taken as it is, with one warning for each key that does nothing", () => {
    copyFileSync(COMET, target(CONFIG_FILE));
    const config = load(CONFIG_FILE);
    expect(consensusTimeouts(config, 2_000).proposeMs).toBe(3_000);
    expect(config.p2p.laddr).toEqual({ host: "0.0.0.0", port: 26_656 });
    expect(config.instrumentation.prometheus_listen_addr.port).toBe(26_660);
    expect(warnings).toHaveLength(new Set(warnings).size);
    for (const key of ["proxy_app", "p2p.send_rate", "mempool.size", "consensus.timeout_commit"]) {
      expect(warnings).toContain(`${target(CONFIG_FILE)}: ${key} has no effect here`);
    }
  });

  it("of the SDK is taken as it is, with one warning for each key that does nothing", () => {
    copyFileSync(SDK, target(APP_FILE));
    expect(load(APP_FILE)["json-rpc"]).toMatchObject({
      "gas-cap": 25_000_000n,
      api: ["eth", "net", "web3"],
      "ws-origins": ["127.0.0.1", "localhost"],
    });
    expect(warnings).toHaveLength(new Set(warnings).size);
    for (const key of ["telemetry.enabled", "evm.mempool.price-bump", "json-rpc.evm-timeout"]) {
      expect(warnings).toContain(`${target(APP_FILE)}: ${key} has no effect here`);
    }
  });

  it("is refused where it asks for what this node does not do, and in words nobody knows", () => {
    const text = readFileSync(COMET, "utf8")
      .replace('tls_cert_file = ""', 'tls_cert_file = "cert.pem"')
      .replace('priv_validator_laddr = ""', 'priv_validator_laddr = "tcp://10.0.0.1:26659"')
      .replace('indexer = "kv"', 'indexer = "psql"')
      .replace("max_num_inbound_peers = 40", "max_num_inbound_pears = 40");
    writeFileSync(target(CONFIG_FILE), text);
    expect(faultsOf(CONFIG_FILE)).toEqual([
      'priv_validator_laddr = "tcp://10.0.0.1:26659"',
      'rpc.tls_cert_file = "cert.pem"',
      "p2p.max_num_inbound_pears = 40",
      'tx_index.indexer = "psql"',
    ]);
  });

  it("names methods that are served, or that only other nodes have; any other name is refused", () => {
    const loadWith = (names: string) => {
      writeFileSync(target(APP_FILE), `[json-rpc]\napi = "${names}"\n`);
      return loadNodeSettings({ home, env: {}, onWarning: (text) => warnings.push(text) });
    };
    expect(loadWith("eth,txpool,personal,net,miner").app["json-rpc"].api).toContain("txpool");
    expect(warnings).toEqual([
      `${target(APP_FILE)}: miner of json-rpc.api has no effect here`,
      `${target(APP_FILE)}: personal of json-rpc.api has no effect here`,
    ]);
    for (const names of ["eht,net", "eth,web-3", "eth,tracer", "ETH"]) {
      const fault = { file: target(APP_FILE), key: "json-rpc.api", value: `"${names}"` };
      expect(() => loadWith(names)).toThrow(
        expect.objectContaining({ faults: [expect.objectContaining(fault)] }),
      );
    }
  });

  it("is judged together with the other one: all faults at once", () => {
    writeFileSync(target(CONFIG_FILE), '[p2p]\npex = "perhaps"\n');
    writeFileSync(target(APP_FILE), "[json-rpc]\ngas-cap = -1\n");
    const env = { CAUSEWAY_APP_PRUNING: "some" };
    let faults: readonly string[] = [];
    try {
      loadNodeSettings({ home, env });
    } catch (error) {
      faults = (error as ConfigError).faults.map(({ key }) => key);
    }
    expect(faults).toEqual(["p2p.pex", "CAUSEWAY_APP_PRUNING", "json-rpc.gas-cap"]);
  });

  it("never gives up a key that this node honours", () => {
    for (const file of [CONFIG_FILE, APP_FILE]) {
      const own = Object.entries(file.sections).flatMap(([section, fields]) =>
        Object.keys(fields).map((key) => (section === "" ? key : `${section}.${key}`)),
      );
      const foreign = [...file.inertKeys, ...Object.keys(file.neutralValues)];
      expect(foreign.filter((key) => own.includes(key))).toEqual([]);
      expect(foreign).toHaveLength(new Set(foreign).size);
    }
  });
});
