/** A kit whose chain is decided by several validators: their homes, and who their peers are. */
import { readFile } from "node:fs/promises";
import { DEFAULT_PORTS } from "../../../chain/networks.js";
import { CONFIG_FILE } from "../../../node/settings/config.js";
import {
  loadNodeId,
  parseValidatorIdentity,
} from "../../../node/consensus/signing/validator-key.js";
import type { GenesisValidator } from "../../../node/settings/genesis.js";
import {
  type Environment,
  environmentName,
  loadConfig,
  readPortOffset,
} from "../../../runtime/config/config.js";
import { formatListenAddress } from "../../../runtime/config/config-values.js";
import { createFileOnce, SECRET_MODE } from "../home-file.js";
import { createNodeFolders, homePaths } from "../home.js";
import { callableHost } from "../kit-config.js";
import type { KitNode } from "./kit-nodes.js";
import { createOperator } from "../keys/operator-key.js";
import { writeNodeHome } from "../node-home.js";
import { VALIDATOR_STAKE } from "./testnet.js";
import { createNodeKey, createValidatorKeyFile } from "../keys/validator-keys.js";

/**
 * The validators' keys, made where they are missing.
 * @throws HOME_UNUSABLE naming folder and cause, KEY_FILE_INVALID
 */
export async function createNetworkKeys(
  nodes: readonly KitNode[],
): Promise<readonly GenesisValidator[]> {
  const validators: GenesisValidator[] = [];
  for (const node of nodes) {
    const paths = homePaths(node.home);
    await createNodeFolders(paths);
    await createFileOnce(paths.validatorKey, createValidatorKeyFile(), SECRET_MODE);
    await createFileOnce(paths.nodeKey, createNodeKey().text, SECRET_MODE);
    const text = await readFile(paths.validatorKey, "utf8");
    const identity = parseValidatorIdentity(text, paths.validatorKey);
    const operator = await createOperator(paths);
    validators.push({ ...identity, power: VALIDATOR_STAKE, operator, moniker: node.name });
  }
  return validators;
}

/**
 * Completes the validators' homes around their keys.
 * @returns the genesis of all: that of an earlier call which was cut off, where there was one
 * @throws HOME_UNUSABLE naming folder and cause
 */
export async function writeNetworkHomes(
  nodes: readonly KitNode[],
  options: { readonly genesis: string; readonly portOffset: number },
): Promise<string> {
  const { portOffset } = options;
  const addresses = nodes.map(({ home, portStep }) => {
    const nodeId = loadNodeId(homePaths(home).nodeKey);
    return `${nodeId}@127.0.0.1:${DEFAULT_PORTS.p2p + portOffset + portStep}`;
  });
  let { genesis } = options;
  for (const node of nodes) {
    const paths = homePaths(node.home);
    await writeNodeHome(paths, {
      genesis,
      nodeKey: await readFile(paths.nodeKey, "utf8"),
      validatorKey: await readFile(paths.validatorKey, "utf8"),
      portOffset: portOffset + node.portStep,
      moniker: node.name,
      p2p: { persistent_peers: addresses, pex: false },
    });
    // The first file that was written counts: all nodes have to agree on the genesis time.
    genesis = await readFile(paths.genesis, "utf8");
  }
  return genesis;
}

/**
 * Environment of a node: where the kit moved its ports away from those in the files, the peers'
 * addresses move with them.
 */
export function nodeEnvironment(
  nodes: readonly KitNode[],
  own: KitNode,
  sources: { readonly env: Environment; readonly portOffset: number },
): Environment {
  const { env, portOffset } = sources;
  const ownOffset = portOffset + own.portStep;
  const isMoved = readPortOffset(own.home, [CONFIG_FILE.name]) !== ownOffset;
  if (nodes.length === 1 || !isMoved) return env;
  const peers = nodes.map(({ home, portStep }) => {
    const offset = { home, env, portOffset: portOffset + portStep };
    const { host, port } = loadConfig(offset, CONFIG_FILE).p2p.laddr;
    const address = formatListenAddress({ host: callableHost(host), port });
    return `${loadNodeId(homePaths(home).nodeKey)}@${address}`;
  });
  const variable = environmentName(CONFIG_FILE.name, "p2p.persistent_peers");
  return { ...env, [variable]: peers.join(",") };
}
