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
import { homePaths } from "../../cli/home.js";
import { type NodePorts, nodePorts } from "../../cli/node-home.js";
import { createTestnet, PORT_STEP, type TestnetNode } from "../../cli/testnet.js";
import { systemClock } from "../../runtime/clock.js";
import { compiledFolder } from "../helpers/services.js";
import { until } from "../helpers/until.js";
import { type CometStatus, comet } from "./calls.js";

/** Time for a node to come up, or to take its part again, on a busy machine. */
const START_TIMEOUT_MS = 120_000;

/** Time that the contract gives a node to end. */
const STOP_TIMEOUT_MS = 10_000;

/** Pause between two looks at all nodes. */
const POLL_MS = 150;

/** What a network is made of. */
export interface NetworkOptions {
  readonly validators: number;
  readonly fullNodes?: number;
  readonly blockIntervalMs: number;
  /** Waits of consensus, for networks that lose nodes: a fifth of the usual ones. */
  readonly hasShortTimeouts?: boolean;
  /** Where `from` reaches `to`, instead of its port. */
  readonly peerPort?: (link: { from: number; to: number; port: number }) => Promise<number>;
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

  /** Starts the process and resolves when it serves; it may be far behind then. */
  async start(): Promise<void> {
    const child = spawn(process.execPath, [this.main, "start", "--home", this.home], {
      stdio: ["ignore", "pipe", "pipe"],
    });
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

  /** SIGTERM; rejects when it does not end in time, or not with 0. */
  async stop(): Promise<void> {
    const startedMs = performance.now();
    this.child?.kill("SIGTERM");
    const code = await this.exited;
    const tookMs = performance.now() - startedMs;
    if (code !== 0 || tookMs > STOP_TIMEOUT_MS) {
      throw new Error(`${this.name} ended with ${code} after ${tookMs} ms:\n${this.lastWords()}`);
    }
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
    const lines = this.text.split("\n");
    const faults = lines.filter((line) => /"level":"(error|fatal)"/.test(line));
    return [...faults.slice(-10), ...lines.slice(-15)].join("\n");
  }

  private async answers(child: ChildProcess): Promise<boolean> {
    if (child.exitCode !== null || child.signalCode !== null) {
      throw new Error(`${this.name} ended:\n${this.lastWords()}`);
    }
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
  readonly validators: readonly NetworkNode[];
  readonly fullNodes: readonly NetworkNode[];
  /** Kills what runs, deletes the homes. */
  remove(): Promise<void>;
}

const processes = new Set<ChildProcess>();

process.on("exit", () => {
  for (const child of processes) child.kill("SIGKILL");
});

/** Writes the homes and starts the validators; full nodes are the test's to start. */
export async function startNetwork(options: NetworkOptions): Promise<RunningNetwork> {
  const { validators, fullNodes = 0, blockIntervalMs } = options;
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-network-"));
  const main = path.join(await compiledFolder(), "cli", "main.js");
  const portOffset = await findPortOffset(validators + fullNodes);
  const out = path.join(folder, "net");
  const clock = systemClock;
  const plan = { out, validators, fullNodes, portOffset, blockIntervalMs, clock };
  const written = await createTestnet(plan);
  await writeSettings(written.nodes, options);
  const nodes = written.nodes.map((node) => new NetworkNode(node, main));
  const network: RunningNetwork = {
    folder,
    faucetKey: fs.readFileSync(written.faucetKeyFile, "utf8").trim(),
    validators: nodes.filter(({ isValidator }) => isValidator),
    fullNodes: nodes.filter(({ isValidator }) => !isValidator),
    async remove() {
      await Promise.all(nodes.map((node) => node.kill()));
      fs.rmSync(folder, { recursive: true, force: true });
    },
  };
  try {
    await Promise.all(network.validators.map((node) => node.start()));
    await untilDeciding(network.validators);
    return network;
  } catch (error) {
    const words = nodes.map((node) => `${node.name}:\n${node.lastWords()}`).join("\n");
    await network.remove();
    throw new Error(`the network did not start: ${String(error)}\n${words}`, { cause: error });
  }
}

/** Resolves when all of these have decided two blocks more than they had. */
export async function untilDeciding(nodes: readonly NetworkNode[]): Promise<void> {
  const heights = await Promise.all(nodes.map((node) => node.height()));
  await untilHeight(nodes, Math.max(...heights) + 2);
}

/** Resolves when all of these have a height; asks seldom, for the nodes have the same cores. */
export async function untilHeight(nodes: readonly NetworkNode[], height: number): Promise<void> {
  await until(
    async () => {
      await pause(POLL_MS);
      const heights = await Promise.all(nodes.map((node) => node.height()));
      return heights.every((one) => one >= height);
    },
    { timeoutMs: START_TIMEOUT_MS, what: `height ${height} on all of ${nodes.length} nodes` },
  ).catch((error: unknown) => {
    const words = nodes.map((node) => `${node.name}:\n${node.lastWords()}`).join("\n");
    throw new Error(`${String(error)}\n${words}`, { cause: error });
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

/** Changes what `createTestnet` wrote: waits and the ways between the nodes. */
async function writeSettings(nodes: readonly TestnetNode[], options: NetworkOptions) {
  const { hasShortTimeouts = false, peerPort } = options;
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
