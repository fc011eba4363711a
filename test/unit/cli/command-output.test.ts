/** What a command's answer is worth: written or reported as lost, and of the home that was named. */
import {
  createWriteStream,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Writable } from "node:stream";
import { afterEach, describe, expect, it } from "@jest/globals";
import { parseAddress, toBech32 } from "../../../chain/address.js";
import { createAuditNode } from "../../../cli/audit/audit-node.js";
import { createTestnet } from "../../../cli/home/network/testnet.js";
import { createStandardOutput } from "../../../cli/standard-output.js";
import type { KitProbe } from "../../../cli/probe/kit-status.js";
import { createStatusLine } from "../../../cli/supervisor/status-line.js";
import { printJson, printLongJson, toJson } from "../../../cli/command-context.js";
import { createKitOutput, type StandardStream } from "../../../cli/supervisor/kit-output.js";
import { createProgram } from "../../../cli/program/program.js";
import { sentenceOf } from "../../../cli/errors.js";
import { runWaitTx } from "../../../cli/queries/run-wait.js";
import { createEvmClient } from "../../../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { toSqlError } from "../../../runtime/sql/sql-errors.js";
import { journals } from "../../helpers/chains/journal-chain.js";
import { RpcFault, startFakeNode } from "../../helpers/chains/fake-node.js";
import { runCommand } from "../../helpers/processes/command-line.js";

const closers: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "causeway-output-"));
  closers.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return (server.address() as AddressInfo).port;
}

describe("the standard output of a command", () => {
  it("is reported as lost where the disk is full, also by its last line", async () => {
    for (const lines of [1, 100]) {
      const output = createStandardOutput(createWriteStream("/dev/full"));
      for (let line = 0; line < lines; line += 1) output.print(`line ${line}`);
      await expect(output.end()).rejects.toMatchObject({
        code: "OUTPUT_LOST",
        message: expect.stringContaining("there is no space left on its disk"),
      });
    }
  });

  it("is whole where it ends without a fault", async () => {
    const file = join(newFolder(), "out");
    const output = createStandardOutput(createWriteStream(file));
    for (let line = 0; line < 1_000; line += 1) output.print(`line ${line}`);
    await output.end();
    expect(readFileSync(file, "utf8").split("\n")).toHaveLength(1_001);
  });

  it("takes the parts of a long line as its reader takes them, and none behind a stop", async () => {
    const slow = new PassThrough({ highWaterMark: 8 });
    const output = createStandardOutput(slow);
    const stopping = new AbortController();
    let made = 0;
    const parts = function* (count: number) {
      for (; made < count; made += 1) yield `part ${made} `.padEnd(10);
    };
    const printed = output.printParts(parts(1_000), stopping.signal);
    await new Promise((resolve) => setImmediate(resolve));
    expect(made).toBeLessThan(10);
    stopping.abort(new Error("stopped"));
    await expect(printed).rejects.toThrow("stopped");
    expect(made).toBeLessThan(10);

    made = 0;
    const file = join(newFolder(), "out");
    const whole = createStandardOutput(createWriteStream(file));
    await whole.printParts(parts(1_000), new AbortController().signal);
    await whole.end();
    const lines = readFileSync(file, "utf8").split("\n");
    expect(lines.map((line) => line.length)).toEqual([10_000, 0]);
  });

  it("ends with its reader in the middle of a long line, without a fault", async () => {
    const server = createServer((socket) => void socket.once("data", () => socket.destroy()));
    const socket = connect(await listen(server), "127.0.0.1");
    const output = createStandardOutput(socket);
    const endless = function* () {
      for (;;) yield "x".repeat(65_536);
    };
    await output.printParts(endless(), new AbortController().signal);
    await output.end();
  });

  it("may have lost its reader: that is no fault of the command", async () => {
    const server = createServer((socket) => void socket.resetAndDestroy());
    const socket = connect(await listen(server), "127.0.0.1");
    const output = createStandardOutput(socket);
    await new Promise<void>((resolve) => socket.once("close", () => resolve()));
    output.print("nobody reads this");
    await output.end();
  });
});

