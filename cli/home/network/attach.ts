/**
 * A kit on a chain that exists: a node of it in this home (`--network`, `--genesis`, `--seeds`), or
 * somebody else's node (`--node-url`). What the flags say and what the home remembers make one plan.
 * Such a home has no faucet and its hot wallet begins empty.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Hash32 } from "../../../chain/hex.js";
import { NETWORKS, type NetworkName } from "../../../chain/networks.js";
import { watcherConfigFile } from "../../../deposit-watcher/config.js";
import { CONFIG_FILE } from "../../../node/settings/config.js";
import { GenesisError, loadGenesis } from "../../../node/settings/genesis.js";
import {
  ConfigError,
  type ConfigFault,
  type Environment,
  environmentName,
} from "../../../runtime/config/config.js";
import { showValue } from "../../../runtime/config/config-toml.js";
import { InvalidValueError } from "../../../runtime/config/config-values.js";
import { consoleConfig } from "../../../console/config.js";
import { indexerConfigFile } from "../../../indexer/config.js";
import { explorerConfig } from "../../../explorer/config.js";
import { sidecarConfig } from "../../../sidecar/config.js";
import { workerConfigFile } from "../../../withdrawal-worker/config.js";
import { type ChainOrigin, readChainOrigin } from "./chain-origin.js";
import type { HomePaths } from "../home.js";
import {
  FLAG_NAMES,
  type GivenNames,
  isSameGenesis,
  type NetworkSource,
  readSeeds,
  resolveNetworkSource,
} from "./network-source.js";

/** The flags that name a chain which exists, as text. */
export interface ChainFlags {
  readonly network?: string | undefined;
  readonly genesis?: string | undefined;
  readonly seeds?: string | undefined;
  readonly nodeUrl?: string | undefined;
  readonly nodeWsUrl?: string | undefined;
}

/** Where a node of somebody else answers. */
export interface NodeAddress {
  readonly url: string;
  /** WebSocket that announces heads; only a hint, so a wrong one costs latency. */
  readonly wsUrl: string;
}

/** Which chain a start is about. */
export type ChainPlan =
  /** The one that this home made, or makes now. */
  | { readonly kind: "local" }
  | {
      readonly kind: "joined";
      readonly network: NetworkName;
      /** What a new home is written from; undefined where the home has it already. */
      readonly source: NetworkSource | undefined;
      /** Seeds of this start; undefined takes those of the settings. */
      readonly seeds: readonly string[] | undefined;
    }
  | {
      readonly kind: "remote";
      /** Undefined where the node has to tell it. */
      readonly network: NetworkName | undefined;
      /** Undefined for a home that is made now. */
      readonly genesisHash: Hash32 | undefined;
      /** The node of this start; undefined takes that of the settings. */
      readonly node: NodeAddress | undefined;
    };

/**
 * Which chain the flags and the home mean together.
 * @throws ConfigError with every fault; HOME_INCOMPLETE for a record that cannot be read
 */
export function planChain(
  flags: ChainFlags,
  paths: HomePaths,
  env: Environment,
  names: GivenNames = FLAG_NAMES,
): ChainPlan {
  const faults: ConfigFault[] = [];
  const origin = readChainOrigin(paths);
  const wanted = wantedKind(flags);
  const kind = wanted ?? origin?.kind ?? "local";
  const refuse = (value: string, allowed: string): void => {
    faults.push({ file: names.file, key: firstFlag(flags), value: JSON.stringify(value), allowed });
  };
  if (wanted !== undefined && isLocalHome(paths)) {
    refuse(
      paths.home,
      "a home of its own: the chain of this one was made here, pass another --home",
    );
  } else if (origin !== undefined && origin.kind !== kind) {
    refuse(paths.home, `a home of its own: this one is ${describeOrigin(origin)}`);
  } else if (wanted === undefined && origin?.isComplete === false) {
    const allowed = "a start with the flags of the first one, which was cut off";
    faults.push({ file: paths.chain, key: "isComplete", value: "false", allowed });
  }
  if (flags.nodeWsUrl !== undefined && flags.nodeUrl === undefined) {
    const value = JSON.stringify(flags.nodeWsUrl);
    faults.push({ file: names.file, key: "--node-ws-url", value, allowed: "beside --node-url" });
  }
  const network = readNetwork(flags, origin, names, faults);
  const plan =
    kind === "joined"
      ? planJoined({ flags, network, origin, paths, env, names, faults })
      : kind === "remote"
        ? planRemote({ flags, network, origin, names, faults })
        : ({ kind: "local" } as const);
  if (faults.length > 0) throw new ConfigError(faults);
  return plan;
}

