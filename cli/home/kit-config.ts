/** Settings of all processes of the kit, read together: all faults at once, all ports, all addresses. */
import { join } from "node:path";
import { DEFAULT_PORTS, type PortName } from "../../chain/networks.js";
import { watcherConfigFile } from "../../deposit-watcher/config.js";
import { consoleConfig } from "../../console/config.js";
import { explorerConfig } from "../../explorer/config.js";
import {
  ConfigError,
  type ConfigFault,
  type ConfigFile,
  type Environment,
  environmentName,
  readConfig,
} from "../../runtime/config/config.js";
import { formatListenAddress, type ListenAddress } from "../../runtime/config/config-values.js";
import { logLevelFaults } from "../../runtime/config/log-level.js";
import { indexerConfigFile } from "../../indexer/config.js";
import { serviceUrlFaults } from "../../runtime/config/service-urls.js";
import { sidecarConfig } from "../../sidecar/config.js";
import {
  TREASURY_ROUND_FILE,
  treasuryRoundHoldsMs,
  workerConfigFile,
} from "../../withdrawal-worker/config.js";
import { type KitNode, kitNodes } from "./network/kit-nodes.js";
import { NODE_CONFIG_FILES } from "./node-home.js";
import type { WantedPort } from "./ports.js";

/** Settings files of the exchange side. */
const EXCHANGE_FILES: readonly ConfigFile[] = [
  sidecarConfig,
  watcherConfigFile,
  workerConfigFile,
  indexerConfigFile,
  explorerConfig,
  consoleConfig,
];

/** Every settings file of a home, in the order in which they are written. */
export const KIT_CONFIG_FILES: readonly ConfigFile[] = [...NODE_CONFIG_FILES, ...EXCHANGE_FILES];

/** Names of the settings files: where a home tells its port offset. */
export const KIT_CONFIG_NAMES: readonly string[] = KIT_CONFIG_FILES.map(({ name }) => name);

/** Where the parts of a kit answer, as URLs that this machine can call. */
export interface KitEndpoints {
  readonly jsonRpcUrl: string;
  readonly webSocketUrl: string;
  /** Of the kit's own node; undefined where somebody else's is used. */
  readonly cometRpcUrl: string | undefined;
  /** Undefined where it is somebody else's node, or not served. */
  readonly metricsUrl: string | undefined;
  /** Undefined where it is somebody else's node, or not served. */
  readonly restUrl: string | undefined;
  /** host:port, as gRPC's clients want it. */
  readonly grpcAddress: string | undefined;
  readonly sidecarOnlineUrl: string;
  readonly sidecarOfflineUrl: string;
  readonly depositUrl: string;
  readonly withdrawalUrl: string;
  /** Undefined where no indexer is started. */
  readonly indexerUrl: string | undefined;
  /** Undefined where no explorer is started. */
  readonly explorerUrl: string | undefined;
  /** Undefined where no console is started. */
  readonly consoleUrl: string | undefined;
  /** Further validators of the kit's network; the URLs above are those of the first. */
  readonly otherNodes: readonly { readonly name: string; readonly cometRpcUrl: string }[];
}

/** Parts that a kit can be started without. */
export const OPTIONAL_PARTS = ["indexer", "explorer", "console"] as const;

/** One of them. */
export type LeftOut = (typeof OPTIONAL_PARTS)[number];

/** How a treasury that works is known. */
export interface TreasuryWord {
  /** Written after each of its rounds. */
  readonly roundFile: string;
  /** Age from which the file says that rounds do not come to their end. */
  readonly staleAfterMs: number;
}

/** What the kit needs to know of its processes' settings. */
export interface KitConfig {
  /** JSON-RPC of the nodes that the exchange side asks, each once. */
  readonly nodeUrls: readonly string[];
  readonly endpoints: KitEndpoints;
  readonly nodes: readonly KitNode[];
  /** What moves the exchange's own coins, a process without a port; undefined where none is started. */
  readonly treasury: TreasuryWord | undefined;
  /** Ports of all processes; not that of the embedded database. */
  readonly wantedPorts: readonly WantedPort[];
}

/** Who listens on a port, for people. */
const PART_OF_PORT: Partial<Readonly<Record<PortName, string>>> = {
  p2p: "the node's peers",
  cometRpc: "the node's consensus RPC",
  metrics: "the node's metrics",
  jsonRpc: "the node's JSON-RPC",
  webSocket: "the node's WebSocket",
  rest: "the node's REST interface",
  grpc: "the node's gRPC",
  sidecarOnline: "the sidecar (online)",
  sidecarOffline: "the sidecar (offline)",
  depositApi: "the deposit API",
  withdrawalApi: "the withdrawal API",
  indexer: "the indexer",
  explorer: "the explorer",
  console: "the console",
};

