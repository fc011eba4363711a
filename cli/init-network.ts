/**
 * A home on one of the two public networks: a full node's keys and settings around the genesis
 * that ships with the package. The files under `genesis/` are placeholders, as the seeds' zone is:
 * nobody holds the keys of their validators and of their one account. Whoever launches a network
 * replaces them, and the seeds in `chain/networks.ts`.
 */
import { readFile } from "node:fs/promises";
import { DEFAULT_PORTS, NETWORKS, type NetworkName } from "../chain/networks.js";
import { loadNodeId } from "../node/consensus/validator-key.js";
import type { HomePaths } from "./home.js";
import { assertNoHome, writeNodeHome } from "./node-home.js";
import { createNodeKey, createValidatorKeyFile } from "./validator-keys.js";

/** Text of the genesis file of a public network. */
export function readNetworkGenesis(network: NetworkName): Promise<string> {
  return readFile(new URL(`./genesis/${network}.json`, import.meta.url), "utf8");
}

/**
 * Writes the home of a full node: it finds its peers through the network's seeds, and others may
 * connect to it; its other ports stay on the loopback interface.
 * @returns its node id, which others write into `persistent_peers`
 * @throws HOME_EXISTS, HOME_UNUSABLE naming folder and cause
 */
export async function initNetworkHome(options: {
  readonly paths: HomePaths;
  readonly network: NetworkName;
  readonly portOffset: number;
  readonly moniker: string;
}): Promise<{ readonly nodeId: string }> {
  const { paths, network, portOffset, moniker } = options;
  assertNoHome(paths);
  await writeNodeHome(paths, {
    genesis: await readNetworkGenesis(network),
    nodeKey: createNodeKey().text,
    validatorKey: createValidatorKeyFile(),
    portOffset,
    moniker,
    p2p: {
      laddr: { host: "0.0.0.0", port: DEFAULT_PORTS.p2p + portOffset },
      seeds: NETWORKS[network].seeds,
    },
  });
  return { nodeId: loadNodeId(paths.nodeKey) };
}
