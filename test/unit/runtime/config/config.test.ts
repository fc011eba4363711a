import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { strangeVariables } from "../../../../cli/home/strange-variables.js";
import {
  ConfigError,
  defineConfigFile,
  environmentName,
  field,
  loadConfig,
  readPortOffset,
  renderToml,
} from "../../../../runtime/config/config.js";

const file = defineConfigFile(
  "worker",
  {
    "": { moniker: field.string({ default: "node", help: "Name of this node." }) },
    api: {
      listen: field.listenAddress({ default: "127.0.0.1:8083", help: "Where the API listens." }),
      "node-url": field.url({ default: "http://127.0.0.1:8545", help: "The node." }),
      "webhook-url": field.url({ default: "", help: "Receiver of events." }),
    },
    gas: {
      "margin-percent": field.integer({
        default: 20,
        min: 0,
        max: 500,
        unit: "percent",
        help: "Added to the estimate.",
      }),
      "price-cap-atoken": field.bigint({
        default: 10n ** 30n,
        min: 1n,
        max: 2n ** 256n - 1n,
        unit: "atoken",
        help: "Highest price of a unit of gas.",
      }),
      token: field.string({
        default: "none",
        help: "A secret.",
        secret: true,
        pattern: /^[a-z]+$/,
      }),
    },
    p2p: {
      "persistent-peers": field.list({ default: [], style: "comma", help: "Peers." }),
      pex: field.boolean({ default: true, help: "Exchange peers." }),
      mode: field.choice({ default: "full", values: ["full", "seed"], help: "Mode." }),
      laddr: field.listenAddress({ default: "127.0.0.1:26656", scheme: "tcp://", help: "P2P." }),
    },
  },
  { inertKeys: ["p2p.upnp"] },
);

/** What a person is told of wrong settings. */
function faultsOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  throw new Error("nothing was wrong");
}