/** Settings of this start, as variables: a flag is stronger than the home's files. */
export function planEnvironment(plan: ChainPlan, env: Environment): Environment {
  if (plan.kind === "local") return env;
  const { network } = plan;
  const { name: sidecar } = sidecarConfig;
  const { name: watcher } = watcherConfigFile;
  const { name: worker } = workerConfigFile;
  const { name: indexer } = indexerConfigFile;
  const { name: explorer } = explorerConfig;
  const { name: console } = consoleConfig;
  const node = plan.kind === "remote" ? plan.node : undefined;
  const seeds = plan.kind === "joined" ? plan.seeds?.join(",") : undefined;
  const values: readonly (readonly [string, string, string | undefined])[] = [
    [sidecar, "network", network],
    [watcher, "chain.network", network],
    [worker, "chain.network", network],
    [explorer, "network", network],
    [explorer, "node.url", node?.url],
    [explorer, "node.ws-url", node?.wsUrl],
    [console, "network", network],
    [console, "parts.node-url", node?.url],
    [sidecar, "node.url", node?.url],
    [sidecar, "node.ws-url", node?.wsUrl],
    [watcher, "node.json-rpc-url", node?.url],
    [watcher, "node.web-socket-url", node?.wsUrl],
    [worker, "node.json-rpc-url", node?.url],
    [indexer, "chain.network", network],
    [indexer, "node.json-rpc-url", node?.url],
    [indexer, "node.web-socket-url", node?.wsUrl],
    [CONFIG_FILE.name, "p2p.seeds", seeds === "" ? undefined : seeds],
  ];
  const given = values.flatMap(([file, key, value]) =>
    value === undefined ? [] : [[environmentName(file, key), value] as const],
  );
  return { ...env, ...Object.fromEntries(given) };
}

/** Whether this home made its chain itself, or has begun to: then it holds the faucet's key. */
export function isLocalHome(paths: HomePaths): boolean {
  return existsSync(paths.faucetKey) || existsSync(paths.newChain);
}

function wantedKind({
  network,
  genesis,
  seeds,
  nodeUrl,
}: ChainFlags): ChainOrigin["kind"] | undefined {
  if (nodeUrl !== undefined) return "remote";
  return [network, genesis, seeds].some((text) => text !== undefined) ? "joined" : undefined;
}

function firstFlag(flags: ChainFlags): string {
  if (flags.nodeUrl !== undefined) return "--node-url";
  if (flags.network !== undefined) return "--network";
  return flags.genesis === undefined ? "--seeds" : "--genesis";
}

function describeOrigin({ kind, network }: ChainOrigin): string {
  return kind === "joined"
    ? `a home with a node of ${network} in it`
    : `a home that uses somebody's node of ${network}`;
}

function readNetwork(
  { network: text }: ChainFlags,
  origin: ChainOrigin | undefined,
  { file, network: key }: GivenNames,
  faults: ConfigFault[],
): NetworkName | undefined {
  if (text === undefined) return origin?.network;
  const network = Object.values(NETWORKS).find(({ name }) => name === text)?.name;
  const value = JSON.stringify(text);
  if (network === undefined) {
    faults.push({ file, key, value, allowed: "mainnet or testnet" });
  } else if (origin !== undefined && origin.network !== network) {
    const allowed = `${origin.network}, which this home is of; another network needs another home`;
    faults.push({ file, key, value, allowed });
  }
  return network;
}

interface Planning {
  readonly flags: ChainFlags;
  readonly network: NetworkName | undefined;
  readonly origin: ChainOrigin | undefined;
  readonly names: GivenNames;
  readonly faults: ConfigFault[];
}

