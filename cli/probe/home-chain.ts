/** Whether the node that answers on a home's ports is of that home's chain. */
import { readFileSync } from "node:fs";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import { CliError } from "../errors.js";
import { type HomePaths, homePaths } from "../home/home.js";
import { readChainOrigin } from "../home/network/chain-origin.js";

/** What tells a node's chain from the home's, and what to do. */
export interface ForeignChain {
  readonly value: string;
  readonly remedy: string;
}

/**
 * Compares the node's chain with the home's; local chains all have one chain id.
 * @returns undefined where they are the same, or the home names none to compare with
 * @throws the client's faults where the node does not answer; HOME_UNUSABLE, HOME_INCOMPLETE
 */
export async function foreignChain(
  paths: HomePaths,
  evm: Pick<EvmClient, "genesisHash" | "getBlockHeader">,
  signal: AbortSignal,
): Promise<ForeignChain | undefined> {
  const origin = readChainOrigin(paths);
  if (origin?.kind === "remote") {
    const genesisHash = await evm.genesisHash({ signal });
    if (genesisHash === origin.genesisHash) return undefined;
    const value = `genesis ${genesisHash}, expected ${origin.genesisHash}`;
    return { value, remedy: "connect a node of this home's chain" };
  }
  // What tells chains apart without building block 0 is its time.
  const begunSeconds = genesisSeconds(paths.genesis);
  if (begunSeconds === undefined) return undefined;
  const first = await evm.getBlockHeader(0, { signal });
  if (first === undefined || first.timestampSeconds === begunSeconds) return undefined;
  const [began, ours] = [first.timestampSeconds, begunSeconds].map((seconds) =>
    new Date(seconds * 1_000).toISOString(),
  );
  return {
    value: `the node's chain began ${began}, this home's ${ours}`,
    remedy: "another home's node answers: check --home and --port-offset",
  };
}

/**
 * The same in words, about the node on a home's ports.
 * @param evm a client of that node
 * @returns undefined where nothing says so: who asks for more is told what the node does not answer
 * @throws HOME_UNUSABLE, HOME_INCOMPLETE
 */
export async function foreignReason(
  home: string,
  evm: Parameters<typeof foreignChain>[1],
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const foreign = await foreignChain(homePaths(home), evm, signal);
    return foreign === undefined ? undefined : `${foreign.value}; ${foreign.remedy}`;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CliError) throw error;
    return undefined;
  }
}

/** Time between blocks of the home's chain, ms, as its genesis has it; undefined where it has none. */
export function homeBlockIntervalMs(home: string): number | undefined {
  const params: unknown = genesisField(homePaths(home).genesis, "params");
  const intervalMs: unknown = Reflect.get(Object(params), "blockIntervalMs");
  return typeof intervalMs === "number" ? intervalMs : undefined;
}

/** Unix seconds of block 0. */
function genesisSeconds(file: string): number | undefined {
  const timeMs = genesisField(file, "genesisTimeMs");
  return typeof timeMs === "number" ? Math.floor(timeMs / 1_000) : undefined;
}

/** The file is read without its schema, which takes longer than a kit to answer. */
function genesisField(file: string, name: string): unknown {
  try {
    return Reflect.get(JSON.parse(readFileSync(file, "utf8")), name);
  } catch {
    return undefined; // No genesis, or none that can be read: whoever needs it says so.
  }
}
