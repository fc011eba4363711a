/**
 * Where the chain of a home comes from. A home that made its chain itself has no record: its faucet
 * key tells. One on a chain that exists has `config/chain.json`, written before everything else and
 * marked complete when everything else is there, so that a first start that was cut off is never
 * taken for a home of another kind.
 */
import { readFileSync } from "node:fs";
import { type Hash32, parseHash32 } from "../../../chain/hex.js";
import { NETWORKS, type NetworkName } from "../../../chain/networks.js";
import { CliError, fileCause, systemCode } from "../../errors.js";
import { createFileOnce, PLAIN_MODE, replaceFile } from "../home-file.js";
import type { HomePaths } from "../home.js";

/** A chain that existed before the home did. */
export type ChainOrigin = {
  /** While it is incomplete: settings files that somebody had put there before the first start. */
  readonly kept?: readonly string[];
} & (
  | {
      /** A node of it runs in this home, on `config/genesis.json`. */
      readonly kind: "joined";
      readonly network: NetworkName;
      readonly isComplete: boolean;
    }
  | {
      /** Somebody else's node is used; its URL is in the settings. */
      readonly kind: "remote";
      readonly network: NetworkName;
      /** Hash of block 0, as the node told it at the first start. */
      readonly genesisHash: Hash32;
      readonly isComplete: boolean;
    }
);

/**
 * The record of a home; undefined for one that made its chain itself, or has none yet.
 * @throws HOME_UNUSABLE for a file that cannot be read, HOME_INCOMPLETE for one that says nothing
 */
export function readChainOrigin(paths: HomePaths): ChainOrigin | undefined {
  let text: string;
  try {
    text = readFileSync(paths.chain, "utf8");
  } catch (cause) {
    if (systemCode(cause) === "ENOENT") return undefined;
    const message = `Cannot read ${paths.chain}: ${fileCause(cause)}.`;
    throw new CliError("HOME_UNUSABLE", message, { cause });
  }
  try {
    return parseOrigin(JSON.parse(text));
  } catch (cause) {
    const message = `${paths.chain} does not say which chain this home is on: restore it.`;
    throw new CliError("HOME_INCOMPLETE", message, { cause });
  }
}

/**
 * Writes the record of a new home; one that is there already stays.
 * @throws HOME_UNUSABLE naming folder and cause
 */
export async function createChainOrigin(paths: HomePaths, origin: ChainOrigin): Promise<void> {
  await createFileOnce(paths.chain, encode({ ...origin, isComplete: false }), PLAIN_MODE);
}

/**
 * Marks the home as complete.
 * @throws HOME_UNUSABLE naming folder and cause
 */
export async function completeChainOrigin(paths: HomePaths, origin: ChainOrigin): Promise<void> {
  const { kept: _kept, ...rest } = origin;
  await replaceFile(paths.chain, encode({ ...rest, isComplete: true }), PLAIN_MODE);
}

function parseOrigin(value: unknown): ChainOrigin {
  const fields = new Map(Object.entries(Object(value)));
  const network = Object.values(NETWORKS).find(({ name }) => name === fields.get("network"))?.name;
  const isComplete = fields.get("isComplete");
  if (network === undefined || typeof isComplete !== "boolean") throw new Error("not a record");
  const names: unknown = fields.get("kept");
  const kept = Array.isArray(names) ? { kept: names.map(String) } : {};
  if (fields.get("kind") === "joined") return { kind: "joined", network, isComplete, ...kept };
  if (fields.get("kind") !== "remote") throw new Error("no such kind");
  const genesisHash = parseHash32(String(fields.get("genesisHash")));
  return { kind: "remote", network, genesisHash, isComplete, ...kept };
}

function encode(origin: ChainOrigin): string {
  return `${JSON.stringify(origin, null, 2)}\n`;
}
