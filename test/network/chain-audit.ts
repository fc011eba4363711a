/** What a network decided, read from each node and compared block by block. */
import { comet, cometBatch, evmBatch } from "./calls.js";
import type { NetworkNode } from "./network.js";

/** Blocks of one request. */
const BATCH = 100;

interface Header {
  readonly header: {
    readonly height: string;
    readonly time: string;
    readonly app_hash: string;
    readonly validators_hash: string;
  };
  readonly commit: { readonly round: number; readonly block_id: { readonly hash: string } };
}

interface EvmBlock {
  readonly hash: string;
  readonly parentHash: string;
  readonly transactions: readonly string[];
}

/** One height as a node shows it. */
export interface AuditedBlock {
  readonly height: number;
  /** Hash of the consensus header. */
  readonly consensusHash: string;
  /** EVM hash of the block before, as consensus signed it; lower case. */
  readonly appHash: string;
  readonly evmHash: string;
  readonly parentHash: string;
  readonly timeMs: number;
  readonly transactions: readonly string[];
}

/** Hash of a consensus header and of the validators that it names, upper-case hex. */
export async function readHeader(
  node: NetworkNode,
  height: number,
): Promise<{ readonly hash: string; readonly validatorsHash: string }> {
  const { signed_header } = await comet<{ readonly signed_header: Header }>(
    node,
    `commit?height=${height}`,
  );
  const { header, commit } = signed_header;
  return { hash: commit.block_id.hash, validatorsHash: header.validators_hash };
}

/** Blocks `from` to `to` of one node. */
export async function readBlocks(
  node: NetworkNode,
  range: { readonly from: number; readonly to: number },
): Promise<AuditedBlock[]> {
  const blocks: AuditedBlock[] = [];
  for (let start = range.from; start <= range.to; start += BATCH) {
    const length = Math.min(BATCH, range.to - start + 1);
    const heights = Array.from({ length }, (_, index) => start + index);
    const commits = heights.map((height) => ({
      method: "commit",
      params: { height: `${height}` },
    }));
    const signed = await cometBatch<{ readonly signed_header: Header }>(node, commits);
    const bodies = await evmBatch<EvmBlock>(
      node,
      heights.map((height) => ({
        method: "eth_getBlockByNumber",
        params: [`0x${height.toString(16)}`, false],
      })),
    );
    blocks.push(
      ...heights.map((height, index) => blockOf(height, signed[index], bodies[index]?.result)),
    );
  }
  return blocks;
}

/**
 * Blocks 1 to `height`, which must be the same on all nodes; every header must name the EVM block
 * before it, and every EVM block its parent.
 */
export async function auditChain(
  nodes: readonly NetworkNode[],
  height: number,
): Promise<readonly AuditedBlock[]> {
  const [first, ...others] = await Promise.all(
    nodes.map((node) => readBlocks(node, { from: 1, to: height })),
  );
  if (first === undefined) throw new RangeError("no node");
  for (const [index, other] of others.entries()) {
    for (const [at, block] of first.entries()) {
      const twin = JSON.stringify(other[at]);
      if (JSON.stringify(block) === twin) continue;
      const name = nodes[index + 1]?.name;
      throw new Error(`fork at ${at + 1}: ${JSON.stringify(block)}, on ${name} ${twin}`);
    }
  }
  for (const [at, block] of first.entries()) {
    const parent = first[at - 1]?.evmHash ?? block.parentHash;
    if (block.appHash !== parent || block.parentHash !== parent) {
      throw new Error(`block ${block.height} does not follow ${parent}: ${JSON.stringify(block)}`);
    }
  }
  return first;
}

/** Hashes that are not in exactly one block, and hashes that blocks have beyond these. */
export function compareMined(
  blocks: readonly AuditedBlock[],
  accepted: readonly string[],
): { readonly lost: readonly string[]; readonly repeated: readonly string[] } {
  const counts = new Map<string, number>();
  for (const hash of blocks.flatMap(({ transactions }) => transactions)) {
    counts.set(hash, (counts.get(hash) ?? 0) + 1);
  }
  return {
    lost: accepted.filter((hash) => !counts.has(hash)),
    repeated: [...counts].flatMap(([hash, count]) => (count > 1 ? [hash] : [])),
  };
}

/** How evenly blocks follow each other, milliseconds. */
export interface Pace {
  readonly meanMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly deviationMs: number;
  /** Mean of the second half less the mean of the first: it grows when nodes get slower. */
  readonly driftMs: number;
}

/** Distances between the times of blocks that follow each other. */
export function paceOf(blocks: readonly AuditedBlock[]): Pace {
  const intervals = blocks.slice(1).map(({ timeMs }, at) => timeMs - (blocks[at]?.timeMs ?? 0));
  const sorted = intervals.toSorted((left, right) => left - right);
  const half = Math.floor(intervals.length / 2);
  const meanMs = mean(intervals);
  return {
    meanMs,
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    deviationMs: Math.sqrt(mean(intervals.map((one) => (one - meanMs) ** 2))),
    driftMs: mean(intervals.slice(half)) - mean(intervals.slice(0, half)),
  };
}

/** One line of text. */
export function paceText(pace: Pace): string {
  const { meanMs, p50Ms, p99Ms, deviationMs, driftMs } = pace;
  const [exact, drift] = [meanMs, driftMs].map((value) => value.toFixed(1));
  const spread = `p50 ${p50Ms}, p99 ${p99Ms}, deviation ${Math.round(deviationMs)}`;
  return `blocks every ${exact} ms (${spread}, second half ${drift} slower)`;
}

/** The value below which a part of the sorted values lies. */
export function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, one) => sum + one, 0) / values.length;
}

function blockOf(
  height: number,
  signed: { readonly signed_header: Header } | undefined,
  body: EvmBlock | undefined,
): AuditedBlock {
  if (signed === undefined || body === undefined) throw new Error(`no block ${height}`);
  const { header, commit } = signed.signed_header;
  return {
    height,
    consensusHash: commit.block_id.hash,
    appHash: `0x${header.app_hash.toLowerCase()}`,
    evmHash: body.hash,
    parentHash: body.parentHash,
    timeMs: Date.parse(header.time),
    transactions: body.transactions,
  };
}