describe("settings", () => {
  let home: string;

  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "causeway-config-"));
    mkdirSync(join(home, "config"));
  });

  afterEach(() => {
    rmSync(home, { recursive: true });
  });

  const write = (text: string) => writeFileSync(join(home, "config", "worker.toml"), text);
  const load = (
    options: {
      env?: Record<string, string>;
      flags?: Record<string, string>;
      portOffset?: number;
      warnings?: string[];
    } = {},
  ) =>
    loadConfig(
      {
        home,
        env: options.env ?? {},
        flags: options.flags,
        portOffset: options.portOffset,
        onWarning: (text) => options.warnings?.push(text),
      },
      file,
    );

  it("gives typed, frozen defaults without a file", () => {
    const config = load();
    expect(config.api.listen).toEqual({ host: "127.0.0.1", port: 8083 });
    expect(config.gas["price-cap-atoken"]).toBe(10n ** 30n);
    expect(config.p2p.mode).toBe("full");
    expect(Object.isFrozen(config) && Object.isFrozen(config.gas)).toBe(true);
  });

  it("reads back exactly what it renders, with every key, help and variable in the file", () => {
    const defaults = load();
    write(renderToml(file));
    expect(load()).toEqual(defaults);
    const text = renderToml(file, { gas: { "margin-percent": 35 }, p2p: { pex: false } });
    write(text);
    expect(load()).toEqual({
      ...defaults,
      gas: { ...defaults.gas, "margin-percent": 35 },
      p2p: { ...defaults.p2p, pex: false },
    });
    expect(text).toContain('laddr = "tcp://127.0.0.1:26656"');
    expect(text).toContain("# Added to the estimate.");
    expect(text).toContain("CAUSEWAY_WORKER_GAS_MARGIN_PERCENT");
    expect(text).toContain("margin-percent = 35");
    expect(text).toContain("pex = false");
    expect(text.indexOf("moniker =")).toBeLessThan(text.indexOf("[api]"));
    expect(text.split("\n").every((line) => line.length <= 100)).toBe(true);
  });

  it("takes a percent sign of a password in a URL as it has to be written there", () => {
    const withPassword = (password: string) => ({
      env: { CAUSEWAY_WORKER_API_NODE_URL: `http://ann:${password}@node.example:8545` },
    });
    expect(load(withPassword("50%25off")).api["node-url"]).toContain("50%25off");
    const faults = faultsOf(() => load(withPassword("50%off")));
    expect(faults).toContain("CAUSEWAY_WORKER_API_NODE_URL");
    expect(faults).not.toContain("50%off");
  });

  it("refuses a fragment in a WebSocket's URL, for which its client would throw", () => {
    const sockets = defineConfigFile("worker", {
      api: { socket: field.url({ default: "ws://h:1", schemes: ["ws", "wss"], help: "Heads." }) },
    });
    const loadUrl = (socket: string) =>
      loadConfig({ home, env: {}, flags: { "api.socket": socket } }, sockets).api.socket;
    expect(loadUrl("wss://h:1/path?key=a%23b")).toBe("wss://h:1/path?key=a%23b");
    expect(faultsOf(() => loadUrl("ws://h:1/#heads"))).toContain("ws:// or wss://, without #");
    expect(load({ flags: { "api.node-url": "http://h:1/#a" } }).api["node-url"]).toContain("#a");
  });

  it("shows of a wrong URL neither user and password nor what follows the host", () => {
    const wrong = {
      CAUSEWAY_WORKER_API_NODE_URL: "htp://ann:s3cret@node.example:8545/v2/s3cret?key=s3cret",
      CAUSEWAY_WORKER_API_WEBHOOK_URL: "//s3cret@hooks.example",
    };
    write(
      `[tx_index]\npsql-conn = "postgres://u:s3cr/e@t@db/x"\ndsn = "host=db password=s3cret"\n` +
        `peers = ["tcp://0011@peer.example:26656", "http://peer.example/s3cret"]\n`,
    );
    const faults = faultsOf(() => load({ env: wrong }));
    expect(faults).not.toMatch(/s3cr/);
    expect(faults).toContain('"htp://***@node.example:8545/***"');
    expect(faults).toContain('"//***@hooks.example"');
    expect(faults).toContain("tcp://0011@peer.example:26656,http://peer.example/***");
  });

  it("lets the flag win over the variable and the variable over the file", () => {
    write("[gas]\nmargin-percent = 1\n");
    const env = { CAUSEWAY_WORKER_GAS_MARGIN_PERCENT: "2" };
    expect(load().gas["margin-percent"]).toBe(1);
    expect(load({ env }).gas["margin-percent"]).toBe(2);
    expect(load({ env, flags: { "gas.margin-percent": "3" } }).gas["margin-percent"]).toBe(3);
    expect(environmentName("worker", "gas.margin-percent")).toBe(
      "CAUSEWAY_WORKER_GAS_MARGIN_PERCENT",
    );
  });

  it("reports all faults at once, each with place, key, value and what is allowed", () => {
    write(
      'moniker = 5\nwrong = 1\n[gas]\nmargin-percent = 900\nprice-cap-atoken = "1.5"\n' +
        'token = "S3CRET!"\n[p2p]\nmode = "fast"\npex = "maybe"\n',
    );
    const env = { CAUSEWAY_WORKER_API_LISTEN: "8083", CAUSEWAY_WORKER_API_LISTNE: "x" };
    let error: unknown;
    try {
      load({ env, flags: { "api.node-url": "ftp://x" } });
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(ConfigError);
    const faults = error instanceof ConfigError ? error.faults : [];
    expect(faults.map((fault) => fault.key).toSorted()).toEqual([
      "--api.node-url",
      "CAUSEWAY_WORKER_API_LISTEN",
      "CAUSEWAY_WORKER_API_LISTNE",
      "gas.margin-percent",
      "gas.price-cap-atoken",
      "gas.token",
      "moniker",
      "p2p.mode",
      "p2p.pex",
      "wrong",
    ]);
    expect(faults.find((fault) => fault.key === "gas.margin-percent")).toEqual({
      file: join(home, "config", "worker.toml"),
      key: "gas.margin-percent",
      value: "900",
      allowed: "a whole number from 0 to 500",
    });
    expect(String(error)).toContain('one of "full", "seed"');
    expect(String(error)).not.toContain("S3CRET");
  });

  describe("variables that Kubernetes puts into every pod for a Service causeway-worker", () => {
    const ofService = {
      CAUSEWAY_WORKER_SERVICE_HOST: "10.0.0.11",
      CAUSEWAY_WORKER_SERVICE_PORT: "8083",
      CAUSEWAY_WORKER_SERVICE_PORT_HTTP: "8083",
      CAUSEWAY_WORKER_PORT: "tcp://10.0.0.11:8083",
      CAUSEWAY_WORKER_PORT_8083_TCP: "tcp://10.0.0.11:8083",
      CAUSEWAY_WORKER_PORT_8083_TCP_PROTO: "tcp",
      CAUSEWAY_WORKER_PORT_8083_TCP_PORT: "8083",
      CAUSEWAY_WORKER_PORT_8083_TCP_ADDR: "10.0.0.11",
    };

    it("are no settings, and nobody's mistake", () => {
      expect(load({ env: ofService }).api.listen.port).toBe(8083);
      const others = Object.entries(ofService).map(([name, value]) => [
        name.replace("_WORKER", ""),
        value,
      ]);
      expect(strangeVariables({ ...ofService, ...Object.fromEntries(others) })).toEqual([]);
    });

    it("are still refused where no such Service is told, or they are not of its names", () => {
      const { CAUSEWAY_WORKER_SERVICE_HOST: _host, ...rest } = ofService;
      expect(() => load({ env: rest })).toThrow(/CAUSEWAY_WORKER_PORT = /);
      expect(() => load({ env: { CAUSEWAY_WORKER_PORT: "8083" } })).toThrow(ConfigError);
      for (const name of ["CAUSEWAY_WORKER_PORTS", "CAUSEWAY_WORKER_SERVICE_HOSTS"]) {
        expect(() => load({ env: { ...ofService, [name]: "x" } })).toThrow(`${name} = `);
      }
    });
  });

  it("reports a file that is no TOML with its line", () => {
    write("[gas]\nmargin-percent = = 2\n");
    expect(() => load()).toThrow(/worker\.toml.*line 2/);
  });

  it("warns of known keys without effect and takes both forms of a list", () => {
    write('[p2p]\nupnp = false\npersistent-peers = "a@1, b@2"\n');
    const warnings: string[] = [];
    expect(load({ warnings }).p2p["persistent-peers"]).toEqual(["a@1", "b@2"]);
    expect(warnings).toEqual([expect.stringContaining("p2p.upnp")]);
    write('[p2p]\npersistent-peers = ["a@1"]\n');
    expect(load().p2p["persistent-peers"]).toEqual(["a@1"]);
  });

  it("moves ports that were never edited with the offset, and no others", () => {
    write(renderToml(file, {}, { portOffset: 100 }));
    expect(readPortOffset(home, ["app", "worker"])).toBe(100);
    expect(load().api.listen.port).toBe(8183);
    expect(load().api["node-url"]).toBe("http://127.0.0.1:8645");
    expect(load({ portOffset: 7 }).api.listen.port).toBe(8090);
    expect(load({ portOffset: 0 }).p2p.laddr.port).toBe(26656);
    write('port-offset = 100\n[api]\nlisten = "127.0.0.1:9999"\nnode-url = "http://node:8545"\n');
    expect(load({ portOffset: 7 }).api.listen.port).toBe(9999);
    expect(load({ portOffset: 7 }).api["node-url"]).toBe("http://node:8545");
    expect(load({ portOffset: 7 }).p2p.laddr.port).toBe(26663);
  });

  it.each(["[::1]:80", "tcp://0.0.0.0:26657", ":8080", "localhost:1"])(
    "takes the listen address %s",
    (text) => {
      expect(load({ flags: { "api.listen": text } }).api.listen.port).toBeGreaterThan(0);
    },
  );

  it.each(["127.0.0.1", "host:65536", "host:-1", "http://x:1", "a b:1", ""])(
    "refuses the listen address %j",
    (text) => {
      expect(() => load({ flags: { "api.listen": text } })).toThrow(ConfigError);
    },
  );
});
