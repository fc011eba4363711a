/** A network of validators of this build, each a process on a home of its own, on one machine. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { Address } from "../../../chain/address.js";
import { ATOKEN_PER_TOKEN } from "../../../chain/units.js";
import { homePaths } from "../../../cli/home/home.js";
import { NODE_ENVIRONMENT, NODE_FLAGS } from "../../../cli/home/network/kit-nodes.js";
import { nodePorts } from "../../../cli/home/node-home.js";
import { assertPortsFree } from "../../../cli/home/ports.js";
import { PORT_STEP } from "../../../cli/home/ports.js";
import { createTestnet, type TestnetNode } from "../../../cli/home/network/testnet.js";
import { encodeGenesis, loadGenesis } from "../../../node/settings/genesis.js";
import { systemClock } from "../../../runtime/process/clock.js";
import type { ChainTarget } from "./chain-target.js";
import { blockNumber } from "../json-rpc.js";
import { type BenchProcess, startProcess } from "../processes.js";

/** Coins of each funded account. */
const FUNDED_ATOKEN = 1_000_000n * ATOKEN_PER_TOKEN;

/** First port offset tried: above what tests use, all ports below those that systems hand out. */
const FIRST_PORT_OFFSET = 5_310;

/** Offsets tried before giving up, and the distance between them. */
const OFFSET_ATTEMPTS = 15;
const OFFSET_STEP = 20;

/** Time for the validators to find each other and decide two blocks. */
const START_TIMEOUT_MS = 60_000;

/** Time between two looks at the head. */
const POLL_MS = 100;

/** A network that runs. */
export interface NetworkTarget extends ChainTarget {
  readonly urls: readonly string[];
  /** Consensus RPC of the first validator. */
  readonly cometUrl: string;
}

/** What a network is made of. */
export interface NetworkTargetOptions {
  readonly validators: number;
  /** Accounts with coins from block 0 on. */
  readonly funded: readonly Address[];
  /** Folder for CPU profiles. */
  readonly profileFolder: string | undefined;
}

const folders = new Set<string>();

process.on("exit", () => folders.forEach(removeFolder));

function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  folders.delete(folder);
}

/** Starts validators of equal power with blocks of the usual 2 s; resolves when they decide. */
export async function startNetworkTarget(options: NetworkTargetOptions): Promise<NetworkTarget> {
  const { validators, funded, profileFolder } = options;
  const folder = mkdtempSync(path.join(tmpdir(), "causeway-bench-network-"));
  folders.add(folder);
  const started: BenchProcess[] = [];
  const stop = async () => {
    await Promise.all(started.map((one) => one.stop()));
    removeFolder(folder);
  };
  try {
    const { nodes } = await createTestnet({
      out: path.join(folder, "net"),
      validators,
      fullNodes: 0,
      portOffset: await findPortOffset(validators),
      clock: systemClock,
    });
    for (const node of nodes) fund(node, funded);
    for (const node of nodes) started.push(await startValidator(node, profileFolder));
    const ports = nodes.map(({ portOffset }) => nodePorts(portOffset));
    const urls = ports.map(({ jsonRpc }) => `http://127.0.0.1:${jsonRpc}`);
    await Promise.all(urls.map(untilDeciding));
    return {
      name: validators === 1 ? "1 validator" : `${validators} validators`,
      url: urls[0] ?? "",
      urls,
      cometUrl: `http://127.0.0.1:${ports[0]?.cometRpc}`,
      process: asOne(started),
      limits: undefined,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function fund(node: TestnetNode, funded: readonly Address[]): void {
  const { genesis: file } = homePaths(node.home);
  const genesis = loadGenesis(file);
  const alloc = new Map(genesis.alloc);
  const plain = { balanceAtoken: FUNDED_ATOKEN, code: undefined, storage: new Map() };
  for (const address of funded) alloc.set(address, plain);
  writeFileSync(file, encodeGenesis({ ...genesis, alloc }));
}

function startValidator(
  node: TestnetNode,
  profileFolder: string | undefined,
): Promise<BenchProcess> {
  const main = fileURLToPath(new URL("../../../cli/main.js", import.meta.url));
  const { jsonRpc } = nodePorts(node.portOffset);
  return startProcess({
    name: node.name,
    env: NODE_ENVIRONMENT,
    command: process.execPath,
    args: [
      ...NODE_FLAGS,
      ...profileFlags(profileFolder, node.name),
      main,
      "start",
      "--home",
      node.home,
    ],
    isReady: async () => (await blockNumber(`http://127.0.0.1:${jsonRpc}`)) >= 0,
  });
}

function profileFlags(folder: string | undefined, name: string): string[] {
  if (folder === undefined) return [];
  const own = path.resolve(folder, name);
  mkdirSync(own, { recursive: true });
  return ["--cpu-prof", `--cpu-prof-dir=${own}`];
}

async function untilDeciding(url: string): Promise<void> {
  const wanted = (await blockNumber(url)) + 2;
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  while ((await blockNumber(url)) < wanted) {
    if (performance.now() > deadlineMs) throw new Error(`${url} decides no blocks`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** All processes of the network as if they were one. */
function asOne(processes: readonly BenchProcess[]): BenchProcess {
  const total = (figures: readonly (number | undefined)[]) =>
    figures.reduce<number | undefined>(
      (sum, one) => (sum === undefined || one === undefined ? undefined : sum + one),
      0,
    );
  return {
    name: "network",
    pid: processes[0]?.pid ?? 0,
    cpuSeconds: () => total(processes.map((one) => one.cpuSeconds())),
    memoryMib: () => total(processes.map((one) => one.memoryMib())),
    async stop() {
      await Promise.all(processes.map((one) => one.stop()));
    },
  };
}

async function findPortOffset(count: number): Promise<number> {
  for (let attempt = 0; ; attempt += 1) {
    const first = FIRST_PORT_OFFSET + attempt * OFFSET_STEP;
    const wanted = Array.from({ length: count }, (_, index) => {
      const ports = Object.entries(nodePorts(first + PORT_STEP * index));
      return ports.map(([part, port]) => ({ part, host: "127.0.0.1", port }));
    });
    try {
      await assertPortsFree(wanted.flat());
      return first;
    } catch (error) {
      if (attempt >= OFFSET_ATTEMPTS) throw error;
    }
  }
}
