/** `causeway init`: the home of a kit, or of a network's full node. */
import assert from "node:assert/strict";
import { toChecksumAddress } from "../../chain/address.js";
import { NETWORKS, type NetworkName } from "../../chain/networks.js";
import { systemClock } from "../../runtime/process/clock.js";
import { type CommandContext, printJson } from "../command-context.js";
import { CliError } from "../errors.js";
import { type ChainFlags, planChain } from "../home/network/attach.js";
import { createHomeFolders, type HomePaths, homePaths } from "../home/home.js";
import { lockHome } from "../home/home-lock.js";
import {
  type AttachedInitOptions,
  blockIntervalOf,
  initAttachedHome,
  initHome,
  isInitialised,
} from "../home/init.js";
import { KIT_CONFIG_FILES } from "../home/kit-config.js";
import { initNetworkHome, resolveNetworkSource } from "../home/network/network-source.js";
import { assertNoHome, nodePorts } from "../home/node-home.js";
import { writeRoleHomes } from "../home/role-homes.js";
import { assertNodeOfPlan, inspectNode } from "../probe/node-inspection.js";
import type { ModuleParams } from "../../node/settings/module-params.js";
import { parseBlockInterval } from "../supervisor/kit-arguments.js";
import { shellWord } from "../shell-word.js";
import { parseParamFlags } from "./param-flags.js";

/** Flags of `causeway init`. */
export interface InitFlags {
  readonly network?: string;
  readonly moniker?: string;
  readonly blockIntervalMs?: string;
  readonly roleHomes?: string;
  readonly param?: readonly string[];
  readonly genesis?: string;
  readonly seeds?: string;
  readonly nodeUrl?: string;
  readonly nodeWsUrl?: string;
}

