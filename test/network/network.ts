/**
 * A network of real processes of this build: validators and full nodes, each `causeway start` on a
 * home of its own. Whatever happens to the test, its processes end with it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import { connect } from "node:net";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { homePaths } from "../../cli/home/home.js";
import { NODE_ENVIRONMENT, NODE_FLAGS } from "../../cli/home/network/kit-nodes.js";
import { type NodePorts, nodePorts } from "../../cli/home/node-home.js";
import { PORT_STEP } from "../../cli/home/ports.js";
import { createTestnet, type TestnetNode } from "../../cli/home/network/testnet.js";
import { parseModuleParams } from "../../node/settings/module-params.js";
import { systemClock } from "../../runtime/process/clock.js";
import { compiledFolder } from "../helpers/services/services.js";
import { until } from "../helpers/until.js";
import { type CometStatus, comet } from "./calls.js";

/** Time for a node to come up, or to take its part again, on a busy machine. */
const START_TIMEOUT_MS = 300_000;

/** Pause between two looks at all nodes. */
const POLL_MS = 150;

/** Share of time that nodes may wait for a processor before their pace is no longer their own. */
export const MOST_STARVED = 0.3;

/** What a network is made of. */
export interface NetworkOptions {
  readonly validators: number;
  readonly fullNodes?: number;
  readonly blockIntervalMs: number;
  /** Parameters of the modules that are not the first ones, as `--param` takes them. */
  readonly params?: Readonly<Record<string, string>>;
  /** Waits of consensus, for networks that lose nodes: a fifth of the usual ones. */
  readonly hasShortTimeouts?: boolean;
  /** Where `from` reaches `to`, instead of its port. */
  readonly peerPort?: (link: { from: number; to: number; port: number }) => Promise<number>;
  /** Keys of config.toml that are not as `testnet` writes them, with their TOML text. */
  readonly settings?: (
    node: TestnetNode,
    all: readonly TestnetNode[],
  ) => Readonly<Record<string, string>>;
}

/** A node of the network; it may be down. */
export class NetworkNode {
  readonly name: string;
  readonly home: string;
  readonly ports: NodePorts;
  readonly isValidator: boolean;
  private child: ChildProcess | undefined;
  private exited: Promise<number | null> = Promise.resolve(null);
  private text = "";

  constructor(
    readonly written: TestnetNode,
    private readonly main: string,
  ) {
    this.name = written.name;
    this.home = written.home;
    this.ports = nodePorts(written.portOffset);
    this.isValidator = written.isValidator;
  }

  /** Base of the EVM JSON-RPC. */
  get evmUrl(): string {
    return `http://127.0.0.1:${this.ports.jsonRpc}`;
  }

  /** Base of the consensus RPC. */
  get cometUrl(): string {
    return `http://127.0.0.1:${this.ports.cometRpc}`;
  }

  /** What it wrote so far, over all of its lives. */
  get output(): string {
    return this.text;
  }

  /** Its log lines about faults, over all of its lives. */
  get faults(): readonly string[] {
    return this.text.match(/"level":"(error|fatal)".*/g) ?? [];
  }

