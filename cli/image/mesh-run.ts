/**
 * The image's one-container form, as Mesh asks for it: `MODE`, `NETWORK` and `PORT`, one data
 * volume. ONLINE is a node and the online server over it; OFFLINE is the offline server alone.
 *
 * Which chain the node is of: the network's own, with `GENESIS` and `SEEDS` or what ships with the
 * image, never one under mainnet's id that this container made. To try things out there is a
 * private chain with testnet's id: `NETWORK=local`, or `NETWORK=testnet` as long as no genesis is
 * given and testnet is not launched (D18).
 */
import { existsSync } from "node:fs";
import { DEFAULT_PORTS, NETWORKS, type NetworkName } from "../../chain/networks.js";
import { APP_FILE, CONFIG_FILE } from "../../node/settings/config.js";
import { loadGenesis } from "../../node/settings/genesis.js";
import { systemClock } from "../../runtime/process/clock.js";
import { ConfigError, type Environment, environmentName } from "../../runtime/config/config.js";
import { MAX_PORT } from "../../runtime/config/config-values.js";
import type { ProcessContext, Service } from "../../runtime/process/lifecycle.js";
import { sidecarConfig } from "../../sidecar/config.js";
import { CliError } from "../errors.js";
import { createHomeFolders, homePaths, type HomePaths } from "../home/home.js";
import { HOME_ELSEWHERE, homeLost, lockHome } from "../home/home-lock.js";
import { type ChainPlan, isLocalHome, planChain, planEnvironment } from "../home/network/attach.js";
import { initAttachedHome, initHome } from "../home/init.js";
import { runOf } from "../home/network/kit-nodes.js";
import { type KitPart, kitScripts } from "../supervisor/kit.js";
import { type LogFile, TAIL_LINES } from "../supervisor/log-file.js";
import { createSupervisedProcess } from "../supervisor/supervised-process.js";

/** What the container is told. */
export interface MeshSettings {
  readonly mode: "online" | "offline";
  readonly network: NetworkName;
  /** Where the chain comes from: made here, or the network's own. */
  readonly chain: "local" | "network";
  /** Path of the network's genesis; undefined takes the one in the volume, else the shipped one. */
  readonly genesisFile: string | undefined;
  /** Addresses, separated by commas; undefined takes the shipped ones. */
  readonly seeds: string | undefined;
  /** Port of the server, on all interfaces of the container. */
  readonly port: number;
}

const DEFAULT_PORT = 8080;

/** The first start on a slow disk makes keys and a genesis; a later one may replay. */
const READY_TIMEOUT_MS = 90_000;

/** Time for an orderly stop; together less than the 8 s that a process gives its services. */
const STOP_MS: Readonly<Partial<Record<KitPart, number>>> = { node: 4_500 };
const OTHER_STOP_MS = 1_500;

/**
 * Reads `MODE` (ONLINE or OFFLINE), `NETWORK` (mainnet, testnet or local) and `PORT` (default 8080),
 * whose case does not matter, and `GENESIS` and `SEEDS`.
 * @throws CONFIG_INVALID naming every fault
 */
export function parseMeshSettings(env: Environment): MeshSettings {
  const faults: string[] = [];
  const mode = (["online", "offline"] as const).find((name) => name === lower(env["MODE"]));
  if (mode === undefined) faults.push("MODE must be ONLINE or OFFLINE");
  const asked = lower(env["NETWORK"]);
  const name = asked === "local" ? "testnet" : asked;
  const network = Object.values(NETWORKS).find((known) => known.name === name);
  if (network === undefined) faults.push("NETWORK must be mainnet, testnet or local");
  const genesisFile = env["GENESIS"] === "" ? undefined : env["GENESIS"];
  const seeds = env["SEEDS"] === "" ? undefined : env["SEEDS"];
  const isGiven = genesisFile !== undefined || seeds !== undefined;
  if (asked === "local" && isGiven) {
    faults.push("GENESIS and SEEDS must not be set beside NETWORK=local");
  }
  const text = env["PORT"] ?? String(DEFAULT_PORT);
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > MAX_PORT) faults.push(`PORT must be a number from 1 to ${MAX_PORT}`);
  if (mode === undefined || network === undefined || faults.length > 0) {
    throw new CliError("CONFIG_INVALID", `${faults.join("; ")}.`, { details: { faults } });
  }
  const isTrial = asked === "local" || (asked === "testnet" && !isGiven && !network.isLaunched);
  const chain = isTrial ? "local" : "network";
  return { mode, network: network.name, port, chain, genesisFile, seeds };
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
  const { lost } = lock;
  lost.addEventListener("abort", () => context.fatal(homeLost(paths.home)), { once: true });
  const plan = planOf(settings, paths, context.env);
  if (plan.kind === "joined") await initAttachedHome({ ...context, paths, plan, node: undefined });
  else await makeLocalChain(paths, context);
  const peers = plan.kind === "joined" ? openToPeers(context.portOffset) : {};
  const own = { ...context, lost, env: { ...peers, ...planEnvironment(plan, context.env) } };
  await startPart("node", settings, own, services);
  await startPart("sidecar-online", settings, own, services);
}

