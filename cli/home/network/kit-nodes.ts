/**
 * The nodes of a kit: one in the kit's own home, or a network of validators in `<home>/nodes`,
 * whose first serves the kit's ports. How many there are is decided when the chain is made.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "../../../runtime/config/config.js";
import { CliError } from "../../errors.js";
import { readChainOrigin } from "./chain-origin.js";
import { readNewChain } from "./new-chain.js";
import { homePaths, isKitHome } from "../home.js";
import { PORT_STEP } from "../ports.js";

/** Most validators of a kit: they share one machine, and their ports lie 100 apart. */
export const MAX_KIT_VALIDATORS = 16;

/**
 * How Node runs a node. What a block is made of lives for some seconds and dies; with V8's usual
 * young generation (16 MiB) most of it is copied again and again before, which costs a fifth of
 * the process. `npm run causeway` has the same in package.json; a test compares the two.
 */
export const NODE_FLAGS: readonly string[] = ["--max-semi-space-size=32"];

/**
 * What glibc is told about the memory of a node; other systems pass it over. By itself it takes pieces
 * straight from the system only above the largest that was ever given back, up to 32 MiB, and keeps what
 * lies below: peers that send a few messages of 24 MB leave a node 170 MiB larger for ever, and 25 MiB with
 * these. Beside the flags in package.json, and in docker-compose.yml; tests compare.
 */
export const NODE_ENVIRONMENT = {
  MALLOC_MMAP_THRESHOLD_: String(1024 * 1024),
  MALLOC_TRIM_THRESHOLD_: String(16 * 1024 * 1024),
} as const;

/** How a part of a kit is run by Node: a node with the flags and variables above, set ones first. */
export function runOf(
  part: string,
  env: Environment,
): { readonly flags: readonly string[]; readonly env: Environment } {
  if (part !== "node") return { flags: [], env };
  return { flags: NODE_FLAGS, env: { ...NODE_ENVIRONMENT, ...env } };
}

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
  return plannedIn(nodesFolder(home), validators);
}

function plannedIn(folder: string, validators: number): readonly KitNode[] {
  return Array.from({ length: validators }, (_, index) => ({
    name: `node${index}`,
    home: join(folder, `node${index}`),
    portStep: PORT_STEP * index,
  }));
}

/**
 * Nodes of the home's chain; none where somebody else's node is used.
 * @param wanted how many a home without a chain is going to have
 * @throws HOME_INCOMPLETE
 */
export function kitNodes(home: string, wanted = 1): readonly KitNode[] {
  const origin = readChainOrigin(homePaths(home));
  if (wanted === 0 || origin?.kind === "remote") return [];
  const folder = nodesFolder(home);
  // The kit's own genesis is written last: an init that was cut off left that of the first node.
  const files = [homePaths(home).genesis, homePaths(join(folder, "node0")).genesis];
  const genesis = files.find((file) => existsSync(file));
  if (genesis === undefined) {
    const begun = countNodesOfChain(folder) ?? readNewChain(homePaths(home))?.validators;
    return plannedNodes(home, begun ?? wanted);
  }
  // Without the folder the genesis may be a foreign one, and this home one node of many.
  if (!existsSync(folder)) return plannedNodes(home, 1);
  return plannedNodes(home, countValidators(genesis));
}

/** Whose settings are read, and by how much their ports are moved. */
export interface NodeSources {
  readonly home: string;
  readonly env: Environment;
  readonly portOffset: number;
}

/**
 * Where the settings are of the node that answers for a home: in that home, or, of a kit with a network of
 * validators, in that of the first of them.
 * @throws HOME_INCOMPLETE
 */
export function firstNodeOf({ home, env, portOffset }: NodeSources): NodeSources {
  const [first] = isKitHome(homePaths(home)) ? kitNodes(home) : [];
  if (first === undefined) return { home, env, portOffset };
  return { home: first.home, env, portOffset: portOffset + first.portStep };
}

/**
 * Validators of a genesis file that the kit wrote. Only they are looked at: every command asks this,
 * and the nodes check the rest.
 */
function countValidators(file: string): number {
  let validators: unknown;
  try {
    validators = Reflect.get(Object(JSON.parse(readFileSync(file, "utf8"))), "validators");
  } catch {
    validators = undefined; // Unreadable: refused below with everything else that is no genesis.
  }
  if (Array.isArray(validators) && validators.length > 0) return validators.length;
  const message = `${file} is no genesis with validators: restore it from a backup.`;
  throw new CliError("HOME_INCOMPLETE", message);
}

/** Nodes of a network of which one has a chain; behind an init that was cut off some are not made yet. */
function countNodesOfChain(folder: string): number | undefined {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const indexes = names.flatMap((name) => /^node(\d{1,2})$/.exec(name)?.[1] ?? []).map(Number);
  const nodes = plannedIn(folder, Math.max(1, ...indexes) + 1);
  return nodes.some(({ home }) => existsSync(homePaths(home).store)) ? nodes.length : undefined;
}

function nodesFolder(home: string): string {
  return join(home, "nodes");
}