describe("a command's JSON document", () => {
  it("tells its version, is one line, and has no amount as a number", () => {
    const document = toJson({ atoken: 10n ** 30n, text: "two\nlines", none: null });
    expect(document).toBe(
      '{"schemaVersion":1,"atoken":"1000000000000000000000000000000","text":"two\\nlines","none":null}',
    );
    const lines: string[] = [];
    const { signal } = new AbortController();
    const context = { home: "", portOffset: 0, json: true, env: {}, signal };
    printJson({ ...context, print: (line) => lines.push(line) }, { heights: [1n] });
    expect(lines).toEqual(['{"schemaVersion":1,"heights":["1"]}']);
  });

  it("is the same where it is too long for one text, and written by its parts", async () => {
    const entries = Array.from(
      { length: 20_000 },
      (_, index) => [`"${index}"`, `${index}`] as const,
    );
    const lines: string[] = [];
    const parts: string[] = [];
    const { signal } = new AbortController();
    const print = (line: string) => lines.push(line);
    const context = { home: "", portOffset: 0, json: true, env: {}, signal, print };
    const printParts = async (all: Iterable<string>) => void parts.push(...all);
    for (const few of [[], entries]) {
      lines.splice(0);
      parts.splice(0);
      const long = { member: "accounts", entries: few };
      await printLongJson(context, { ok: true }, long);
      await printLongJson({ ...context, printParts }, { ok: true }, long);
      const expected = toJson({ ok: true, accounts: Object.fromEntries(few) });
      expect([lines, parts.join("")]).toEqual([[expected], expected]);
      for (const part of parts) expect(part.length).toBeLessThan(70_000);
    }
    expect(parts.length).toBeGreaterThan(3);
  });
});

describe("the output of the kit", () => {
  /** Both streams of a process, and what its reader has taken; it takes nothing before `read`. */
  const pausing = () => {
    const waiting: (() => void)[] = [];
    const taken: string[] = [];
    let isReading = false;
    const take = (chunk: unknown, done: () => void): void => {
      taken.push(String(chunk));
      done();
    };
    const stream = new Writable({
      write: (chunk, _encoding, done) => {
        if (isReading) take(chunk, done);
        else waiting.push(() => take(chunk, done));
      },
    });
    const read = (): void => {
      isReading = true;
      for (const go of waiting.splice(0)) go();
    };
    const standard = Object.assign(stream, { fd: 1 }) as unknown as StandardStream;
    return { kit: createKitOutput(standard, standard), taken, read };
  };

  it("is whole for a reader that goes on after a pause", async () => {
    const { kit, taken, read } = pausing();
    kit.print("one");
    kit.print("two");
    expect(kit.output.isBehind).toBe(true);
    const ended = kit.end(new AbortController().signal);
    read();
    await ended;
    expect([kit.output.isBehind, taken.join("")]).toEqual([false, "one\ntwo\n"]);
  });

  it("shows what its parts wrote, and no terminal obeys it", async () => {
    const { kit, taken, read } = pausing();
    read();
    kit.print("node: it ended:\n    \u001b[2Jgone\u0007");
    kit.printError("causeway: \u001b]0;title\u0007");
    const line = createStatusLine({ clock: systemClock } as unknown as KitProbe, kit.output);
    line.interrupt("worker: \u001b[1A\r it is up");
    expect(taken.join("")).toBe(
      "node: it ended:\n    \\u001b[2Jgone\\u0007\n" +
        "causeway: \\u001b]0;title\\u0007\n" +
        "worker: \\u001b[1A\\u000d it is up\n",
    );
  });

  it("keeps no process that has to stop, now or while it waits", async () => {
    const stopping = new AbortController();
    const { kit, taken } = pausing();
    kit.print("one");
    const ended = kit.end(stopping.signal);
    stopping.abort();
    await ended;
    await kit.end(stopping.signal);
    expect(taken).toEqual([]);
  });
});

