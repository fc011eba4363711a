/** `causeway init --network`, `testnet`, and `status` of a node's home. */
import { isIP } from "node:net";
import { toChecksumAddress } from "../chain/address.js";
import { NETWORKS, type NetworkName } from "../chain/networks.js";
import { systemClock } from "../runtime/clock.js";
import { MAX_PORT_OFFSET } from "../runtime/config.js";
import { parsePortOffset } from "../runtime/lifecycle.js";
import { type CommandContext, printJson } from "./command-context.js";
import { CliError, sentenceOf } from "./errors.js";
import { homePaths } from "./home.js";
import { initNetworkHome } from "./init-network.js";
import { parseBlockInterval } from "./kit-arguments.js";
import { nodePorts } from "./node-home.js";
import { cometRpcUrl, formatNodeStatus, readNodeStatus } from "./node-status.js";
import { createTestnet, PORT_STEP, type Testnet, type TestnetOptions } from "./testnet.js";

/** Most nodes of each kind: one host cannot run more, and validators sign every commit. */
const MAX_NODES = 100;

const HOST_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/;

/** The flags of `causeway testnet`, as text. */
export interface TestnetFlags {
  readonly validators: string;
  readonly fullNodes?: string;
  readonly out: string;
  readonly portOffset?: string;
  readonly hosts?: string;
  readonly blockIntervalMs?: string;
}

/**
 * The value of `--network`: a public network, or `local` for a chain of one's own.
 * @throws USAGE
 */
export function parseNetworkFlag(text: string): NetworkName | "local" {
  if (text === "local") return text;
  const network = Object.values(NETWORKS).find(({ name }) => name === text)?.name;
  if (network !== undefined) return network;
  throw new CliError("USAGE", `--network must be mainnet, testnet or local, not "${text}".`);
}

/** `causeway init --network mainnet|testnet`: the home of a full node, never over another home. */
export async function runInitNetwork(
  context: CommandContext,
  options: { readonly network: NetworkName; readonly moniker: string },
): Promise<number> {
  const { portOffset } = context;
  const { network } = options;
  const paths = homePaths(context.home);
  const { nodeId } = await initNetworkHome({ paths, portOffset, ...options });
  if (context.json) {
    printJson(context, { home: paths.home, network, nodeId, ports: nodePorts(portOffset) });
    return 0;
  }
  context.print(`A full node's home on ${network} is written: ${paths.home}`);
  context.print(`  node id  ${nodeId}`);
  context.print(`  seeds    ${NETWORKS[network].seeds.join(", ")}`);
  context.print(`Start it with: npm run causeway -- start --home ${paths.home}`);
  return 0;
}

/**
 * Reads the flags of `causeway testnet`.
 * @throws USAGE naming every fault
 */
export function parseTestnetFlags(flags: TestnetFlags): Omit<TestnetOptions, "clock"> {
  const faults: string[] = [];
  const read = <T>(parse: () => T, otherwise: T): T => {
    try {
      return parse();
    } catch (error) {
      faults.push(sentenceOf(error).replace(/\.$/, ""));
      return otherwise;
    }
  };
  const validators = read(() => parseCount("--validators", flags.validators, 1), 1);
  const fullNodes = read(() => parseCount("--full-nodes", flags.fullNodes ?? "0", 0), 0);
  const portOffset = read(() => parsePortOffset(flags.portOffset ?? "0"), 0);
  const interval = flags.blockIntervalMs;
  const blockIntervalMs = read(
    () => (interval === undefined ? undefined : parseBlockInterval(interval)),
    undefined,
  );
  const count = validators + fullNodes;
  const hosts = read(
    () => (flags.hosts === undefined ? undefined : parseHosts(flags.hosts, count)),
    undefined,
  );
  const highest = portOffset + PORT_STEP * (count - 1);
  if (flags.hosts === undefined && highest > MAX_PORT_OFFSET) {
    faults.push(`--port-offset ${portOffset} puts ports of the last node above 65535`);
  }
  if (faults.length > 0) throw new CliError("USAGE", `${faults.join("; ")}.`);
  return { out: flags.out, validators, fullNodes, portOffset, hosts, blockIntervalMs };
}

/** `causeway testnet`: writes the homes of a whole network. */
export async function runTestnet(context: CommandContext, flags: TestnetFlags): Promise<number> {
  const testnet = await createTestnet({ ...parseTestnetFlags(flags), clock: systemClock });
  if (context.json) {
    const nodes = testnet.nodes.map((node) => ({ ...node, ports: nodePorts(node.portOffset) }));
    printJson(context, { ...testnet, nodes });
    return 0;
  }
  for (const line of describeTestnet(testnet)) context.print(line);
  return 0;
}

/** `causeway status` of a node's home: 0 when it answers and has caught up, else 1. */
export async function runNodeStatus(context: CommandContext): Promise<number> {
  const url = cometRpcUrl(context);
  const { signal } = context;
  try {
    const status = await readNodeStatus(url, { clock: systemClock, signal });
    const ready = !status.catching_up;
    if (context.json) printJson(context, { ready, url, ...status });
    else for (const line of formatNodeStatus(status)) context.print(line);
    return ready ? 0 : 1;
  } catch (error) {
    signal.throwIfAborted();
    const reason = sentenceOf(error);
    if (context.json) printJson(context, { ready: false, url, reason });
    else context.print(`The node at ${url} does not answer: ${reason}`);
    return 1;
  }
}

function describeTestnet(testnet: Testnet): readonly string[] {
  const { nodes, out, faucetAddress, faucetKeyFile } = testnet;
  const validators = nodes.filter(({ isValidator }) => isValidator).length;
  const others = nodes.length - validators;
  return [
    `A network is written: ${out} (validators: ${validators}, full nodes: ${others})`,
    ...nodes.map(({ name, nodeId, portOffset }) => {
      const { p2p, cometRpc, jsonRpc, webSocket, metrics } = nodePorts(portOffset);
      const ports = `p2p ${p2p}, rpc ${cometRpc}, evm ${jsonRpc} and ${webSocket}`;
      return `  ${name.padEnd(8)} ${nodeId}  ${ports}, metrics ${metrics}`;
    }),
    `  faucet   ${toChecksumAddress(faucetAddress)}, key in ${faucetKeyFile}`,
    `Start each with: npm run causeway -- start --home ${nodes[0]?.home ?? out}`,
  ];
}

function parseCount(flag: string, text: string, min: number): number {
  const value = /^[0-9]{1,4}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= MAX_NODES) return value;
  const allowed = `a whole number from ${min} to ${MAX_NODES}`;
  throw new CliError("USAGE", `${flag} must be ${allowed}, not "${text}".`);
}

/** Names or addresses, one per node; IPv6 in brackets, as everywhere before a port. */
function parseHosts(text: string, count: number): readonly string[] {
  const hosts = text.split(",").map((host) => host.trim());
  const wrong = hosts.find((host) => !isHost(host));
  if (wrong !== undefined) {
    throw new CliError("USAGE", `--hosts names "${wrong}", which is no host name or address.`);
  }
  if (hosts.length !== count || new Set(hosts).size !== count) {
    const message = `--hosts must name ${count} different hosts, one per node, not "${text}".`;
    throw new CliError("USAGE", message);
  }
  return hosts;
}

function isHost(host: string): boolean {
  const inner = /^\[(.+)\]$/.exec(host)?.[1];
  return inner === undefined ? HOST_NAME.test(host) : isIP(inner) === 6;
}
