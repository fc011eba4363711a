/**
 * What a node needs to join a chain that exists: its genesis, and seeds to find peers by. Given by
 * whoever starts the node, else as they ship with the package. The shipped ones are placeholders
 * until a network is launched (`chain/networks.ts`): nobody holds the keys of their validators and
 * of their one account, and a chain made from anything else under a production chain id would make
 * signatures that are valid on the real one. So a placeholder is refused and never replaced.
 */
import { isDeepStrictEqual } from "node:util";
import { readFileSync } from "node:fs";
import { DEFAULT_PORTS, NETWORKS, type NetworkName } from "../../../chain/networks.js";
import { loadNodeId } from "../../../node/consensus/signing/validator-key.js";
import { CONFIG_FILE } from "../../../node/settings/config.js";
import { GenesisError, parseGenesis } from "../../../node/settings/genesis.js";
import { ConfigError, type ConfigFault } from "../../../runtime/config/config.js";
import { InvalidValueError } from "../../../runtime/config/config-values.js";
import { systemCode } from "../../errors.js";
import type { HomePaths } from "../home.js";
import { assertNoHome, writeNodeHome } from "../node-home.js";
import { createNodeKey, createValidatorKeyFile } from "../keys/validator-keys.js";

/** A chain that exists, as a new node is told of it. */
export interface NetworkSource {
  readonly network: NetworkName;
  /** Text of the genesis file. */
  readonly genesis: string;
  /** Addresses as `p2p.seeds` has them. */
  readonly seeds: readonly string[];
}

/** What was given; what is absent is taken from the package. */
export interface GivenNetwork {
  readonly network?: NetworkName | undefined;
  /** Path of a genesis file. */
  readonly genesisFile?: string | undefined;
  /** Addresses, separated by commas. */
  readonly seeds?: string | undefined;
  /** True where settings name peers already: no seeds are needed then. */
  readonly hasPeers?: boolean;
}

/** How faults name what was given: flags or variables. */
export interface GivenNames {
  /** As `ConfigFault.file`. */
  readonly file: string;
  readonly network: string;
  readonly genesis: string;
  readonly seeds: string;
}

/** Names on a command line. */
export const FLAG_NAMES: GivenNames = {
  file: "flag",
  network: "--network",
  genesis: "--genesis",
  seeds: "--seeds",
};

/** Text of the genesis file of a public network as it ships. */
export function readNetworkGenesis(network: NetworkName): string {
  return readFileSync(new URL(`../genesis/${network}.json`, import.meta.url), "utf8");
}

/**
 * Puts together what a node of a chain that exists is made from.
 * @throws ConfigError with every fault, placeholders among them
 */
export function resolveNetworkSource(given: GivenNetwork, names = FLAG_NAMES): NetworkSource {
  const faults: ConfigFault[] = [];
  const genesis = resolveGenesis(given, names, faults);
  try {
    const seeds = resolveSeeds(given, given.network ?? genesis?.network, names);
    if (genesis !== undefined) return { ...genesis, seeds };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    faults.push(...error.faults);
  }
  throw new ConfigError(faults);
}

/**
 * Reads addresses as `p2p.seeds` has them, one at least.
 * @throws ConfigError
 */
export function readSeeds(text: string, names: GivenNames): readonly string[] {
  const { seeds: setting } = CONFIG_FILE.sections.p2p;
  try {
    const seeds = setting.parse(text);
    if (seeds.length > 0) return seeds;
  } catch (error) {
    if (!(error instanceof InvalidValueError)) throw error;
  }
  const { allowed } = setting;
  const { file, seeds: key } = names;
  throw new ConfigError([{ file, key, value: JSON.stringify(text), allowed }]);
}

/** Whether two genesis texts make the same chain. */
export function isSameGenesis(left: string, right: string): boolean {
  return isDeepStrictEqual(parseGenesis(left), parseGenesis(right));
}

/**
 * Writes the home of a full node and nothing more: it finds its peers through the seeds, and
 * others may connect to it; its other ports stay on the loopback interface. Without a source it is
 * made from what ships with the package, placeholders included.
 * @returns its node id, which others write into `persistent_peers`
 * @throws HOME_EXISTS, HOME_UNUSABLE naming folder and cause
 */
export async function initNetworkHome(options: {
  readonly paths: HomePaths;
  readonly network: NetworkName;
  readonly source?: NetworkSource;
  readonly portOffset: number;
  readonly moniker: string;
}): Promise<{ readonly nodeId: string }> {
  const { paths, network, source, portOffset, moniker } = options;
  assertNoHome(paths);
  await writeNodeHome(paths, {
    genesis: source?.genesis ?? readNetworkGenesis(network),
    nodeKey: createNodeKey().text,
    validatorKey: createValidatorKeyFile(),
    portOffset,
    moniker,
    p2p: {
      laddr: { host: "0.0.0.0", port: DEFAULT_PORTS.p2p + portOffset },
      seeds: source?.seeds ?? NETWORKS[network].seeds,
    },
  });
  return { nodeId: loadNodeId(paths.nodeKey) };
}

function resolveGenesis(
  { network, genesisFile }: GivenNetwork,
  names: GivenNames,
  faults: ConfigFault[],
): Pick<NetworkSource, "network" | "genesis"> | undefined {
  const refuse = (value: string | undefined, allowed: string): undefined => {
    const shown = value === undefined ? "(not given)" : JSON.stringify(value);
    faults.push({ file: names.file, key: names.genesis, value: shown, allowed });
    return undefined;
  };
  if (genesisFile === undefined) {
    if (network === undefined) return refuse(undefined, "a genesis file, or name the network");
    if (NETWORKS[network].isLaunched) return { network, genesis: readNetworkGenesis(network) };
    return refuse(
      undefined,
      `the file of ${network}'s real genesis: the one that ships with this version is a placeholder`,
    );
  }
  try {
    const genesis = readFileSync(genesisFile, "utf8");
    const found = parseGenesis(genesis).network;
    if (network !== undefined && found !== network) {
      return refuse(genesisFile, `the genesis of ${network}, and this file is of ${found}`);
    }
    const isPlaceholder =
      !NETWORKS[found].isLaunched && isSameGenesis(genesis, readNetworkGenesis(found));
    if (isPlaceholder) {
      return refuse(genesisFile, `the real genesis of ${found}, and this file is the placeholder`);
    }
    return { network: found, genesis };
  } catch (error) {
    if (error instanceof GenesisError) return refuse(genesisFile, error.message);
    return refuse(genesisFile, `a file that can be read (${systemCode(error)})`);
  }
}

function resolveSeeds(
  { seeds: text, hasPeers = false }: GivenNetwork,
  network: NetworkName | undefined,
  names: GivenNames,
): readonly string[] {
  if (text !== undefined) return readSeeds(text, names);
  if (hasPeers) return [];
  if (network !== undefined && NETWORKS[network].isLaunched) return NETWORKS[network].seeds;
  const whose = network === undefined ? "the shipped ones" : `those of ${network} that ship`;
  const allowed = `a list of <host>:<port>; ${whose} are placeholders`;
  throw new ConfigError([{ file: names.file, key: names.seeds, value: "(not given)", allowed }]);
}
