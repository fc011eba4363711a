/** `causeway testnet`: the homes of a network of its own. */
import { isIP } from "node:net";
import { resolve } from "node:path";
import { toChecksumAddress } from "../../chain/address.js";
import { systemClock } from "../../runtime/process/clock.js";
import { MAX_PORT_OFFSET } from "../../runtime/config/config.js";
import { parsePortOffset } from "../../runtime/process/process-arguments.js";
import { type CommandContext, printJson } from "../command-context.js";
import { CliError, sentenceOf } from "../errors.js";
import { shellWord } from "../shell-word.js";
import { parseBlockInterval } from "../supervisor/kit-arguments.js";
import { nodePorts } from "../home/node-home.js";
import { PORT_STEP } from "../home/ports.js";
import { parseParamFlags } from "./param-flags.js";
import { createTestnet, type Testnet, type TestnetOptions } from "../home/network/testnet.js";

/** Most nodes of each kind: one host cannot run more, and validators sign every commit. */
const MAX_NODES = 100;

const HOST_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/;

/** The flags of `causeway testnet`, as text. */
export interface TestnetFlags {
  readonly validators: string;
  readonly fullNodes?: string;
  readonly out?: string;
  /** Another word for `out`. */
  readonly home?: string;
  readonly portOffset?: string;
  readonly hosts?: string;
  readonly blockIntervalMs?: string;
  readonly param?: readonly string[];
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
  const modules = read(() => parseParamFlags(flags.param ?? []), undefined);
  const count = validators + fullNodes;
  const hosts = read(
    () => (flags.hosts === undefined ? undefined : parseHosts(flags.hosts, count)),
    undefined,
  );
  const highest = portOffset + PORT_STEP * (count - 1);
  if (flags.hosts === undefined && highest > MAX_PORT_OFFSET) {
    faults.push(`--port-offset ${portOffset} puts ports of the last node above 65535`);
  }
  const out = read(() => folderOf(flags), "");
  if (faults.length > 0) throw new CliError("USAGE", `${faults.join("; ")}.`);
  const options = { out, validators, fullNodes, portOffset, hosts, blockIntervalMs };
  return modules === undefined ? options : { ...options, modules };
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

function describeTestnet(testnet: Testnet): readonly string[] {
  const { nodes, out, faucetAddress, faucetKeyFile } = testnet;
  const validators = nodes.filter(({ isValidator }) => isValidator).length;
  const others = nodes.length - validators;
  return [
    `A network is written: ${out} (validators: ${validators}, full nodes: ${others})`,
    ...nodes.map(({ name, nodeId, portOffset }) => {
      const { p2p, cometRpc, jsonRpc, webSocket, metrics, rest, grpc } = nodePorts(portOffset);
      const ports = `p2p ${p2p}, rpc ${cometRpc}, evm ${jsonRpc} and ${webSocket}`;
      const more = `rest ${rest}, grpc ${grpc}, metrics ${metrics}`;
      return `  ${name.padEnd(8)} ${nodeId}  ${ports}, ${more}`;
    }),
    `  faucet   ${toChecksumAddress(faucetAddress)}, key in ${faucetKeyFile}`,
    `Start each with: npm run causeway -- start --home ${shellWord(nodes[0]?.home ?? out)}`,
  ];
}

/** A variable of the environment does not count: homes with keys are written where it was typed. */
function folderOf({ home, out = home }: TestnetFlags): string {
  if (out === undefined || out === "") throw new CliError("USAGE", "--out needs a folder.");
  if (home === undefined || resolve(home) === resolve(out)) return out;
  throw new CliError("USAGE", `--out ${out} and --home ${home} name different folders.`);
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