describe("a command that is stopped", () => {
  const stopped = () => new DOMException("the command was stopped", "AbortError");

  it("does not read a file of millions of lines to its end, and calls it no fault", async () => {
    const file = join(newFolder(), "ledger.jsonl");
    const balance = { customerId: "a", asset: "TOKEN", available: "1", held: "0" };
    writeFileSync(file, `${JSON.stringify({ type: "balance", ...balance })}\n`);
    const { code, out, err } = await runCommand(
      newFolder(),
      ["verify", "ledger", file],
      AbortSignal.abort(stopped()),
    );
    expect({ code, out, err }).toEqual({
      code: 1,
      out: "",
      err: expect.stringMatching(/^(AbortError: )?the command was stopped\.$/),
    });
  });

  it("does not wait for a terminal on which nobody types", async () => {
    const stopping = new AbortController();
    const { signal } = stopping;
    const context = { home: newFolder(), portOffset: 0, json: false, env: {}, signal };
    const print = () => undefined;
    const waiting = runWaitTx({ ...context, print }, undefined, {}, new PassThrough());
    stopping.abort(stopped());
    await expect(waiting).rejects.toMatchObject({ name: "AbortError" });
  });
});

/** When a block was made that is this old now. */
const secondsAgo = (seconds: number): number => Math.floor(Date.now() / 1_000) - seconds;

/** When the chain of the answering kit began. */
const BEGAN_SECONDS = 1_790_000_000;

/** What `causeway status --json` of a home prints, and its exit code. */
async function statusOf(home: string, env: Readonly<Record<string, string>>) {
  const printed: string[] = [];
  let exitCode: number | undefined;
  const program = createProgram({
    version: "0",
    env,
    signal: new AbortController().signal,
    print: (line) => printed.push(line),
    warn: () => undefined,
    setExitCode: (code) => {
      exitCode = code;
    },
  });
  await program.parseAsync(["status", "--json", "--home", home], { from: "user" });
  return { ...JSON.parse(printed.join("\n")), exitCode };
}

/** Settings of a kit whose parts all answer, with a newest block of that age. */
async function answeringKit(
  blockAgeSeconds: number,
  intervalSeconds = 2,
): Promise<Record<string, string>> {
  const [block] = journals();
  // As somebody asks for the first time: what a command does before makes it no older.
  let newest: number | undefined;
  const node = await startFakeNode({
    eth_syncing: () => false,
    eth_getBlockByNumber: ([at]) => {
      const height = at === "latest" ? 7 : Number(at);
      newest ??= secondsAgo(blockAgeSeconds);
      const seconds = height === 0 ? BEGAN_SECONDS : newest - (7 - height) * intervalSeconds;
      return {
        number: `0x${height.toString(16)}`,
        hash: block?.["blockHash"],
        parentHash: block?.["parentHash"],
        timestamp: `0x${seconds.toString(16)}`,
      };
    },
  });
  closers.push(() => node.close());
  const anyPart = createHttpServer((_request, response) => void response.end('{"ready":true}'));
  const partAddress = `127.0.0.1:${await listen(anyPart)}`;
  return {
    CAUSEWAY_APP_JSON_RPC_ADDRESS: new URL(node.url).host,
    CAUSEWAY_SIDECAR_ONLINE_LISTEN: partAddress,
    CAUSEWAY_SIDECAR_OFFLINE_LISTEN: partAddress,
    CAUSEWAY_WATCHER_API_LISTEN: partAddress,
    CAUSEWAY_WORKER_API_LISTEN: partAddress,
  };
}