/** `causeway init`: a network's node gets a full node's home, everything else is the kit's. */
export async function runInitCommand(context: CommandContext, own: InitFlags): Promise<number> {
  const { blockIntervalMs, roleHomes, moniker, genesis, seeds } = own;
  const isKits = own.nodeUrl !== undefined || own.nodeWsUrl !== undefined;
  const hasParams = own.param !== undefined && own.param.length > 0;
  const assertNoParams = () => {
    if (!hasParams) return;
    throw new CliError("USAGE", "--param belongs to a new local chain.");
  };
  const assertNoMoniker = () => {
    if (moniker === undefined) return;
    const message = "--moniker names a full node, with --network mainnet or testnet or --genesis.";
    throw new CliError("USAGE", message);
  };
  if (isKits) {
    assertNoParams();
    assertNoMoniker();
    return runInitRemote(context, own);
  }
  const network = own.network === undefined ? undefined : parseNetworkFlag(own.network);
  if (network === "local" && (genesis !== undefined || seeds !== undefined)) {
    throw new CliError("USAGE", "--genesis and --seeds belong to a network that exists.");
  }
  const isOnNetwork = genesis !== undefined || (network !== undefined && network !== "local");
  if (seeds !== undefined && !isOnNetwork) {
    throw new CliError("USAGE", "--seeds needs --network or --genesis.");
  }
  if (network === "local" || !isOnNetwork) {
    assertNoMoniker();
    // Who names a network wants a new home; without the flag a complete one is only checked.
    if (network !== undefined) assertNoHome(homePaths(context.home));
    return runInit(context, {
      blockIntervalMs:
        blockIntervalMs === undefined ? undefined : parseBlockInterval(blockIntervalMs),
      roleHomes,
      modules: hasParams ? parseParamFlags(own.param) : undefined,
    });
  }
  assertNoParams();
  if (blockIntervalMs !== undefined || roleHomes !== undefined) {
    const message = "--block-interval-ms and --role-homes belong to a local chain.";
    throw new CliError("USAGE", message);
  }
  return runInitNetwork(context, { network, genesis, seeds, moniker });
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

/**
 * Makes the kit's home on a local chain, or completes it; a complete one, also one on a chain that
 * exists, is left as it is.
 */
export async function runInit(
  context: CommandContext,
  options: {
    readonly blockIntervalMs?: number;
    readonly roleHomes?: string;
    readonly modules?: ModuleParams | undefined;
  },
): Promise<number> {
  const paths = homePaths(context.home);
  const plan = planChain({}, paths, context.env);
  const isOld = plan.kind !== "local" || (await isInitialised(paths));
  if (options.modules !== undefined && isOld) {
    const text = `${paths.home} has a chain: --param changes the genesis of a new one only.`;
    throw new CliError("HOME_EXISTS", text);
  }
  const intervalMs = plan.kind === "local" ? blockIntervalOf(paths) : undefined;
  const wantedMs = options.blockIntervalMs;
  if (wantedMs !== undefined && isOld && wantedMs !== intervalMs) {
    const text = `${paths.home} has a chain: --block-interval-ms belongs to a new one only.`;
    throw new CliError("HOME_EXISTS", text);
  }
  if (plan.kind !== "local") {
    return writeAttachedHome(context, { plan, node: undefined, roleHomes: options.roleHomes });
  }
  await createHomeFolders(paths);
  const lock = await lockHome(paths.lock, paths.home);
  try {
    const result = await initHome({
      paths,
      portOffset: context.portOffset,
      network: "testnet",
      blockIntervalMs: options.blockIntervalMs,
      modules: options.modules,
      configFiles: KIT_CONFIG_FILES,
      clock: systemClock,
    });
    const notWritten = await roleHomesOf(paths, options);
    if (context.json) {
      printJson(context, { home: paths.home, ...result, notWritten });
      return 0;
    }
    const words = result.created ? "A new home is written" : "The home is complete already";
    context.print(`${words}: ${paths.home}`);
    context.print(`  faucet      ${toChecksumAddress(result.faucetAddress)}`);
    context.print(`  hot wallet  ${toChecksumAddress(result.hotWalletAddress)}`);
    for (const line of missingLines(notWritten)) context.print(line);
    return 0;
  } finally {
    await lock.release();
  }
}

/** Flags of `causeway init` for a kit on somebody's node. */
interface RemoteInitFlags extends ChainFlags {
  readonly blockIntervalMs?: string;
  readonly roleHomes?: string;
}

/**
 * `causeway init --node-url`: the kit's home without a node; the node is asked which chain it is of.
 * @throws ConfigError, SERVICE_UNREACHABLE, NODE_UNFIT, NODE_FOREIGN, HOME_EXISTS
 */
async function runInitRemote(context: CommandContext, flags: RemoteInitFlags): Promise<number> {
  const { env, signal } = context;
  const paths = homePaths(context.home);
  if (flags.blockIntervalMs !== undefined) {
    throw new CliError("USAGE", "--block-interval-ms belongs to a local chain.");
  }
  const { network, genesis, seeds, nodeUrl, nodeWsUrl } = flags;
  const plan = planChain({ network, genesis, seeds, nodeUrl, nodeWsUrl }, paths, env);
  assert(plan.kind === "remote" && plan.node !== undefined, "the flags name a node");
  const node = await inspectNode(plan.node.url, signal);
  assertNodeOfPlan(node, plan, plan.node.url);
  return writeAttachedHome(context, { plan, node, roleHomes: flags.roleHomes });
}

/** The homes of single processes, where they are wanted. @returns what they lack and were not given */
async function roleHomesOf(
  paths: HomePaths,
  { roleHomes }: { readonly roleHomes?: string | undefined },
): Promise<readonly string[]> {
  return roleHomes === undefined ? [] : writeRoleHomes(paths, roleHomes);
}

/** What a person does about files that only the first start writes. */
function missingLines(names: readonly string[]): readonly string[] {
  return names.map(
    (name) =>
      `  missing     ${name}: the copy of the first day would undo what came after it; ` +
      "put it back from a backup, or leave it where it was taken away on purpose " +
      "(homes of before it have none: the worker makes its own, copy that one)",
  );
}

/** Writes or checks the kit's home on a chain that exists. */
async function writeAttachedHome(
  context: CommandContext,
  options: Pick<AttachedInitOptions, "plan" | "node"> & { readonly roleHomes?: string | undefined },
): Promise<number> {
  const { portOffset } = context;
  const { plan, node, roleHomes } = options;
  const paths = homePaths(context.home);
  await createHomeFolders(paths);
  const lock = await lockHome(paths.lock, paths.home);
  try {
    const { created, hotWalletAddress } = await initAttachedHome({ paths, portOffset, plan, node });
    const notWritten = await roleHomesOf(paths, { roleHomes });
    const network = node?.network ?? plan.network;
    if (context.json) {
      printJson(context, { home: paths.home, created, network, hotWalletAddress, notWritten });
      return 0;
    }
    const words = created ? "A new home is written" : "The home is complete already";
    context.print(`${words}: ${paths.home}, on ${network}`);
    context.print(`  hot wallet  ${toChecksumAddress(hotWalletAddress)}`);
    for (const line of missingLines(notWritten)) context.print(line);
    return 0;
  } finally {
    await lock.release();
  }
}

/**
 * `causeway init --network mainnet|testnet`: the home of a full node, never over another home, on
 * the genesis and seeds that are given, else on those of the package, placeholders as they may be.
 */
async function runInitNetwork(
  context: CommandContext,
  options: {
    readonly network: NetworkName | undefined;
    readonly genesis?: string | undefined;
    readonly seeds?: string | undefined;
    readonly moniker: string | undefined;
  },
): Promise<number> {
  const { portOffset } = context;
  const { genesis: genesisFile, seeds, moniker = "causeway" } = options;
  const paths = homePaths(context.home);
  const isGiven = genesisFile !== undefined || seeds !== undefined;
  const given = { network: options.network, genesisFile, seeds };
  const source = isGiven ? resolveNetworkSource(given) : undefined;
  const network = source?.network ?? options.network;
  assert(network !== undefined, "either a network or a genesis is named");
  const { nodeId } = await initNetworkHome({ paths, network, source, portOffset, moniker });
  const isPlaceholder = source === undefined && !NETWORKS[network].isLaunched;
  if (context.json) {
    const ports = nodePorts(portOffset);
    printJson(context, { home: paths.home, network, nodeId, ports, isPlaceholder });
    return 0;
  }
  context.print(`A full node's home on ${network} is written: ${paths.home}`);
  context.print(`  node id  ${nodeId}`);
  context.print(`  seeds    ${(source?.seeds ?? NETWORKS[network].seeds).join(", ")}`);
  if (isPlaceholder) {
    context.print("  Genesis and seeds of this version are placeholders: no peer will be found.");
    context.print("  Give the real ones with --genesis FILE --seeds LIST, for another home.");
  }
  context.print(`Start it with: npm run causeway -- start --home ${shellWord(paths.home)}`);
  return 0;
}