function planJoined(
  planning: Planning & { readonly paths: HomePaths; readonly env: Environment },
): ChainPlan {
  const { flags, network, origin, paths, env, names, faults } = planning;
  const { file } = names;
  const hasChain = existsSync(paths.genesis);
  if (hasChain && flags.genesis !== undefined && !isHomesGenesis(flags.genesis, paths)) {
    const value = JSON.stringify(flags.genesis);
    const allowed = "the genesis that this home has; another chain needs another home";
    faults.push({ file, key: names.genesis, value, allowed });
  }
  try {
    if (origin?.isComplete === true) {
      const { network: found } = loadGenesis(paths.genesis);
      const seeds = flags.seeds === undefined ? undefined : readSeeds(flags.seeds, names);
      return { kind: "joined", network: found, source: undefined, seeds };
    }
    const source = resolveNetworkSource(
      {
        network,
        genesisFile: flags.genesis ?? (hasChain ? paths.genesis : undefined),
        seeds: flags.seeds,
        hasPeers: knowsPeers(paths, env),
      },
      names,
    );
    const seeds = source.seeds.length === 0 ? undefined : source.seeds;
    return { kind: "joined", network: source.network, source, seeds };
  } catch (error) {
    if (error instanceof ConfigError) faults.push(...error.faults);
    else if (error instanceof GenesisError) {
      const allowed = `the genesis of this home's chain: ${error.message}`;
      faults.push({ file: paths.genesis, key: "(whole file)", value: "unusable", allowed });
    } else throw error;
    return { kind: "local" }; // Never used: there is a fault.
  }
}

/** Whether variables, or settings that were written before, tell a node whom to connect with. */
function knowsPeers(paths: HomePaths, env: Environment): boolean {
  const hasSettings = existsSync(join(paths.config, `${CONFIG_FILE.name}.toml`));
  const isNodesHome = hasSettings && !existsSync(paths.chain);
  return (
    isNodesHome ||
    ["p2p.seeds", "p2p.persistent_peers"].some(
      (key) => (env[environmentName(CONFIG_FILE.name, key)] ?? "") !== "",
    )
  );
}

function isHomesGenesis(file: string, paths: HomePaths): boolean {
  try {
    return isSameGenesis(readFileSync(file, "utf8"), readFileSync(paths.genesis, "utf8"));
  } catch {
    return false; // Unreadable or no genesis at all: not this one.
  }
}

function planRemote({ flags, network, origin, names, faults }: Planning): ChainPlan {
  const { file } = names;
  for (const [key, text] of [
    [names.genesis, flags.genesis],
    [names.seeds, flags.seeds],
  ] as const) {
    if (text === undefined) continue;
    const allowed = "no such flag beside --node-url: that node has its own";
    faults.push({ file, key, value: JSON.stringify(text), allowed });
  }
  const genesisHash = origin?.kind === "remote" ? origin.genesisHash : undefined;
  const node = readNodeAddress(flags, file, faults);
  return { kind: "remote", network, genesisHash, node };
}

function readNodeAddress(
  { nodeUrl, nodeWsUrl }: ChainFlags,
  file: string,
  faults: ConfigFault[],
): NodeAddress | undefined {
  if (nodeUrl === undefined) return undefined;
  const { node } = watcherConfigFile.sections;
  const read = (key: string, text: string, field: (typeof node)["json-rpc-url"]): string => {
    try {
      return field.parse(text);
    } catch (error) {
      if (!(error instanceof InvalidValueError)) throw error;
      faults.push({ file, key, value: showValue(text), allowed: field.allowed });
      return field.defaultValue;
    }
  };
  // Written in full, so that it never looks like a default whose port moves with the offset.
  const url = new URL(read("--node-url", nodeUrl, node["json-rpc-url"])).href;
  const wsText = nodeWsUrl ?? webSocketBeside(url);
  return { url, wsUrl: read("--node-ws-url", wsText, node["web-socket-url"]) };
}

/** Where nodes announce heads: one port above JSON-RPC, or the same place behind a usual port. */
function webSocketBeside(httpUrl: string): string {
  const url = new URL(httpUrl);
  const port = url.port === "" ? "" : String(Math.min(Number(url.port) + 1, 65_535));
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.port = port;
  return url.href;
}