  /** Starts the process and resolves when it serves; it may be far behind then. @param flags of `start` */
  async start(...flags: readonly string[]): Promise<void> {
    if (this.child !== undefined && isAlive(this.child)) throw new Error(`${this.name} runs`);
    // As `npm run causeway -- start` does.
    const child = spawn(
      process.execPath,
      [...NODE_FLAGS, this.main, "start", "--home", this.home, ...flags],
      {
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...NODE_ENVIRONMENT, ...process.env },
      },
    );
    this.child = child;
    processes.add(child);
    const record = (chunk: Buffer) => {
      this.text += chunk.toString();
    };
    child.stdout.on("data", record);
    child.stderr.on("data", record);
    this.exited = new Promise((resolve) => {
      child.once("exit", (code) => {
        processes.delete(child);
        resolve(code);
      });
    });
    await until(() => this.answers(child), {
      timeoutMs: START_TIMEOUT_MS,
      what: `${this.name} serves`,
    });
  }

  /** `kill -9`; resolves when it is gone. */
  async kill(): Promise<void> {
    this.child?.kill("SIGKILL");
    await this.exited;
  }

  /** Resolves with the exit code when it has ended by itself. */
  ended(): Promise<number | null> {
    return this.exited;
  }

  /** SIGTERM; rejects when it does not end with 0, as by itself when its stop takes too long. */
  async stop(): Promise<void> {
    this.child?.kill("SIGTERM");
    const code = await this.exited;
    if (code !== 0) throw new Error(`${this.name} ended with ${code}:\n${this.lastWords()}`);
  }

  /** SIGSTOP: it holds its connections and says nothing. */
  freeze(): void {
    this.child?.kill("SIGSTOP");
  }

  /** SIGCONT. */
  thaw(): void {
    this.child?.kill("SIGCONT");
  }

  /** Result of `/status`. */
  status(): Promise<CometStatus> {
    return comet<CometStatus>(this, "status");
  }

  /** Height of its head. */
  async height(): Promise<number> {
    return Number((await this.status()).sync_info.latest_block_height);
  }

  /** Height of its head; -1 where a busy machine let it not answer. Rejects when it ended. */
  async heightIfAnswered(): Promise<number> {
    if (this.child !== undefined) this.assertRuns(this.child);
    return this.height().catch(() => -1);
  }

  /**
   * How long its main thread was ready to run and had no processor, over this life, milliseconds;
   * undefined where the system does not tell.
   */
  waitedMs(): number | undefined {
    try {
      const pid = this.child?.pid;
      const [, waitedNs] = fs.readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ");
      return Number(waitedNs) / 1_000_000;
    } catch {
      return undefined; // Not Linux.
    }
  }

  /** What it said of faults, and its last lines. */
  lastWords(): string {
    return [...this.faults.slice(-10), ...this.text.split("\n").slice(-15)].join("\n");
  }

  private assertRuns(child: ChildProcess): void {
    if (isAlive(child)) return;
    throw new Error(`${this.name} ended:\n${this.lastWords()}`);
  }

  private async answers(child: ChildProcess): Promise<boolean> {
    this.assertRuns(child);
    await pause(POLL_MS);
    return this.status().then(
      () => true,
      () => false, // Not listening yet.
    );
  }
}

/** A network that runs. */
export interface RunningNetwork {
  readonly folder: string;
  readonly faucetKey: string;
  /** File with it. */
  readonly faucetKeyFile: string;
  readonly validators: readonly NetworkNode[];
  readonly fullNodes: readonly NetworkNode[];
  /**
   * Copies the home of a node, which is down, as an operator does who moves it: on other ports,
   * `data/priv_validator_state.json` at height "0", `node_key.json` left out. There is one.
   */
  copyOf(node: NetworkNode): NetworkNode;
  /** Kills what runs, deletes the homes. */
  remove(): Promise<void>;
}

const processes = new Set<ChildProcess>();

process.on("exit", () => {
  for (const child of processes) child.kill("SIGKILL");
});

/** Writes the homes and starts the validators; full nodes are the test's to start. */
export async function startNetwork(options: NetworkOptions): Promise<RunningNetwork> {
  const network = await writeNetwork(options);
  try {
    await Promise.all(network.validators.map((node) => node.start()));
    await untilDeciding(network.validators);
    return network;
  } catch (error) {
    await network.remove();
    throw error;
  }
}