/** Other nodes reach a node of a network, unless a variable says otherwise. */
function openToPeers(portOffset: number): Environment {
  const laddr = `0.0.0.0:${DEFAULT_PORTS.p2p + portOffset}`;
  return { [environmentName(CONFIG_FILE.name, "p2p.laddr")]: laddr };
}

/**
 * Which chain the volume and the variables mean together: a volume keeps its chain.
 * @throws CONFIG_INVALID, also for a genesis and seeds that cannot be used
 */
function planOf(settings: MeshSettings, paths: HomePaths, env: Environment): ChainPlan {
  const { network } = settings;
  const present = existsSync(paths.genesis) ? loadGenesis(paths.genesis).network : undefined;
  if (present !== undefined && present !== network) {
    throw new CliError(
      "CONFIG_INVALID",
      `NETWORK is ${network}, but the chain in ${paths.home} is of ${present}; use another volume.`,
    );
  }
  const isJoined = present !== undefined && !isLocalHome(paths);
  if (settings.chain === "local" && !isJoined) return { kind: "local" };
  if (settings.chain === "network" && isLocalHome(paths)) {
    throw new CliError(
      "CONFIG_INVALID",
      `The chain in ${paths.home} is a private one with the id of ${network}, and the network's own ` +
        "is wanted; use another volume.",
    );
  }
  const { genesisFile: genesis, seeds } = settings;
  const names = { file: "environment", genesis: "GENESIS", seeds: "SEEDS", network: "NETWORK" };
  try {
    return planChain({ network, genesis, seeds }, paths, env, names);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const faults = error.faults.map(({ key, allowed }) => `${key} must be ${allowed}`);
    const message = `${network} cannot be joined: ${faults.join("; ")}.`;
    throw new CliError("CONFIG_INVALID", message, { cause: error });
  }
}

async function makeLocalChain(paths: HomePaths, context: ProcessContext): Promise<void> {
  const { created } = await initHome({
    paths,
    portOffset: context.portOffset,
    network: "testnet",
    // No settings of the exchange's side: nothing of it runs here.
    configFiles: [CONFIG_FILE, APP_FILE, sidecarConfig],
    clock: systemClock,
  });
  context.log.warn(
    { home: paths.home, created, faucet: paths.faucetKey },
    "this is a private chain with testnet's id, for trying out; it is not the public testnet",
  );
}

/**
 * Starts one part and has it stopped with the services; on a home that was lost before it is refused.
 * @throws CHILD_FAILED
 */
export async function startPart(
  part: KitPart,
  settings: MeshSettings,
  { home, portOffset, env, signal, fatal, lost }: ProcessContext & { readonly lost?: AbortSignal },
  services: Service[],
): Promise<void> {
  const child = createSupervisedProcess(
    {
      name: part,
      script: kitScripts()[part],
      args: ["--home", home, "--port-offset", String(portOffset)],
      ...runOf(part, { ...env, ...partEnvironment(settings, env) }),
      readyTimeoutMs: READY_TIMEOUT_MS,
    },
    {
      log: passThrough(),
      events: {
        spawned: () => undefined,
        ended: () => undefined,
        busy: (name, reason) => process.stderr.write(`${name}: ${reason}\n`),
        restarting: (name, reason) => process.stderr.write(`${name}: ${reason}; again\n`),
        gaveUp: fatal,
        finished: (name, reason) => process.stderr.write(`${name}: its work is done (${reason})\n`),
      },
      clock: systemClock,
      // It may have been lost before anybody listens.
      startFault: () => (lost?.aborted === true ? HOME_ELSEWHERE : undefined),
    },
  );
  lost?.addEventListener("abort", () => void child.stop({ graceMs: 0 }), { once: true });
  const graceMs = STOP_MS[part] ?? OTHER_STOP_MS;
  services.push({ name: part, stop: () => child.stop({ graceMs }) });
  await child.start({ signal });
}

/**
 * The three variables as settings of the sidecar; they win over the volume's file. Where it listens is said
 * otherwise by whoever has no IPv4.
 */
export function partEnvironment(
  { mode, network, port }: MeshSettings,
  env: Environment,
): Environment {
  const listen = environmentName(sidecarConfig.name, `${mode}.listen`);
  const given = env[listen] ?? "";
  return {
    [environmentName(sidecarConfig.name, "network")]: network,
    [listen]: given === "" ? `0.0.0.0:${port}` : given,
  };
}

/** Output goes to the container's log; the last lines are kept for the report of a death. */
function passThrough(): LogFile {
  let tail: string[] = [];
  return {
    write(chunk) {
      process.stdout.write(chunk);
      const lines = chunk.toString("utf8").split("\n");
      tail = [...tail, ...lines.filter((line) => line !== "")].slice(-TAIL_LINES);
    },
    tail: () => tail,
    begin() {
      tail = [];
    },
  };
}

function lower(text: string | undefined): string | undefined {
  return text?.toLowerCase();
}
