/** The checks of `causeway doctor` that concern one node, and all of them for a node's own home. */
import {
  APP_FILE,
  type AppConfig,
  CONFIG_FILE,
  type NodeConfig,
} from "../../node/settings/config.js";
import { ConfigError, loadConfig } from "../../runtime/config/config.js";
import { formatListenAddress } from "../../runtime/config/config-values.js";
import {
  checkBlockAge,
  checkJsonRpc,
  checkVariables,
  type DoctorContext,
  type Finding,
  finding,
  LAG_WARN_BLOCKS,
  settingsFindings,
} from "./doctor-checks.js";
import { sentenceOf } from "../errors.js";
import { callableHost } from "../home/kit-config.js";
import { homeBlockIntervalMs } from "./home-chain.js";
import { parseMetricsPage, readMetrics } from "./kit-status.js";
import { cometRpcUrl, evmRpcUrl, type NodeStatus, readNodeStatus } from "./node-status.js";

/** Where the log of a node in the foreground is. */
const NODE_LOG = "its standard output";

/** Peers of a node below which somebody should look (spec: Limits). */
const FEWEST_PEERS = 3;

/** The height of a node, and of its network as its peers tell it. */
const HEIGHT_METRICS = ["cometbft_consensus_height", "causeway_network_height"] as const;

/** Settings of a node's home; undefined where a file is wrong. */
interface NodeSettings {
  readonly node: NodeConfig;
  readonly app: AppConfig;
}

/** Every check of a home that has a node and nothing else; those of files are the kit's. */
export async function checkNodeHome(context: DoctorContext): Promise<readonly Finding[]> {
  const { findings: ofFiles, settings } = readSettings(context);
  const findings = [...ofFiles, ...checkVariables(context.env)];
  if (settings === undefined) return findings;
  return [...findings, ...(await checkNode(context, settings))];
}

/** Whether a node has as many peers as it should; of a network that is smaller, as many as it names. */
export function checkPeers(
  { peers, nodeId }: Pick<NodeStatus, "peers" | "nodeId">,
  node: NodeConfig,
): Finding {
  const { seeds, persistent_peers: persistent } = node.p2p;
  // A network's homes name each of its validators, the one whose home it is as well.
  const named = persistent.filter((address) => !address.startsWith(`${nodeId}@`));
  const wanted = seeds.length > 0 ? FEWEST_PEERS : Math.min(FEWEST_PEERS, named.length);
  if (peers >= wanted) return finding("peers", "pass", `${peers}`);
  const remedy =
    "look at the network; name more seeds or persistent_peers in config.toml, section p2p";
  return finding("peers", "warn", `${peers}, expected ${wanted} at least`, remedy);
}

/**
 * How far a node is behind its network, by its own page of metrics; nothing where that is not served, or no
 * peer has said how far it is.
 */
export async function checkHeight(
  { instrumentation }: NodeConfig,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  if (!instrumentation.prometheus) return [];
  const { host, port } = instrumentation.prometheus_listen_addr;
  const url = formatListenAddress({ host: callableHost(host), port }, "http://");
  const figures = parseMetricsPage(await readMetrics(url, signal));
  const [own, network = 0] = HEIGHT_METRICS.map((name) => figures.get(name));
  if (own === undefined || network === 0) return [];
  const lag = Math.max(0, network - own);
  if (lag <= LAG_WARN_BLOCKS) return [finding("height-lag", "pass", `${lag} blocks`)];
  const remedy = "it catches up by itself; see its log, and the machine's load, if it does not";
  return [finding("height-lag", "warn", `${lag} blocks`, remedy)];
}

/** What of the past a node has, and whether that is enough for an exchange. */
export function checkHistory(status: NodeStatus, app: AppConfig, isExchange: boolean): Finding {
  const { pruning, "min-retain-blocks": retained } = app[""];
  const kept = `blocks from ${status.oldestHeight} on`;
  const value = `${kept}; pruning = "${pruning}", min-retain-blocks = ${retained}`;
  const isWhole = retained === 0 && (pruning === "default" || pruning === "nothing");
  if (!isExchange || isWhole) return finding("history", "pass", value);
  return finding(
    "history",
    "warn",
    value,
    'an exchange reads past balances and blocks: set pruning = "default", min-retain-blocks = 0',
  );
}

/** Settings of both files; all faults together. */
function readSettings(context: DoctorContext): {
  readonly findings: readonly Finding[];
  readonly settings: NodeSettings | undefined;
} {
  const { paths, env, portOffset } = context;
  const sources = { home: paths.home, env, portOffset };
  const findings: Finding[] = [];
  const read = <T>(load: () => T): T | undefined => {
    try {
      return load();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      findings.push(...settingsFindings(error));
      return undefined;
    }
  };
  const node = read(() => loadConfig(sources, CONFIG_FILE));
  const app = read(() => loadConfig(sources, APP_FILE));
  if (node === undefined || app === undefined) return { findings, settings: undefined };
  const fine = finding("settings", "pass", "all settings are valid");
  return { findings: [fine], settings: { node, app } };
}

/** Whether the node answers, is of this home's chain, has peers, and keeps up. */
async function checkNode(
  context: DoctorContext,
  { node, app }: NodeSettings,
): Promise<readonly Finding[]> {
  const { paths, env, portOffset, clock, signal } = context;
  const sources = { home: paths.home, env, portOffset };
  const url = cometRpcUrl(sources);
  let status: NodeStatus;
  try {
    status = await readNodeStatus(url, { clock, signal });
  } catch (error) {
    signal.throwIfAborted();
    return [finding("node", "fail", sentenceOf(error), `start it; see ${NODE_LOG}`)];
  }
  const behind = "it follows its peers by itself; see its log if it does not";
  return [
    status.catching_up
      ? finding("node", "warn", `catching up at height ${status.height}`, behind)
      : finding("node", "pass", `height ${status.height} at ${url}`),
    checkBlockAge({ ...status, blockIntervalMs: homeBlockIntervalMs(paths.home) }, NODE_LOG),
    checkPeers(status, node),
    ...(await checkHeight(node, signal)),
    checkHistory(status, app, false),
    ...(await checkJsonRpc(context, context.createEvm(evmRpcUrl(sources)), `see ${NODE_LOG}`)),
  ];
}
