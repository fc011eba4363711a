/** What one node says about itself on its consensus RPC, which every node has. */
import { z } from "zod";
import { blockAgeSeconds, blockAgeText } from "../../chain/consensus/block-age.js";
import { APP_FILE, CONFIG_FILE } from "../../node/settings/config.js";
import type { Clock } from "../../runtime/process/clock.js";
import { loadConfig } from "../../runtime/config/config.js";
import { withoutAccess } from "../../runtime/config/config-toml.js";
import { formatListenAddress, type ListenAddress } from "../../runtime/config/config-values.js";
import { CliError } from "../errors.js";
import { routeOf } from "../../runtime/http/outgoing/route-url.js";
import { httpRequest } from "./http-request.js";
import { callableHost } from "../home/kit-config.js";
import { firstNodeOf, type NodeSources } from "../home/network/kit-nodes.js";

/** A node's answer, in the form that `causeway status --json` prints. */
export interface NodeStatus {
  readonly nodeId: string;
  readonly moniker: string;
  /** Chain id of the consensus layer. */
  readonly network: string;
  readonly height: number;
  /** Oldest block that it has; 0 while it has none. */
  readonly oldestHeight: number;
  /** CometBFT's name, which operators look for. */
  readonly catching_up: boolean;
  readonly peers: number;
  /** Age of the newest block in seconds; below zero where its time is ahead of the clock. */
  readonly blockAgeSeconds: number;
  /** Power 0: its key is not in the set. */
  readonly validator: { readonly address: string; readonly votingPower: string };
}

/** A node that does not answer within this time counts as not answering. */
const ANSWER_TIMEOUT_MS = 5_000;

const decimal = z.string().regex(/^[0-9]{1,15}$/);
const statusAnswer = z.object({
  result: z.object({
    node_info: z.object({ id: z.string(), network: z.string(), moniker: z.string() }),
    sync_info: z.object({
      latest_block_height: decimal.transform(Number),
      earliest_block_height: decimal.transform(Number),
      latest_block_time: z.iso.datetime(),
      catching_up: z.boolean(),
    }),
    validator_info: z.object({ address: z.string(), voting_power: decimal }),
  }),
});
const peersAnswer = z.object({ result: z.object({ n_peers: decimal.transform(Number) }) });

/**
 * Where the consensus RPC of a home answers, of a kit's that of its first node.
 * @throws ConfigError, HOME_INCOMPLETE
 */
export function cometRpcUrl(sources: NodeSources): string {
  return callableUrl(loadConfig(firstNodeOf(sources), CONFIG_FILE).rpc.laddr);
}

/**
 * Where the EVM's JSON-RPC of a home answers, of a kit's that of its first node.
 * @throws ConfigError, HOME_INCOMPLETE
 */
export function evmRpcUrl(sources: NodeSources): string {
  return callableUrl(loadConfig(firstNodeOf(sources), APP_FILE)["json-rpc"].address);
}

function callableUrl({ host, port }: ListenAddress): string {
  return formatListenAddress({ host: callableHost(host), port }, "http://");
}

/**
 * Asks a node.
 * @param url of its consensus RPC
 * @throws CLIENT_FAILED when it does not answer, or not as a node does
 */
export async function readNodeStatus(
  url: string,
  options: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<NodeStatus> {
  const [status, peers] = await Promise.all([
    ask(url, "/status", statusAnswer, options.signal),
    ask(url, "/net_info", peersAnswer, options.signal),
  ]);
  const { node_info: node, sync_info: sync, validator_info: validator } = status.result;
  return {
    nodeId: node.id,
    moniker: node.moniker,
    network: node.network,
    height: sync.latest_block_height,
    oldestHeight: sync.earliest_block_height,
    catching_up: sync.catching_up,
    peers: peers.result.n_peers,
    blockAgeSeconds: blockAgeSeconds(Date.parse(sync.latest_block_time), options.clock.nowMs()),
    validator: { address: validator.address, votingPower: validator.voting_power },
  };
}

/** The status as lines for people. */
export function formatNodeStatus(status: NodeStatus): readonly string[] {
  const { validator } = status;
  const role = validator.votingPower === "0" ? "no (full node)" : `power ${validator.votingPower}`;
  const rows: readonly (readonly [string, string])[] = [
    ["node", `${status.moniker} ${status.nodeId} on ${status.network}`],
    ["height", `${status.height}, blocks from ${status.oldestHeight} on`],
    ["block age", blockAgeText(status.blockAgeSeconds)],
    ["catching up", status.catching_up ? "yes" : "no"],
    ["peers", String(status.peers)],
    ["validator", `${role}, key ${validator.address}`],
  ];
  return rows.map(([name, text]) => `  ${name.padEnd(12)} ${text}`);
}

async function ask<T>(
  url: string,
  route: string,
  schema: z.ZodType<T>,
  signal: AbortSignal,
): Promise<T> {
  const options = { signal, timeoutMs: ANSWER_TIMEOUT_MS };
  const answer = await httpRequest(routeOf(url, route), {}, options);
  let parsed: unknown;
  try {
    parsed = JSON.parse(answer.body);
  } catch {
    parsed = undefined; // Refused below with everything else that is no answer of a node.
  }
  const result = schema.safeParse(parsed);
  if (result.success) return result.data;
  const message = `${withoutAccess(url)} does not answer ${route} as a node's consensus RPC does.`;
  throw new CliError("CLIENT_FAILED", message);
}
