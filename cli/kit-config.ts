/** Settings of all processes of the kit, read together: all faults at once, all ports, all addresses. */
import { DEFAULT_PORTS, type PortName } from "../chain/networks.js";
import { watcherConfigFile } from "../deposit-watcher/config.js";
import { APP_FILE, CONFIG_FILE } from "../node/config.js";
import {
  ConfigError,
  type ConfigFault,
  type ConfigFile,
  type Environment,
  loadConfig,
} from "../runtime/config.js";
import { formatListenAddress, type ListenAddress } from "../runtime/config-values.js";
import { serviceUrlFaults } from "../runtime/service-urls.js";
import { sidecarConfig } from "../sidecar/config.js";
import { workerConfigFile } from "../withdrawal-worker/config.js";
import type { WantedPort } from "./ports.js";

/** Every settings file of a home, in the order in which they are written. */
export const KIT_CONFIG_FILES: readonly ConfigFile[] = [
  CONFIG_FILE,
  APP_FILE,
  sidecarConfig,
  watcherConfigFile,
  workerConfigFile,
];

/** Names of the settings files: where a home tells its port offset. */
export const KIT_CONFIG_NAMES: readonly string[] = KIT_CONFIG_FILES.map(({ name }) => name);

/** Where the parts of a kit answer, as URLs that this machine can call. */
export interface KitEndpoints {
  readonly jsonRpcUrl: string;
  readonly webSocketUrl: string;
  readonly cometRpcUrl: string;
  readonly metricsUrl: string;
  readonly sidecarOnlineUrl: string;
  readonly sidecarOfflineUrl: string;
  readonly depositUrl: string;
  readonly withdrawalUrl: string;
}

/** What the kit needs to know of its processes' settings. */
export interface KitConfig {
  readonly endpoints: KitEndpoints;
  /** Ports of all processes; not that of the embedded database. */
  readonly wantedPorts: readonly WantedPort[];
}

/** Who listens on a port, for people. */
const PART_OF_PORT: Partial<Readonly<Record<PortName, string>>> = {
  cometRpc: "the node's consensus RPC",
  metrics: "the node's metrics",
  jsonRpc: "the node's JSON-RPC",
  webSocket: "the node's WebSocket",
  sidecarOnline: "the sidecar (online)",
  sidecarOffline: "the sidecar (offline)",
  depositApi: "the deposit API",
  withdrawalApi: "the withdrawal API",
};

/** A place that some setting tells to listen on. */
interface Listener {
  /** Which part this is, known by the default port of the setting. */
  readonly name: string;
  readonly setting: string;
  readonly address: ListenAddress;
}

/**
 * Reads and checks the settings of every process.
 * @throws ConfigError with the faults of all files together
 */
export function loadKitConfig(sources: {
  readonly home: string;
  readonly env: Environment;
  readonly portOffset: number;
}): KitConfig {
  const faults: ConfigFault[] = [...serviceUrlFaults(sources.env)];
  const listeners: Listener[] = [];
  for (const file of KIT_CONFIG_FILES) {
    try {
      listeners.push(...listenersOf(file, loadConfig(sources, file)));
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      faults.push(...error.faults);
    }
  }
  if (faults.length > 0) throw new ConfigError(faults);
  return {
    endpoints: endpointsOf(listeners),
    wantedPorts: listeners.map((listener) => ({
      part: partOf(listener),
      host: listener.address.host,
      port: listener.address.port,
    })),
  };
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

function listenersOf(
  file: ConfigFile,
  values: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
): Listener[] {
  const listeners: Listener[] = [];
  for (const [section, fields] of Object.entries(file.sections)) {
    for (const [key, { defaultValue }] of Object.entries(fields)) {
      const address = values[section]?.[key];
      if (!isListenAddress(address) || !isListenAddress(defaultValue)) continue;
      const name = portNameOf(defaultValue.port);
      listeners.push({ name, setting: `${file.name}.toml ${section}.${key}`, address });
    }
  }
  return listeners;
}

/** Host to call for a host that is listened on: "all interfaces" is no destination. */
function callableHost(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}

function endpointsOf(listeners: readonly Listener[]): KitEndpoints {
  const url = (name: PortName, scheme = "http"): string => {
    const found = listeners.find((listener) => listener.name === name)?.address;
    const { host, port } = found ?? { host: "127.0.0.1", port: DEFAULT_PORTS[name] };
    return formatListenAddress({ host: callableHost(host), port }, `${scheme}://`);
  };
  return {
    jsonRpcUrl: url("jsonRpc"),
    webSocketUrl: url("webSocket", "ws"),
    cometRpcUrl: url("cometRpc"),
    metricsUrl: url("metrics"),
    sidecarOnlineUrl: url("sidecarOnline"),
    sidecarOfflineUrl: url("sidecarOffline"),
    depositUrl: url("depositApi"),
    withdrawalUrl: url("withdrawalApi"),
  };
}

function partOf(listener: Listener): string {
  const known = Object.entries(PART_OF_PORT).find(([name]) => name === listener.name)?.[1];
  return known ?? listener.setting;
}