/** Settings that say whether a section's address is listened on. */
const SWITCHES = ["enable", "prometheus"];

/** A place that some setting tells to listen on. */
interface Listener {
  /** The node whose setting it is, when there are several. */
  readonly node: string | undefined;
  /** Which part this is, known by the default port of the setting. */
  readonly name: string;
  readonly setting: string;
  readonly address: ListenAddress;
  /** What is wrong where its port is left to the system. */
  readonly fault: ConfigFault;
}

/** Where settings are read from. */
interface KitConfigSources {
  readonly home: string;
  readonly env: Environment;
  readonly portOffset: number;
}

/**
 * Reads and checks the settings of every process.
 * @param sources `validators` is how many nodes a home without a chain is going to have, 0 where
 *   somebody else's node is used
 *   `without`, of a start, leaves the ports of parts that are not started to others; a command beside a
 *   kit is not told them, and takes those for left out with which no kit would start
 * @throws ConfigError with the faults of all files together
 */
export function loadKitConfig(
  sources: KitConfigSources & {
    readonly validators?: number;
    readonly without?: ReadonlySet<LeftOut>;
  },
): KitConfig {
  const faults: ConfigFault[] = [...serviceUrlFaults(sources.env), ...logLevelFaults(sources.env)];
  const listeners: Listener[] = [];
  const read = <F extends ConfigFile>(from: KitConfigSources, file: F, node?: string) => {
    const { values, faults: own } = readConfig(from, file);
    faults.push(...own);
    // Also of a file with faults: what is wrong with its ports is told beside them.
    listeners.push(...listenersOf({ from, file, values, node }));
    return values;
  };
  const nodes = kitNodes(sources.home, sources.validators);
  for (const { home, name, portStep } of nodes) {
    const own = { ...sources, home, portOffset: sources.portOffset + portStep };
    const label = nodes.length === 1 ? undefined : name;
    for (const file of NODE_CONFIG_FILES) read(own, file, label);
  }
  const sidecar = read(sources, sidecarConfig);
  const watcher = read(sources, watcherConfigFile);
  const worker = read(sources, workerConfigFile);
  const { without = new Set() } = sources;
  if (!without.has("indexer")) read(sources, indexerConfigFile);
  if (!without.has("explorer")) read(sources, explorerConfig);
  if (!without.has("console")) read(sources, consoleConfig);
  const found = listeners.filter((listener) => isFindable(listener, nodes.length));
  const isBeside = sources.without === undefined;
  const unfindable = listeners.filter(
    (listener) => !found.includes(listener) && !(isBeside && isOptional(listener)),
  );
  faults.push(...unfindable.map(({ fault }) => fault));
  if (faults.length > 0) throw new ConfigError(withoutDoubles(faults));
  const { "json-rpc-url": jsonRpcUrl, "web-socket-url": webSocketUrl } = watcher.node;
  const workerUrl = worker.node["json-rpc-url"];
  const ours = endpointsOf(found, nodes);
  const somebodys = {
    jsonRpcUrl,
    webSocketUrl,
    cometRpcUrl: undefined,
    metricsUrl: undefined,
    restUrl: undefined,
    grpcAddress: undefined,
  };
  return {
    nodes,
    treasury: treasuryWord(sources.home, worker.treasury),
    nodeUrls: [...new Set([sidecar.node.url, jsonRpcUrl, workerUrl])],
    endpoints: nodes.length > 0 ? ours : { ...ours, ...somebodys },
    wantedPorts: found.map((listener) => ({
      part: partOf(listener),
      host: listener.address.host,
      port: listener.address.port,
    })),
  };
}

function treasuryWord(
  home: string,
  settings: { readonly enabled: boolean; readonly "scan-interval-ms": number },
): TreasuryWord | undefined {
  if (!settings.enabled) return undefined;
  return {
    roundFile: join(home, TREASURY_ROUND_FILE),
    staleAfterMs: treasuryRoundHoldsMs(settings["scan-interval-ms"]),
  };
}

/** A wrong variable is wrong for each node, and told once. */
function withoutDoubles(faults: readonly ConfigFault[]): readonly ConfigFault[] {
  const lines = faults.map((fault) => JSON.stringify(fault));
  return faults.filter((_, index) => lines.indexOf(lines[index] ?? "") === index);
}

