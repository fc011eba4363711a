import { afterEach, describe, expect, it } from "@jest/globals";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseHash32 } from "../../../../chain/hex.js";
import { planChain } from "../../../../cli/home/network/attach.js";
import { initAttachedHome, initHome } from "../../../../cli/home/init.js";
import { KIT_CONFIG_FILES } from "../../../../cli/home/kit-config.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { createHomeFolders, homePaths } from "../../../../cli/home/home.js";
import { lockHome } from "../../../../cli/home/home-lock.js";
import { createKitLog, runKitProcess } from "../../../../cli/supervisor/kit-process.js";
import { until } from "../../../helpers/until.js";
import { freeOffset } from "../../../helpers/mesh/mesh-container.js";
import type { Environment } from "../../../../runtime/config/config.js";

const folders: string[] = [];
const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function newHome(): string {
  const folder = mkdtempSync(join(tmpdir(), "causeway-start-"));
  folders.push(folder);
  return join(folder, "home");
}

async function takePort(): Promise<number> {
  const server = createServer();
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  return (server.address() as AddressInfo).port;
}

type NodeAnswers = (method: string) => unknown;

const hash = (byte: number): string => `0x${byte.toString(16).padStart(2, "0").repeat(32)}`;

/** Block 0 of a chain, its hash told by one byte. */
const block = (byte: number) => ({
  number: "0x0",
  hash: hash(byte),
  parentHash: hash(0),
  timestamp: "0x1",
});

/** A node with every method of the kit, of a chain whose block 0 is `block(byte)`. */
function causewayNode(byte: number): NodeAnswers {
  return (method) =>
    ({
      eth_chainId: "0x1b1c",
      eth_getBlockByNumber: block(byte),
      causeway_getBlockJournal: null,
      causeway_getAccountJournal: { entries: [], next: null },
      causeway_getAccountHeights: { heights: [], next: null },
      causeway_getPoolHashes: { pending: [], queued: [], total: 0 },
      causeway_getTransactionStatus: { status: "unknown" },
    })[method];
}