/** Writes the homes; what runs is the test's choice. */
export async function writeNetwork(options: NetworkOptions): Promise<RunningNetwork> {
  const { validators, fullNodes = 0, blockIntervalMs } = options;
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-network-"));
  const main = path.join(await compiledFolder(), "cli", "main.js");
  // One place more, for a copy.
  const portOffset = await findPortOffset(validators + fullNodes + 1);
  const out = path.join(folder, "net");
  const clock = systemClock;
  const modules = parseModuleParams(options.params ?? {});
  const plan = { out, validators, fullNodes, portOffset, blockIntervalMs, modules, clock };
  const written = await createTestnet(plan);
  await writeSettings(written.nodes, options);
  const nodes = written.nodes.map((node) => new NetworkNode(node, main));
  return {
    folder,
    faucetKey: fs.readFileSync(written.faucetKeyFile, "utf8").trim(),
    faucetKeyFile: written.faucetKeyFile,
    validators: nodes.filter(({ isValidator }) => isValidator),
    fullNodes: nodes.filter(({ isValidator }) => !isValidator),
    copyOf(node) {
      const offset = portOffset + PORT_STEP * (validators + fullNodes);
      const home = path.join(out, "copy");
      const copy = { ...node.written, name: "copy", home, portOffset: offset };
      writeCopy(node.written, copy);
      const started = new NetworkNode(copy, main);
      nodes.push(started);
      return started;
    },
    async remove() {
      await Promise.all(nodes.map((node) => node.kill()));
      fs.rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Resolves when all of these have decided two blocks more than they had. */
export async function untilDeciding(nodes: readonly NetworkNode[]): Promise<void> {
  const heights = await Promise.all(nodes.map((node) => node.heightIfAnswered()));
  await untilHeight(nodes, Math.max(...heights) + 2);
}

/** Resolves when all of these have a height; asks seldom, for the nodes have the same cores. */
export async function untilHeight(
  nodes: readonly NetworkNode[],
  height: number,
  timeoutMs = START_TIMEOUT_MS,
): Promise<void> {
  await until(
    async () => {
      await pause(POLL_MS);
      const heights = await Promise.all(nodes.map((node) => node.heightIfAnswered()));
      return heights.every((one) => one >= height);
    },
    { timeoutMs, what: `height ${height} on all of ${nodes.length} nodes` },
  ).catch((error: unknown) => {
    const words = nodes.map((node) => `${node.name}:\n${node.lastWords()}`).join("\n");
    throw new Error(`${String(error)}\n${words}`);
  });
}

/**
 * Share of the time from now to the call of the answer in which these nodes were ready to run and
 * had no processor, in the mean; 0 where the system does not tell.
 */
export function watchStarvation(nodes: readonly NetworkNode[]): () => number {
  const startMs = performance.now();
  const before = nodes.map((node) => node.waitedMs() ?? 0);
  return () => {
    const waited = nodes.map((node, index) => (node.waitedMs() ?? 0) - (before[index] ?? 0));
    const meanMs = waited.reduce((sum, one) => sum + one, 0) / nodes.length;
    return meanMs / (performance.now() - startMs);
  };
}

/** Changes what `createTestnet` wrote: waits, the ways between the nodes, and single keys. */
async function writeSettings(nodes: readonly TestnetNode[], options: NetworkOptions) {
  const { hasShortTimeouts = false, peerPort, settings } = options;
  for (const [from, node] of nodes.entries()) {
    const file = path.join(homePaths(node.home).config, "config.toml");
    let text = fs.readFileSync(file, "utf8");
    if (hasShortTimeouts) {
      text = text
        .replace(/^(timeout_propose) = .*$/m, '$1 = "600ms"')
        .replace(/^(timeout_pre(?:vote|commit)) = .*$/gm, '$1 = "200ms"')
        .replace(/^(timeout_\w+_delta) = .*$/gm, '$1 = "200ms"');
    }
    for (const [to, peer] of peerPort === undefined ? [] : nodes.entries()) {
      if (!text.includes(peer.peerAddress)) continue;
      const { p2p: port } = nodePorts(peer.portOffset);
      const other = await peerPort?.({ from, to, port });
      text = text.replace(peer.peerAddress, `${peer.nodeId}@127.0.0.1:${other}`);
    }
    fs.writeFileSync(file, text);
    for (const [key, value] of Object.entries(settings?.(node, nodes) ?? {})) {
      writeSetting(node, key, value);
    }
  }
}

/** Changes one key of the config.toml of a node that is down. @param value its TOML text */
export function writeSetting(node: { readonly home: string }, key: string, value: string): void {
  const file = path.join(homePaths(node.home).config, "config.toml");
  const lines = fs.readFileSync(file, "utf8").split("\n");
  const at = lines.findIndex((line) => line.startsWith(`${key} = `));
  if (at < 0) throw new RangeError(`${file} has no ${key}`);
  fs.writeFileSync(file, lines.with(at, `${key} = ${value}`).join("\n"));
}

function isAlive({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}

function writeCopy(original: TestnetNode, copy: TestnetNode): void {
  fs.cpSync(original.home, copy.home, { recursive: true });
  const paths = homePaths(copy.home);
  fs.rmSync(paths.nodeKey);
  fs.writeFileSync(paths.validatorState, '{"height":"0","round":0,"step":0}\n');
  const ports = Object.entries(nodePorts(copy.portOffset));
  const before = new Map<string, number>(Object.entries(nodePorts(original.portOffset)));
  for (const name of ["config.toml", "app.toml"]) {
    const file = path.join(paths.config, name);
    let text = fs.readFileSync(file, "utf8");
    for (const [part, port] of ports) text = text.replaceAll(`:${before.get(part)}"`, `:${port}"`);
    fs.writeFileSync(file, text);
  }
}

/**
 * Offset of the first node's ports. Kits of other tests lie on multiples of 20 and five ports
 * further; ten beside them no port of a network meets one of a kit. All stay below those that
 * systems hand out.
 */
async function findPortOffset(count: number): Promise<number> {
  const places = 290 - (PORT_STEP * count) / 20;
  for (let attempt = 0; attempt < places; attempt += 1) {
    const offset = 10 + ((process.pid * 7 + attempt * 31) % places) * 20;
    const ports = Array.from({ length: count }, (_, index) =>
      Object.values(nodePorts(offset + PORT_STEP * index)),
    );
    const taken = await Promise.all(ports.flat().map(isTaken));
    if (!taken.includes(true)) return offset;
  }
  throw new Error("no ports are free");
}

function isTaken(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
