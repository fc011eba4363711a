/**
 * The image's one-container form, as Mesh asks for it: `MODE`, `NETWORK` and `PORT`, one data
 * volume. ONLINE is a node and the online server over it; OFFLINE is the offline server alone.
 */
import { existsSync } from "node:fs";
import { NETWORKS, type NetworkName } from "../chain/networks.js";
import { APP_FILE, CONFIG_FILE } from "../node/config.js";
import { loadGenesis } from "../node/genesis.js";
import { systemClock } from "../runtime/clock.js";
import { type Environment, environmentName } from "../runtime/config.js";
import type { ProcessContext, Service } from "../runtime/lifecycle.js";
import { sidecarConfig } from "../sidecar/config.js";
import { CliError } from "./errors.js";
import { createHomeFolders, homePaths, type HomePaths } from "./home.js";
import { lockHome } from "./home-lock.js";
import { initHome } from "./init.js";
import { type KitPart, kitScripts } from "./kit.js";
import { type LogFile, TAIL_LINES } from "./log-file.js";
import { createSupervisedProcess } from "./supervised-process.js";

/** What the container is told. */
export interface MeshSettings {
  readonly mode: "online" | "offline";
  readonly network: NetworkName;
  /** Port of the server, on all interfaces of the container. */
  readonly port: number;
}

const DEFAULT_PORT = 8080;
const MAX_PORT = 65_535;

/** The first start on a slow disk makes keys and a genesis; a later one may replay. */
const READY_TIMEOUT_MS = 90_000;

/** Time for an orderly stop; together less than the 8 s that a process gives its services. */
const STOP_MS: Readonly<Partial<Record<KitPart, number>>> = { node: 4_500 };
const OTHER_STOP_MS = 1_500;

/**
 * Reads `MODE` (ONLINE or OFFLINE), `NETWORK` (mainnet or testnet) and `PORT` (default 8080); case
 * does not matter.
 * @throws CONFIG_INVALID naming every fault
 */
export function parseMeshSettings(env: Environment): MeshSettings {
  const faults: string[] = [];
  const mode = (["online", "offline"] as const).find((name) => name === lower(env["MODE"]));
  if (mode === undefined) faults.push("MODE must be ONLINE or OFFLINE");
  const network = Object.values(NETWORKS).find(({ name }) => name === lower(env["NETWORK"]))?.name;
  if (network === undefined) faults.push("NETWORK must be mainnet or testnet");
  const text = env["PORT"] ?? String(DEFAULT_PORT);
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > MAX_PORT) faults.push(`PORT must be a number from 1 to ${MAX_PORT}`);
  if (mode === undefined || network === undefined || faults.length > 0) {
    throw new CliError("CONFIG_INVALID", `${faults.join("; ")}.`, { details: { faults } });
  }
  return { mode, network, port };
}

/**
 * Starts what the settings ask for; the services are stopped in reverse.
 * @throws CONFIG_INVALID, HOME_LOCKED, HOME_UNUSABLE, HOME_INCOMPLETE, CHILD_FAILED
 */
export async function startMesh(context: ProcessContext): Promise<readonly Service[]> {
  const settings = parseMeshSettings(context.env);
  const services: Service[] = [];
  try {
    if (settings.mode === "offline") {
      await startPart("sidecar-offline", settings, context, services);
    } else {
      await startOnline(settings, context, services);
    }
    return services;
  } catch (error) {
    for (const service of services.toReversed()) await service.stop();
    throw error;
  }
}

async function startOnline(
  settings: MeshSettings,
  context: ProcessContext,
  services: Service[],
): Promise<void> {
  const paths = homePaths(context.home);
  await createHomeFolders(paths);
  const lock = await lockHome(paths.lock, paths.home);
  services.push({ name: "lock of the home", stop: () => lock.release() });
  checkNetwork(paths, settings.network);
  await initHome({
    paths,
    portOffset: context.portOffset,
    network: settings.network,
    // No settings of the exchange's side: nothing of it runs here.
    configFiles: [CONFIG_FILE, APP_FILE, sidecarConfig],
    clock: systemClock,
  });
  await startPart("node", settings, context, services);
  await startPart("sidecar-online", settings, context, services);
}

/** A volume keeps its network: the chain in it is of one. Throws CONFIG_INVALID. */
function checkNetwork(paths: HomePaths, network: NetworkName): void {
  if (!existsSync(paths.genesis)) return;
  const present = loadGenesis(paths.genesis).network;
  if (present === network) return;
  throw new CliError(
    "CONFIG_INVALID",
    `NETWORK is ${network}, but the chain in ${paths.home} is of ${present}; use another volume.`,
  );
}

async function startPart(
  part: KitPart,
  settings: MeshSettings,
  { home, portOffset, env, signal, fatal }: ProcessContext,
  services: Service[],
): Promise<void> {
  const child = createSupervisedProcess(
    {
      name: part,
      script: kitScripts()[part],
      args: ["--home", home, "--port-offset", String(portOffset)],
      env: { ...env, ...partEnvironment(settings) },
      readyTimeoutMs: READY_TIMEOUT_MS,
    },
    {
      log: passThrough(),
      events: {
        spawned: () => undefined,
        ended: () => undefined,
        restarting: (name, reason) => process.stderr.write(`${name}: ${reason}; again\n`),
        gaveUp: fatal,
      },
      clock: systemClock,
    },
  );
  const graceMs = STOP_MS[part] ?? OTHER_STOP_MS;
  services.push({ name: part, stop: () => child.stop({ graceMs }) });
  await child.start({ signal });
}

/** The three variables as settings of the sidecar; they win over the volume's file. */
function partEnvironment({ mode, network, port }: MeshSettings): Environment {
  return {
    [environmentName(sidecarConfig.name, "network")]: network,
    [environmentName(sidecarConfig.name, `${mode}.listen`)]: `0.0.0.0:${port}`,
  };
}

/** Output goes to the container's log; the last lines are kept for the report of a death. */
function passThrough(): LogFile {
  let tail: string[] = [];
  return {
    lostChunks: 0,
    write(chunk) {
      process.stdout.write(chunk);
      const lines = chunk.toString("utf8").split("\n");
      tail = [...tail, ...lines.filter((line) => line !== "")].slice(-TAIL_LINES);
    },
    tail: () => tail,
  };
}

function lower(text: string | undefined): string | undefined {
  return text?.toLowerCase();
}
