/**
 * The nodes of a kit: one in the kit's own home, or a network of validators in `<home>/nodes`,
 * whose first serves the kit's ports. How many there are is decided when the chain is made.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { loadGenesis } from "../node/genesis.js";
import { homePaths } from "./home.js";
import { PORT_STEP } from "./testnet.js";

/** Most validators of a kit: they share one machine, and their ports lie 100 apart. */
export const MAX_KIT_VALIDATORS = 16;

/** One node of a kit. */
export interface KitNode {
  /** Name of its process and of its log: `node`, or `node0`, `node1`, ... */
  readonly name: string;
  readonly home: string;
  /** Added to the kit's port offset. */
  readonly portStep: number;
}

/** Nodes of a network of that many validators, whether they exist or not. */
function plannedNodes(home: string, validators: number): readonly KitNode[] {
  if (validators === 1) return [{ name: "node", home, portStep: 0 }];
  return Array.from({ length: validators }, (_, index) => ({
    name: `node${index}`,
    home: join(nodesFolder(home), `node${index}`),
    portStep: PORT_STEP * index,
  }));
}

/**
 * Nodes of the home's chain.
 * @param wanted how many a home without a chain is going to have
 * @throws GENESIS_INVALID
 */
export function kitNodes(home: string, wanted = 1): readonly KitNode[] {
  const folder = nodesFolder(home);
  // The kit's own genesis is written last: an init that was cut off left that of the first node.
  const files = [homePaths(home).genesis, homePaths(join(folder, "node0")).genesis];
  const genesis = files.find((file) => existsSync(file));
  if (genesis === undefined) return plannedNodes(home, wanted);
  // Without the folder the genesis may be a foreign one, and this home one node of many.
  if (!existsSync(folder)) return plannedNodes(home, 1);
  return plannedNodes(home, loadGenesis(genesis).validators.length);
}

function nodesFolder(home: string): string {
  return join(home, "nodes");
}
