/**
 * Executes stored blocks again and compares: the walk from block to block, with the chain of
 * headers and the supply that go on from one to the next.
 */
import type { Hash32, Height } from "../../chain/hex.js";
import type { Genesis } from "../../node/settings/genesis.js";
import type { AuditNode } from "./audit-node.js";
import { BlockAudit, type SupplyBefore } from "./block-audit.js";
import { type AuditedHeader, parseRawBlock, parseRawHeader, SupplyRange } from "./chain-rules.js";
import { AuditError, type Difference } from "./errors.js";
import { genesisDifference, genesisSupply } from "./genesis-audit.js";

/** Headers that code can ask for by BLOCKHASH. */
const ANCESTORS = 256;

/** What is audited. */
export interface ExecutionAuditOptions {
  readonly node: AuditNode;
  readonly genesis: Genesis;
  /** First block, 1 or more, and last block, both included. */
  readonly from: Height;
  readonly to: Height;
  /** Hash that the last block must have, for whoever knows it. */
  readonly trustedHash: Hash32 | undefined;
  readonly onProgress: (progress: AuditProgress) => void;
  readonly signal: AbortSignal;
}

/** Where the walk is. */
export interface AuditProgress {
  readonly height: Height;
  readonly to: Height;
  readonly transactions: number;
}

/** What came of it. */
export interface AuditReport {
  readonly from: Height;
  /** Last block that was looked at: where the difference is, or the last one. */
  readonly to: Height;
  readonly lastHash: Hash32;
  readonly blocks: number;
  /** EVM transactions that were executed again. */
  readonly transactions: number;
  /** Not executed: what they moved is taken as the node says, and only held against the state root. */
  readonly cosmosTransactions: number;
  readonly logs: number;
  readonly gasUsed: bigint;
  /** Proofs of accounts and slots that the state was read through. */
  readonly proofs: number;
  /** True when the supply was followed from genesis and the headers' commitment to it checked. */
  readonly isSupplyExact: boolean;
  readonly difference: Difference | undefined;
}

/**
 * Walks over the range.
 * @throws BAD_RANGE, STATE_UNPROVEN, NODE_REFUSED and the client's errors
 */
export async function auditExecution(options: ExecutionAuditOptions): Promise<AuditReport> {
  const { node, genesis, from, to, signal } = options;
  const headers = new HeaderChain(node);
  let parent = await headers.startAt(from - 1);
  const { evmChainId: chainId, params: accounts } = genesis;
  const blockHash = (height: number) => headers.hashOf(height);
  const audit = await BlockAudit.create({ node, chainId, accounts, blockHash, signal });
  const isFromGenesis = from === 1;
  let supply = isFromGenesis ? supplyFromGenesis(genesis) : undefined;
  const sums = { blocks: 0, transactions: 0, logs: 0, gasUsed: 0n };
  let difference = isFromGenesis ? await genesisDifference(parent, options) : undefined;
  for (let height = from; height <= to && difference === undefined; height++) {
    signal.throwIfAborted();
    const block = parseRawBlock(await node.rawBlock(height));
    supply ??= await supplyFromMint(node, block.header);
    const verdict = await audit.run(block, parent, supply);
    parent = block.header;
    headers.add(block.header);
    sums.blocks++;
    sums.transactions += block.transactions.length;
    options.onProgress({ height, to, transactions: sums.transactions });
    if ("difference" in verdict) {
      difference = verdict.difference;
      continue;
    }
    sums.gasUsed += verdict.agreed.gasUsed;
    sums.logs += verdict.agreed.logs;
    supply = { range: supply.range, totals: verdict.agreed.totals };
  }
  return {
    from,
    to: parent.height,
    lastHash: parent.hash,
    ...sums,
    cosmosTransactions: audit.cosmosTransactions,
    proofs: audit.fetchedProofs,
    isSupplyExact: supply?.totals !== undefined,
    difference: difference ?? strangeEnd(parent, options.trustedHash),
  };
}

function strangeEnd(
  { height, hash }: AuditedHeader,
  trustedHash: Hash32 | undefined,
): Difference | undefined {
  if (trustedHash === undefined || trustedHash === hash) return undefined;
  return { height, transaction: undefined, field: "hash", chain: hash, audit: trustedHash };
}

function supplyFromGenesis(genesis: Genesis): SupplyBefore {
  const totals = genesisSupply(genesis);
  return { range: SupplyRange.exactly(totals.mintedAtoken), totals };
}

async function supplyFromMint(
  node: Pick<AuditNode, "journal">,
  { height, hash }: AuditedHeader,
): Promise<SupplyBefore> {
  const { blockChanges } = await node.journal(hash);
  const mintedAtoken = blockChanges
    .filter(({ from }) => from === undefined)
    .reduce((sum, { amountAtoken }) => sum + amountAtoken, 0n);
  return { range: SupplyRange.fromMint(height, mintedAtoken), totals: undefined };
}

/** Hashes of the blocks behind the walk, each bound to the next one by its parent hash. */
class HeaderChain {
  readonly #node: Pick<AuditNode, "rawHeaders">;
  readonly #hashes = new Map<Height, Hash32>();
  #lowest: AuditedHeader | undefined;

  constructor(node: Pick<AuditNode, "rawHeaders">) {
    this.#node = node;
  }

  /** The header to begin at; everything else is bound to it. */
  async startAt(height: Height): Promise<AuditedHeader> {
    const [header] = await this.#read([height]);
    if (header?.height !== height) throw notInChain(height);
    this.#lowest = header;
    this.add(header);
    return header;
  }

  /** The next header of the walk. */
  add({ height, hash }: AuditedHeader): void {
    this.#hashes.set(height, hash);
    this.#hashes.delete(height - ANCESTORS - 1);
  }

  /** Hash of one of the last 256 blocks. */
  async hashOf(height: Height): Promise<Hash32> {
    const known = this.#hashes.get(height);
    if (known !== undefined) return known;
    const below = this.#lowest;
    if (below === undefined || height >= below.height) throw notInChain(height);
    const heights: Height[] = [];
    for (let each = below.height - 1; each >= height; each--) heights.push(each);
    let child = below;
    for (const header of await this.#read(heights)) {
      if (header.hash !== child.parentHash) throw notInChain(header.height);
      this.#hashes.set(header.height, header.hash);
      child = header;
    }
    this.#lowest = child;
    return child.hash;
  }

  async #read(heights: readonly Height[]): Promise<AuditedHeader[]> {
    return (await this.#node.rawHeaders(heights)).map((bytes) => parseRawHeader(bytes));
  }
}

function notInChain(height: Height): AuditError {
  const message = `The node's header of block ${height} does not belong to its chain.`;
  return new AuditError("STATE_UNPROVEN", message);
}