/** Address of a node's consensus RPC that has caught up, with a newest block of that age. */
async function answeringNode(blockAgeSeconds: number): Promise<string> {
  const result = () => ({
    node_info: { id: "ab".repeat(20), network: "local", moniker: "node0" },
    sync_info: {
      latest_block_height: "7",
      earliest_block_height: "1",
      latest_block_time: new Date(secondsAgo(blockAgeSeconds) * 1_000).toISOString(),
      catching_up: false,
    },
    validator_info: { address: "AB".repeat(20), voting_power: "100" },
    n_peers: "3",
  });
  const body = () => JSON.stringify({ result: result() });
  const server = createHttpServer((_request, response) => void response.end(body()));
  return `tcp://127.0.0.1:${await listen(server)}`;
}

describe("causeway status", () => {
  it("is not ready in a folder that is no home, whoever answers on the ports of one", async () => {
    const home = join(newFolder(), "mistyped");
    const { exitCode, ready, reason, parts } = await statusOf(home, await answeringKit(1));
    const answering = parts.filter((part: { ready: boolean }) => part.ready);
    expect(answering.map(({ part }: { part: string }) => part)).toEqual([
      "node",
      "sidecar-online",
      "sidecar-offline",
      "deposit-watcher",
      "withdrawal-worker",
    ]);
    expect({ exitCode, ready, reason }).toEqual({
      exitCode: 1,
      ready: false,
      reason: expect.stringContaining(`no home in ${home}`),
    });
  });

  it.each([
    [25, 0, ""],
    [95, 1, expect.stringMatching(/^its newest block is 9\d s old: the chain stands still/)],
    [-25, 0, ""],
    [-95, 1, expect.stringMatching(/^its newest block is 9\d s ahead of this machine's clock: /)],
  ])("of a kit whose newest block is %i s old ends with %i", async (age, code, reason) => {
    const home = newFolder();
    mkdirSync(join(home, "config"));
    const { exitCode, ready, parts } = await statusOf(home, await answeringKit(age));
    expect({ exitCode, ready, node: parts[0] }).toEqual({
      exitCode: code,
      ready: code === 0,
      node: { part: "node", url: expect.any(String), ready: code === 0, reason },
    });
  });

  it.each([
    [45, 0],
    [460, 1],
  ])("of a kit with a block each 30 s whose newest is %i s old ends with %i", async (age, code) => {
    const home = newFolder();
    mkdirSync(join(home, "config"));
    // By its genesis, and where it has none, on somebody's node, by the node's last blocks.
    const bySomebody = await statusOf(home, await answeringKit(age, 30));
    const genesis = { genesisTimeMs: BEGAN_SECONDS * 1_000, params: { blockIntervalMs: 30_000 } };
    writeFileSync(join(home, "config", "genesis.json"), JSON.stringify(genesis));
    writeFileSync(join(home, "config", "sidecar.toml"), "");
    const byGenesis = await statusOf(home, await answeringKit(age));
    expect([bySomebody.exitCode, byGenesis.exitCode]).toEqual([code, code]);
  });

  it("is not ready where the kit of another home answers, however well that one is", async () => {
    const home = newFolder();
    mkdirSync(join(home, "config"));
    writeFileSync(join(home, "config", "sidecar.toml"), "");
    const env = await answeringKit(1);
    const statusWhereBegan = async (seconds: number) => {
      const genesis = JSON.stringify({ genesisTimeMs: seconds * 1_000 + 250 });
      writeFileSync(join(home, "config", "genesis.json"), genesis);
      return statusOf(home, env);
    };
    const own = await statusWhereBegan(BEGAN_SECONDS);
    expect({ ready: own.ready, reason: own.reason, exitCode: own.exitCode }).toEqual({
      ready: true,
      reason: undefined,
      exitCode: 0,
    });
    const other = await statusWhereBegan(BEGAN_SECONDS + 60);
    expect(other.parts[0]).toMatchObject({ part: "node", ready: true });
    expect({ ready: other.ready, reason: other.reason, exitCode: other.exitCode }).toEqual({
      ready: false,
      reason:
        "the node's chain began 2026-09-21T14:13:20.000Z, this home's 2026-09-21T14:14:20.000Z; " +
        "another home's node answers: check --home and --port-offset",
      exitCode: 1,
    });
  });

  it("tells what the node refuses where it cannot say when its chain began", async () => {
    const home = newFolder();
    mkdirSync(join(home, "config"));
    writeFileSync(join(home, "config", "sidecar.toml"), "");
    writeFileSync(join(home, "config", "genesis.json"), JSON.stringify({ genesisTimeMs: 1 }));
    const node = await startFakeNode({
      eth_syncing: () => false,
      eth_getBlockByNumber: () => {
        throw new RpcFault(-32000, "state sync is going on");
      },
    });
    closers.push(() => node.close());
    const env = {
      ...(await answeringKit(1)),
      CAUSEWAY_APP_JSON_RPC_ADDRESS: new URL(node.url).host,
    };
    const { exitCode, reason, parts } = await statusOf(home, env);
    expect({ exitCode, reason, node: parts[0] }).toMatchObject({
      exitCode: 1,
      reason: undefined,
      node: { ready: false, reason: expect.stringContaining("state sync is going on") },
    });
  });

  it.each([
    [25, 0, undefined],
    [95, 1, expect.stringMatching(/^its newest block is 9\d s old: the chain stands still/)],
    [-25, 0, undefined],
    [-95, 1, expect.stringMatching(/^its newest block is 9\d s ahead of this machine's clock: /)],
  ])("of a node's home whose newest block is %i s old ends with %i", async (age, code, reason) => {
    const options = { out: newFolder(), validators: 1, fullNodes: 0, clock: systemClock };
    const { nodes } = await createTestnet({ ...options, portOffset: 15_000 });
    const env = { CAUSEWAY_CONFIG_RPC_LADDR: await answeringNode(age) };
    const status = await statusOf(nodes[0]?.home ?? "", env);
    expect(status).toMatchObject({ exitCode: code, ready: code === 0, height: 7 });
    expect(status.reason).toEqual(reason);
  });

  it("of a node's home judges the age by the interval of its chain", async () => {
    const options = { out: newFolder(), validators: 1, fullNodes: 0, clock: systemClock };
    const blockIntervalMs = 30_000;
    const { nodes } = await createTestnet({ ...options, portOffset: 15_000, blockIntervalMs });
    const codes = [45, 460].map(async (age) => {
      const env = { CAUSEWAY_CONFIG_RPC_LADDR: await answeringNode(age) };
      return (await statusOf(nodes[0]?.home ?? "", env)).exitCode;
    });
    expect(await Promise.all(codes)).toEqual([0, 1]);
  });

  it("of a node's home is not ready where the node of another home answers", async () => {
    const options = { out: newFolder(), validators: 1, fullNodes: 0, clock: systemClock };
    const { nodes } = await createTestnet({ ...options, portOffset: 15_000 });
    const env = { ...(await answeringKit(1)), CAUSEWAY_CONFIG_RPC_LADDR: await answeringNode(1) };
    const status = await statusOf(nodes[0]?.home ?? "", env);
    expect(status).toMatchObject({
      exitCode: 1,
      ready: false,
      reason: expect.stringContaining("another home's node answers"),
      height: 7,
    });
  });
});

it("lists deposits by the ids that decisions about them take", async () => {
  const home = newFolder();
  mkdirSync(join(home, "config"));
  writeFileSync(join(home, "config", "api.key"), "key\n", { mode: 0o600 });
  const hash = `0x${"ab".repeat(32)}`;
  const address = `0x${"0c".repeat(20)}`;
  const deposit = {
    id: "7-0-3",
    address,
    asset: "TOKEN",
    amountUnits: `${10n ** 18n}`,
    status: "suspense",
    blockNumber: 7,
    blockHash: hash,
    txHash: hash,
    confirmations: 2,
  };
  const page = JSON.stringify({ deposits: [deposit], next: null });
  const api = createHttpServer((_request, response) => void response.end(page));
  const env = { CAUSEWAY_WATCHER_API_LISTEN: `127.0.0.1:${await listen(api)}` };
  const list = async (typed: string) => {
    const printed: string[] = [];
    const program = createProgram({
      version: "0",
      env,
      signal: new AbortController().signal,
      print: (line) => printed.push(line),
      warn: () => undefined,
      setExitCode: () => undefined,
    });
    const words = ["deposits", "list", "--address", typed, "--home", home];
    await program.parseAsync(words, { from: "user" });
    return printed;
  };
  const line = `  7-0-3  block 7  ${hash}  1 TOKEN  suspense`;
  expect(await list(address)).toEqual([line]);
  // Customers name their address as their wallet shows it.
  expect(await list(toBech32(parseAddress(address)))).toEqual([line]);
  await expect(list("0x12")).rejects.toThrow(
    '--address must be an account, addr1... or 0x hex, not "0x12".',
  );
});

it("says on which side of an adjustment a customer gets more, and on which less", () => {
  const program = createProgram({
    version: "0",
    env: {},
    signal: new AbortController().signal,
    print: () => undefined,
    warn: () => undefined,
    setExitCode: () => undefined,
  });
  const child = (of: typeof program, name: string) =>
    of.commands.find((command) => command.name() === name) ?? program;
  const help = child(child(program, "ledger"), "adjust").helpInformation().replace(/\s+/g, " ");
  // Who reads "debit: the account that gets more" takes from the customer whom he means to give.
  expect(help).toMatch(/--debit <code> [^-]*liability or revenue that falls/);
  expect(help).toMatch(/--credit <code> liability \(such as a customer's\) or revenue that rises/);
});

describe("why a command failed", () => {
  it("is told with what to do where the node has no proofs of so old a block any more", async () => {
    const node = await startFakeNode({
      eth_getProof: () => {
        throw new RpcFault(4444, "pruned history unavailable");
      },
    });
    closers.push(() => node.close());
    const audited = createAuditNode(
      createJsonRpcClient({ url: node.url }),
      new AbortController().signal,
    );
    const query = { address: parseAddress(`0x${"0c".repeat(20)}`), slots: [] };
    await expect(audited.proofs([query], 7)).rejects.toMatchObject({
      code: "STATE_UNPROVEN",
      message: expect.stringMatching(
        /^The node refuses eth_getProof: pruned.*pruning = .*later block/,
      ),
    });
  });

  it("is told with what to do where no node answers", async () => {
    const node = createEvmClient(createJsonRpcClient({ url: "http://127.0.0.1:1" }));
    const fault: unknown = await node
      .blockNumber({ signal: new AbortController().signal })
      .catch((error: unknown) => error);
    expect(sentenceOf(fault)).toBe(
      "no connection to 127.0.0.1:1 (ECONNREFUSED). Start the kit, or the node that the settings name.",
    );
  });

  it("is told with what to do where the database is another home's", () => {
    // As PostgreSQL refuses the password of another kit's cluster (SQLSTATE 28P01).
    const refused = Object.assign(new Error('password authentication failed for user "causeway"'), {
      code: "28P01",
    });
    expect(sentenceOf(toSqlError(refused))).toBe(
      'DATABASE_FAULT: password authentication failed for user "causeway". Another home\'s kit may ' +
        "have this port: check --home and --port-offset, or what DATABASE_URL names.",
    );
    const other = Object.assign(new Error("division by zero"), { code: "22012" });
    expect(sentenceOf(toSqlError(other))).toBe("DATABASE_FAULT: division by zero");
  });
});