/** A JSON-RPC server; what has no answer is not a method of it. */
async function serveNode(answers: NodeAnswers): Promise<string> {
  const server = createHttpServer((request, response) => {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString()));
    request.on("end", () => {
      const reply = ({ id, method }: { id: number; method: string }) => {
        const result = answers(method);
        const error = { code: -32_601, message: `the method ${method} does not exist` };
        return { jsonrpc: "2.0", id, ...(result === undefined ? { error } : { result }) };
      };
      const body: unknown = JSON.parse(text);
      const answer = Array.isArray(body) ? body.map(reply) : reply(Object(body));
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(answer));
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Runs `npm start` with the arguments, in this process; every case here ends before any child. */
async function start(
  argv: readonly string[],
  env: Environment = {},
  { signal, onLine }: { readonly signal?: AbortSignal; readonly onLine?: () => void } = {},
): Promise<{ readonly exitCode: number; readonly out: string; readonly err: string }> {
  const out: string[] = [];
  const err: string[] = [];
  const exitCode = await runKitProcess(argv, {
    env,
    print: (line) => {
      out.push(line);
      onLine?.();
    },
    printError: (line) => err.push(line),
    output: { isTty: false, columns: 80, isBehind: false, write: (text) => out.push(text) },
    signal: signal ?? new AbortController().signal,
  });
  return { exitCode, out: out.join("\n"), err: err.join("\n") };
}

describe("npm start, before anything is started", () => {
  it("says of a home of two lines what to do, and makes nothing there", async () => {
    const home = `${newHome()}\nof two lines`;
    const { exitCode, err } = await start(["--home", home, "--no-demo"]);
    expect([exitCode, existsSync(home)]).toEqual([1, false]);
    expect(err).toMatch(/home\\nof two lines", has a line break: choose another --home/);
  });

  it("prints every flag for --help, with exit code 0", async () => {
    const { exitCode, out } = await start(["--help"]);
    expect(exitCode).toBe(0);
    for (const flag of ["--home", "--port-offset", "--once", "--no-demo"]) {
      expect(out).toContain(flag);
    }
  });

  it("refuses a home that another kit holds and names it", async () => {
    const home = newHome();
    const paths = homePaths(home);
    await createHomeFolders(paths);
    const lock = await lockHome(paths.lock, home);
    const { exitCode, err } = await start(["--once", "--home", home]);
    expect(exitCode).toBe(1);
    expect(err).toContain(`already running on the home ${home} (process ${process.pid})`);
    await lock.release();
  });

  it("ends, and says why, where another kit takes the home over, and leaves the lock to that one", async () => {
    const home = newHome();
    const { lock } = homePaths(home);
    const id = "00000000-0000-4000-8000-000000000006";
    // It waits for a database that nobody serves.
    const env = { DATABASE_URL: "postgres://127.0.0.1:9/db" };
    const started = start(["--home", home, "--port-offset", String(await freeOffset(3))], env);
    await until(() => existsSync(lock), { timeoutMs: 10_000 });
    const record = JSON.parse(readFileSync(lock, "utf8"));
    writeFileSync(lock, JSON.stringify({ ...record, id }));
    expect(await started).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining(`This kit has lost the home ${home}: another one took it over`),
    });
    expect(JSON.parse(readFileSync(lock, "utf8"))).toEqual({ ...record, id });
  });

  it("names every taken port with its part, starts nothing and writes no key", async () => {
    const home = newHome();
    const [first, second] = [await takePort(), await takePort()];
    const env = {
      CAUSEWAY_APP_JSON_RPC_ADDRESS: `127.0.0.1:${first}`,
      CAUSEWAY_WORKER_API_LISTEN: `127.0.0.1:${second}`,
    };
    const argv = ["--once", "--home", home, "--port-offset", "31000"];
    const { exitCode, err } = await start(argv, env);
    expect(exitCode).toBe(1);
    expect(err).toContain(`port ${first} (wanted by the node's JSON-RPC) is taken`);
    expect(err).toContain(`port ${second} (wanted by the withdrawal API) is taken`);
    expect(readdirSync(join(home, "config"))).toEqual([]);
    expect(readdirSync(home)).not.toContain("kit.lock");
  });

  it("says which part has a port that browsers do not open", async () => {
    const offset = String(await freeOffset(3));
    const argv = ["--home", newHome(), "--port-offset", offset, "--node-url", "http://127.0.0.1:9"];
    const { out } = await start(argv, { CAUSEWAY_WORKER_API_LISTEN: "127.0.0.1:6697" });
    expect(out).toMatch(/^Browsers and fetch\(\) refuse port 6697 \(the withdrawal API\): /m);
    expect((await start(argv)).out).not.toContain("Browsers");
  });

  it("names variables that look like its own and are none, and starts all the same", async () => {
    const offset = String(await freeOffset(3));
    const argv = ["--home", newHome(), "--port-offset", offset, "--node-url", "http://127.0.0.1:9"];
    const { out } = await start(argv, {
      CAUSEWAY_HOEM: "/elsewhere",
      CAUSEWAY_WORKR_API_LISTEN: "127.0.0.1:1",
      CAUSEWAY_LOG_LEVEL: "info",
      CAUSEWAY_TEST_SEED: "1",
      CAUSEWAY_WATCHER_CHAIN_NETWORK: "testnet",
    });
    expect(out.match(/^The variable .*$/gm)).toEqual([
      "The variable CAUSEWAY_HOEM is no setting of Causeway and has no effect: look at its spelling.",
      "The variable CAUSEWAY_WORKR_API_LISTEN is no setting of Causeway and has no effect: look at its spelling.",
    ]);
    expect(out).not.toContain("elsewhere");
  });

  it("refuses flags that npm kept for itself, and says where they belong", async () => {
    const home = newHome();
    const { exitCode, err } = await start(["--home", home], {
      npm_config_once: "true",
      npm_config_demo: "",
      npm_config_port_offset: "300",
      npm_config_yes: "true",
      npm_config_noproxy: "",
    });
    expect(exitCode).toBe(1);
    expect(err.split("\n").slice(1)).toEqual([
      "  flag: --port-offset = kept by npm (allowed: behind two dashes: npm start -- --port-offset)",
      "  flag: --once = kept by npm (allowed: behind two dashes: npm start -- --once)",
      "  flag: --no-demo = kept by npm (allowed: behind two dashes: npm start -- --no-demo)",
    ]);
    expect(existsSync(home)).toBe(false);
  });

  it("reports all wrong settings at once", async () => {
    const home = newHome();
    const { exitCode, err } = await start(["--once", "--home", home, "--port-offset", "many"], {
      CAUSEWAY_APP_PRUNING: "sometimes",
      CAUSEWAY_SIDECAR_NODE_URL: "not a url",
      CAUSEWAY_LOG_LEVEL: "verbose",
      DATABASE_URL: "mysql://user:hush@db/x",
      REDIS_URL: "localhost",
    });
    expect(exitCode).toBe(1);
    expect(err).toContain('--port-offset = "many"');
    expect(err).toContain("CAUSEWAY_APP_PRUNING");
    expect(err).toContain("CAUSEWAY_SIDECAR_NODE_URL");
    expect(err).toContain('CAUSEWAY_LOG_LEVEL = "verbose" (allowed: one of "debug", "info"');
    expect(err).toContain("DATABASE_URL = *** (allowed: a URL starting with postgres:// or");
    expect(err).toContain("REDIS_URL = *** (allowed: a URL starting with redis:// or");
    expect(err).not.toContain("hush");
    expect(existsSync(home)).toBe(false);
  });

  it("refuses an offset that puts the last validator's beyond what a node takes", async () => {
    const home = newHome();
    const stopping = new AbortController();
    const stop = { signal: stopping.signal, onLine: () => stopping.abort(new Error("stopped")) };
    const argv = ["--home", home, "--validators", "3", "--port-offset"];
    expect(await start([...argv, "37801"], {}, stop)).toMatchObject({
      exitCode: 1,
      err:
        'causeway: settings are wrong:\n  flag: --port-offset = "37801" (allowed: a whole number ' +
        "from 0 to 37800 with 3 validators)",
    });
    expect(existsSync(home)).toBe(false);
    expect(await start([...argv, "37800"], {}, stop)).toMatchObject({ exitCode: 0, err: "" });
  });

  it("has no main job and no new chain on a chain that exists", async () => {
    const url = await serveNode(() => undefined);
    const argv = ["--once", "--node-url", url, "--validators", "2", "--block-interval-ms", "500"];
    const { exitCode, err } = await start(["--home", newHome(), ...argv]);
    expect(exitCode).toBe(1);
    expect(err).toContain("--once");
    expect(err).toContain("the main job needs the faucet of a chain that was made here");
    expect(err).toContain(
      '--validators = "2" (allowed: no such flag: the chain of this home exists',
    );
    expect(err).toContain('--block-interval-ms = "500"');
  });

  it("refuses a node that it cannot work on, in one sentence, and leaves no key", async () => {
    const cases: readonly (readonly [NodeAnswers, RegExp])[] = [
      [
        (method) => ({ eth_chainId: "0x1", eth_getBlockByNumber: block(7) })[method],
        /^causeway: The node at http:\/\/127.0.0.1:\d+ is on chain 1; known are 6941/,
      ],
      [
        (method) => ({ eth_chainId: "0x1b1c", eth_getBlockByNumber: block(7) })[method],
        /^causeway: The node at .* has no causeway_getBlockJournal, .*causeway_getPoolHashes, /,
      ],
    ];
    for (const [answers, expected] of cases) {
      const home = newHome();
      const argv = ["--home", home, "--port-offset", String(await freeOffset(3)), "--node-url"];
      const { exitCode, err } = await start([...argv, await serveNode(answers)]);
      expect({ exitCode, err }).toEqual({ exitCode: 1, err: expect.stringMatching(expected) });
      expect(readdirSync(join(home, "config"))).toEqual([]);
    }
    const offset = String(await freeOffset(3));
    const argv = ["--home", newHome(), "--port-offset", offset, "--node-url", "http://127.0.0.1:9"];
    const { err } = await start(argv);
    expect(err).toMatch(/^causeway: No node answers at http:\/\/127.0.0.1:9: /);
  });

  it("refuses a node of another chain than the home's, and says what to do", async () => {
    const home = newHome();
    const paths = homePaths(home);
    const url = await serveNode(causewayNode(7));
    const plan = planChain({ nodeUrl: url }, paths, {});
    if (plan.kind !== "remote") throw new Error("no plan");
    const genesisHash = parseHash32(hash(8));
    const node = { network: "testnet" as const, genesisHash };
    const scrypt = { n: 1_024, r: 8, p: 1 };
    await initAttachedHome({ paths, portOffset: await freeOffset(4), plan, node, scrypt });
    const { exitCode, err } = await start(["--home", home]);
    expect(exitCode).toBe(1);
    expect(err).toMatch(/serves another chain \(genesis 0x0707.*0x0808.*use another --home/);
  });

  it("looks at the files of all processes before any is started", async () => {
    const home = newHome();
    const paths = homePaths(home);
    await initHome({
      paths,
      portOffset: 31_000,
      network: "testnet",
      configFiles: KIT_CONFIG_FILES,
      clock: systemClock,
      scrypt: { n: 1_024, r: 8, p: 1 },
    });
    const list = [{ contractAddress: "0x12", symbol: "a b", decimals: 300 }];
    const secret = "f00d".repeat(16);
    const broken: Readonly<Record<string, string>> = {
      [paths.tokens]: JSON.stringify(list),
      [paths.hotWallet]: `{"version":3,"note":"${secret}"}`,
      [paths.hotWalletPassphrase]: " ",
      [paths.depositXpub]: secret,
      [paths.genesis]: "{}",
      [paths.nodeKey]: secret,
      [paths.validatorKey]: "{}",
      [paths.faucetKey]: secret.slice(1),
      [join(paths.config, "worker.toml")]: '[gas]\nmargin-percent = "lots"\n',
    };
    for (const [file, text] of Object.entries(broken)) writeFileSync(file, text);
    const { exitCode, err } = await start(["--home", home], { CAUSEWAY_APP_PRUNING: "sometimes" });
    expect(exitCode).toBe(1);
    const expected = [...Object.keys(broken), "CAUSEWAY_APP_PRUNING", "[0].symbol", "[0].decimals"];
    expect(expected.filter((name) => !err.includes(name))).toEqual([]);
    expect(err).not.toContain(secret.slice(1));
  });

  it("refuses another time between blocks than the home's chain has", async () => {
    const home = newHome();
    await initHome({
      paths: homePaths(home),
      portOffset: 31_000,
      network: "testnet",
      blockIntervalMs: 400,
      configFiles: KIT_CONFIG_FILES,
      clock: systemClock,
      scrypt: { n: 1_024, r: 8, p: 1 },
    });
    const env = { DATABASE_URL: "postgres://127.0.0.1:9/db" };
    const stopping = new AbortController();
    const stop = { signal: stopping.signal, onLine: () => stopping.abort(new Error("stopped")) };
    const offset = String(await freeOffset(3));
    const argv = ["--home", home, "--port-offset", offset, "--block-interval-ms"];
    const { exitCode, err } = await start([...argv, "900"], env, stop);
    expect({ exitCode, err }).toEqual({
      exitCode: 1,
      err:
        'causeway: settings are wrong:\n  flag: --block-interval-ms = "900" (allowed: 400, as this ' +
        "home's chain was made, or no such flag; a chain with 900 needs another --home)",
    });
    expect(await start([...argv, "400"], env, stop)).toMatchObject({ exitCode: 0, err: "" });
  });

  it("has not done the job of --once where it is stopped before anything is started", async () => {
    const offset = String(await freeOffset(3));
    const home = newHome();
    const env = { DATABASE_URL: "postgres://127.0.0.1:9/db" };
    for (const [flags, ended] of [
      [["--once"], { exitCode: 1, err: "causeway: Stopped before the job was done." }],
      [[], { exitCode: 0, err: "" }],
    ] as const) {
      const stopping = new AbortController();
      const stop = { signal: stopping.signal, onLine: () => stopping.abort(new Error("stopped")) };
      const argv = ["--home", home, "--port-offset", offset, ...flags];
      const { exitCode, err } = await start(argv, env, stop);
      expect({ exitCode, err }).toEqual(ended);
    }
  });

  it("names folder and cause of a home that cannot be made", async () => {
    const { exitCode, err } = await start(["--once", "--home", "/proc/causeway"]);
    expect(exitCode).toBe(1);
    expect(err).toMatch(/^causeway: Cannot create the folder \/proc\/causeway: .+\.$/);
  });

  it("refuses arguments that it does not know", async () => {
    const { exitCode, err } = await start(["--tiwce"]);
    expect(exitCode).toBe(1);
    expect(err).toContain("--tiwce");
  });
});

it.each([
  [{}, ["info", "warn"]],
  [{ CAUSEWAY_LOG_LEVEL: "debug" }, ["debug", "info", "warn"]],
  [{ CAUSEWAY_LOG_LEVEL: "warn" }, ["warn"]],
  [{ CAUSEWAY_LOG_LEVEL: "silent" }, []],
])("writes into kit.log what %j asks for", async (env: Environment, levels) => {
  const paths = homePaths(newHome());
  await createHomeFolders(paths);
  const log = createKitLog(paths, env);
  for (const level of ["debug", "info", "warn"] as const) log[level](level);
  const file = join(paths.logs, "kit.log");
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : [];
  expect(lines.map((line) => JSON.parse(line).level)).toEqual(levels);
});
