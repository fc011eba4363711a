/** Our side: real processes of this build on a home of their own, on ports nobody else has. */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Address } from "../../../chain/address.js";
import { DEFAULT_PORTS, type PortName } from "../../../chain/networks.js";
import { ATOKEN_PER_TOKEN } from "../../../chain/units.js";
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from "../../../cli/postgres/embedded-postgres.js";
import { homePaths } from "../../../cli/home/home.js";
import { initHome } from "../../../cli/home/init.js";
import { KIT_CONFIG_FILES } from "../../../cli/home/kit-config.js";
import { type KitPart, kitScripts } from "../../../cli/supervisor/kit.js";
import { runOf } from "../../../cli/home/network/kit-nodes.js";
import { assertPortsFree } from "../../../cli/home/ports.js";
import { encodeGenesis, type Genesis, loadGenesis } from "../../../node/settings/genesis.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { startGuardian } from "../../../runtime/process/guardian.js";
import { createLogger } from "../../../runtime/process/logger.js";
import type { ChainTarget } from "./chain-target.js";
import { type BenchProcess, startProcess } from "../processes.js";

/** Coins of each funded account. */
const FUNDED_ATOKEN = 1_000_000n * ATOKEN_PER_TOKEN;

/** First port offset tried; the tests of this clone use lower ones. */
const FIRST_PORT_OFFSET = 12_000;

/** Offsets tried before giving up. */
const OFFSET_ATTEMPTS = 20;

/** Cheap keystore: its cost is not what is measured. */
const CHEAP_SCRYPT = { n: 1_024, r: 8, p: 1 };

/** How a home is made. */
export interface HomeOptions {
  /** Accounts with coins from block 0 on. */
  readonly funded: readonly Address[];
  /** The network's own 2 s when absent. */
  readonly blockIntervalMs?: number;
}

/** A home with its chain's genesis; nothing runs yet. */
export interface BenchHome {
  readonly folder: string;
  readonly genesis: Genesis;
  readonly portOffset: number;
  url(name: PortName): string;
  /** Text of a file in `config/`. */
  secret(file: string): string;
  remove(): void;
}

const folders = new Set<string>();

// An interrupted run leaves nothing behind either; its processes are killed before (processes.ts).
process.on("exit", () => folders.forEach(removeFolder));

function removeFolder(folder: string): void {
  // PostgreSQL may still write its last files while it is being ended.
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  folders.delete(folder);
}

/** Makes a fresh home. */
export async function createBenchHome(options: HomeOptions): Promise<BenchHome> {
  const folder = mkdtempSync(path.join(tmpdir(), "causeway-bench-"));
  folders.add(folder);
  // PostgreSQL may run as another user, who has to pass through.
  chmodSync(folder, 0o711);
  const portOffset = await findPortOffset();
  const paths = homePaths(folder);
  await initHome({
    paths,
    portOffset,
    network: "testnet",
    blockIntervalMs: options.blockIntervalMs,
    configFiles: KIT_CONFIG_FILES,
    clock: systemClock,
    scrypt: CHEAP_SCRYPT,
  });
  const written = loadGenesis(paths.genesis);
  const plain = { balanceAtoken: FUNDED_ATOKEN, code: undefined, storage: new Map() };
  const alloc = new Map(written.alloc);
  for (const address of options.funded) alloc.set(address, plain);
  const genesis = { ...written, alloc };
  writeFileSync(paths.genesis, encodeGenesis(genesis));
  return {
    folder,
    genesis,
    portOffset,
    url: (name) => `http://127.0.0.1:${DEFAULT_PORTS[name] + portOffset}`,
    secret: (file) => readFileSync(path.join(paths.config, file), "utf8").trim(),
    remove: () => removeFolder(folder),
  };
}

async function findPortOffset(): Promise<number> {
  for (let attempt = 0; ; attempt += 1) {
    const offset = FIRST_PORT_OFFSET + attempt * 100;
    const wanted = Object.entries(DEFAULT_PORTS).map(([part, port]) => ({
      part,
      host: "127.0.0.1",
      port: port + offset,
    }));
    try {
      await assertPortsFree(wanted);
      return offset;
    } catch (error) {
      if (attempt >= OFFSET_ATTEMPTS) throw error;
    }
  }
}

/** Starts one part of the kit, with settings by variables; it ends with this process. */
export function startPart(
  home: BenchHome,
  part: KitPart,
  profileFolder: string | undefined,
  settings: Readonly<Record<string, string>> = {},
): Promise<BenchProcess> {
  const place = ["--home", home.folder, "--port-offset", String(home.portOffset)];
  const { flags, env } = runOf(part, settings);
  return startProcess({
    name: part,
    command: process.execPath,
    args: [...flags, ...profileFlags(profileFolder, part), kitScripts()[part], ...place],
    env: { ...env, CAUSEWAY_SUPERVISED: "1" },
  });
}

/** Flags that make a process write a CPU profile of each of its threads when it ends. */
function profileFlags(folder: string | undefined, part: KitPart): string[] {
  if (folder === undefined) return [];
  const own = path.resolve(folder, part);
  mkdirSync(own, { recursive: true });
  return ["--cpu-prof", `--cpu-prof-dir=${own}`];
}

/** Starts the home's own PostgreSQL with the kit's settings. */
export async function startPostgres(home: BenchHome): Promise<EmbeddedPostgres> {
  const log = createLogger({ component: "bench-postgres", level: "error" });
  const guardian = startGuardian({ log });
  const server = await startEmbeddedPostgres({
    home: home.folder,
    port: DEFAULT_PORTS.postgres + home.portOffset,
    log,
    signal: new AbortController().signal,
    guardian,
  });
  void server.exited.then(() => guardian.close());
  return server;
}

/** What the node of a target is started with. */
export interface NodeTargetOptions extends HomeOptions {
  /** Folder for CPU profiles. */
  readonly profileFolder: string | undefined;
}

/** Our node, which can be started again on its store. */
export interface CausewayTarget extends ChainTarget {
  /** Its consensus RPC. */
  readonly cometUrl: string;
  /** Ends the process and starts another: what it had in memory is gone. */
  restart(): Promise<void>;
}

/** A node alone, with its store on disk, as the peer of another chain. */
export async function startCausewayTarget(options: NodeTargetOptions): Promise<CausewayTarget> {
  const home = await createBenchHome(options);
  try {
    let node = await startPart(home, "node", options.profileFolder);
    const { maxComputeNs, maxGas, blockIntervalMs } = home.genesis.params;
    return {
      name: "causeway",
      url: home.url("jsonRpc"),
      cometUrl: home.url("cometRpc"),
      metricsUrl: `${home.url("metrics")}/metrics`,
      get process() {
        return node;
      },
      async restart() {
        await node.stop();
        node = await startPart(home, "node", options.profileFolder);
      },
      limits: { blockGas: maxGas, computeNs: maxComputeNs, blockIntervalMs },
      async stop() {
        await node.stop();
        home.remove();
      },
    };
  } catch (error) {
    home.remove();
    throw error;
  }
}