function isListenAddress(value: unknown): value is ListenAddress {
  return (
    typeof value === "object" &&
    value !== null &&
    "host" in value &&
    "port" in value &&
    typeof value.host === "string" &&
    typeof value.port === "number"
  );
}

function portNameOf(port: number): string {
  return Object.entries(DEFAULT_PORTS).find(([, known]) => known === port)?.[0] ?? String(port);
}

/**
 * Where the system chooses a port, none of the kit's other parts finds it. Peers alone are told it, and a
 * kit's own network names those of its nodes beforehand.
 */
function isFindable({ name, address }: Listener, nodeCount: number): boolean {
  return address.port !== 0 || (name === "p2p" && nodeCount === 1);
}

function isOptional({ name }: Listener): boolean {
  return OPTIONAL_PARTS.some((part) => part === name);
}

function portFault(
  { home, env }: KitConfigSources,
  { name: file }: ConfigFile,
  { key, address }: { readonly key: string; readonly address: ListenAddress },
): ConfigFault {
  const variable = environmentName(file, key);
  const place =
    env[variable] === undefined
      ? { file: join(home, "config", `${file}.toml`), key }
      : { file: "environment", key: variable };
  const value = JSON.stringify(formatListenAddress(address));
  return {
    ...place,
    value,
    allowed: "host:port with a port from 1 to 65535: parts look for it there",
  };
}

function listenersOf({
  from,
  file,
  values,
  node,
}: {
  readonly from: KitConfigSources;
  readonly file: ConfigFile;
  readonly values: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly node: string | undefined;
}): Listener[] {
  const listeners: Listener[] = [];
  for (const [section, fields] of Object.entries(file.sections)) {
    for (const [key, { defaultValue }] of Object.entries(fields)) {
      // What is switched off listens nowhere.
      if (SWITCHES.some((name) => values[section]?.[name] === false)) continue;
      const address = values[section]?.[key];
      if (!isListenAddress(address) || !isListenAddress(defaultValue)) continue;
      const name = portNameOf(defaultValue.port);
      const setting = `${section}.${key}`;
      const fault = portFault(from, file, { key: setting, address });
      listeners.push({ node, name, setting: `${file.name}.toml ${setting}`, address, fault });
    }
  }
  return listeners;
}

/** A URL as people are shown it: without a path or a query, which may hold an access key. */
export function shownUrl(url: string): string {
  return new URL(url).origin;
}

/** Host to call for a host that is listened on: "all interfaces" is no destination. */
export function callableHost(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}

function endpointsOf(listeners: readonly Listener[], nodes: readonly KitNode[]): KitEndpoints {
  // Without a node's name the first one's: it serves the kit's ports.
  const url = (name: PortName, scheme = "http", node?: string): string => {
    const found = listeners.find(
      (listener) => listener.name === name && (node === undefined || listener.node === node),
    )?.address;
    const { host, port } = found ?? { host: "127.0.0.1", port: DEFAULT_PORTS[name] };
    return formatListenAddress({ host: callableHost(host), port }, `${scheme}://`);
  };
  const isServed = (name: PortName) => listeners.some((listener) => listener.name === name);
  return {
    jsonRpcUrl: url("jsonRpc"),
    webSocketUrl: url("webSocket", "ws"),
    cometRpcUrl: url("cometRpc"),
    metricsUrl: isServed("metrics") ? url("metrics") : undefined,
    restUrl: isServed("rest") ? url("rest") : undefined,
    grpcAddress: isServed("grpc") ? url("grpc").slice("http://".length) : undefined,
    sidecarOnlineUrl: url("sidecarOnline"),
    sidecarOfflineUrl: url("sidecarOffline"),
    depositUrl: url("depositApi"),
    withdrawalUrl: url("withdrawalApi"),
    indexerUrl: isServed("indexer") ? url("indexer") : undefined,
    explorerUrl: isServed("explorer") ? url("explorer") : undefined,
    consoleUrl: isServed("console") ? url("console") : undefined,
    otherNodes: nodes.slice(1).map(({ name }) => ({
      name,
      cometRpcUrl: url("cometRpc", "http", name),
    })),
  };
}

function partOf(listener: Listener): string {
  const known = Object.entries(PART_OF_PORT).find(([name]) => name === listener.name)?.[1];
  const part = known ?? listener.setting;
  return listener.node === undefined ? part : `${listener.node}, ${part}`;
}
