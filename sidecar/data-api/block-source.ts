/** Blocks by index, hash or tip: read from the node once, kept as bytes in a bounded cache. */
import { LRUCache } from "lru-cache";
import type { Hash32, Height } from "../../chain/hex.js";
import type { EvmClient, NodeBlockHeader } from "../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import { SidecarError } from "../errors.js";
import type { BlockIdentifier, BlockReference } from "../identifiers.js";
import { type EncodedBlock, encodeBlock } from "./encoded-block.js";
import { toRosettaBlock } from "./operations.js";

/** Settings of a source. */
export interface BlockSourceOptions {
  readonly client: EvmClient;
  /** Bound of the cache of encoded blocks. */
  readonly cacheBytes: number;
  /** The process's signal: reads are shared by requests, so no single request may end them. */
  readonly signal: AbortSignal;
}

/** Reads of blocks; all throw SidecarError, RpcError and NodeFault. */
export interface BlockSource {
  /**
   * The block that is meant.
   * @throws BLOCK_NOT_FOUND, BLOCK_ABOVE_TIP, BLOCK_IDENTIFIER_MISMATCH
   */
  resolve(reference: BlockReference): Promise<BlockIdentifier>;
  /** The block of an identifier that `resolve` gave. */
  block(identifier: BlockIdentifier): Promise<EncodedBlock>;
  /** The block if it is in the cache; nothing is read. */
  kept(identifier: BlockIdentifier): EncodedBlock | undefined;
  /** The newest block. */
  tip(): Promise<BlockIdentifier>;
  /** Block 0; asked once. */
  genesis(): Promise<BlockIdentifier>;
  /** Hits, misses and bytes held, for metrics. */
  statistics(): { readonly hits: number; readonly misses: number; readonly bytes: number };
}

/** Identifiers kept: 100 bytes each, and a height never changes its hash. */
const MAX_IDENTIFIERS = 100_000;

/** Reads blocks through the client. Opens no connection before the first read. */
export function createBlockSource(options: BlockSourceOptions): BlockSource {
  const { client } = options;
  const rpc: RpcOptions = { signal: options.signal };
  const blocks = new LRUCache<Hash32, EncodedBlock>({
    maxSize: options.cacheBytes,
    // A block larger than the whole cache is served but not kept.
    maxEntrySize: options.cacheBytes,
    sizeCalculation: (block) => block.sizeBytes,
  });
  const loading = new Map<Hash32, Promise<EncodedBlock>>();
  const identifiers = new IdentifierCache();
  const headers = new HeaderBatcher(client, rpc);
  let hits = 0;
  let misses = 0;

  const load = async (identifier: BlockIdentifier): Promise<EncodedBlock> => {
    const journal = await client.blockJournal(identifier.hash, rpc);
    if (journal === undefined || journal.height !== identifier.index) {
      throw new SidecarError("NODE_FAULT", { reason: "no journal of a block it named" });
    }
    const encoded = encodeBlock(toRosettaBlock(journal));
    blocks.set(identifier.hash, encoded);
    return encoded;
  };

  const byIndex = async (index: Height): Promise<BlockIdentifier> => {
    const known = identifiers.byIndex(index);
    if (known !== undefined) return known;
    const header = await headers.get(index);
    if (header !== undefined) return identifiers.keep(header);
    // Below the tip every index has a block, or the node says that it is pruned.
    throw new SidecarError("BLOCK_ABOVE_TIP", { index });
  };

  const byHash = async (hash: Hash32): Promise<BlockIdentifier> => {
    const known = identifiers.byHash(hash);
    if (known !== undefined) return known;
    const header = await client.getBlockHeaderByHash(hash, rpc);
    if (header === undefined) throw new SidecarError("BLOCK_NOT_FOUND", { hash });
    return identifiers.keep(header);
  };

  const tip = async (): Promise<BlockIdentifier> => {
    const header = await client.getBlockHeader("latest", rpc);
    if (header === undefined) throw new SidecarError("NODE_FAULT", { reason: "no latest block" });
    return identifiers.keep(header);
  };

  return {
    tip,
    genesis: () => byIndex(0),
    async resolve({ index, hash }) {
      if (hash !== undefined) {
        const found = await byHash(hash);
        if (index === undefined || index === found.index) return found;
        throw new SidecarError("BLOCK_IDENTIFIER_MISMATCH", { index, hash });
      }
      return index === undefined ? tip() : byIndex(index);
    },
    kept(identifier) {
      const block = blocks.get(identifier.hash);
      if (block !== undefined) hits += 1;
      return block;
    },
    block(identifier) {
      const kept = this.kept(identifier);
      if (kept !== undefined) return Promise.resolve(kept);
      const pending = loading.get(identifier.hash);
      if (pending !== undefined) return pending;
      misses += 1;
      const started = load(identifier).finally(() => loading.delete(identifier.hash));
      loading.set(identifier.hash, started);
      return started;
    },
    statistics: () => ({ hits, misses, bytes: blocks.calculatedSize }),
  };
}

/** Which hash a height has and the other way round; final, so never invalidated. */
class IdentifierCache {
  private readonly indexes = new LRUCache<Height, BlockIdentifier>({ max: MAX_IDENTIFIERS });
  private readonly hashes = new LRUCache<Hash32, BlockIdentifier>({ max: MAX_IDENTIFIERS });

  byIndex(index: Height): BlockIdentifier | undefined {
    return this.indexes.get(index);
  }

  byHash(hash: Hash32): BlockIdentifier | undefined {
    return this.hashes.get(hash);
  }

  /**
   * @throws NODE_FAULT when a height that was seen now has another hash: blocks are final, so one
   * of the two answers was false (D10)
   */
  keep(header: NodeBlockHeader): BlockIdentifier {
    const identifier = { index: header.height, hash: header.hash };
    const known = this.indexes.get(identifier.index);
    if (known !== undefined && known.hash !== identifier.hash) {
      throw new SidecarError("NODE_FAULT", { reason: "a block changed", index: identifier.index });
    }
    this.indexes.set(identifier.index, identifier);
    this.hashes.set(identifier.hash, identifier);
    return identifier;
  }
}

interface Waiter {
  resolve(header: NodeBlockHeader | undefined): void;
  reject(error: unknown): void;
}

/** Headers by height: those asked for while a batch is under way go together in the next. */
class HeaderBatcher {
  private waiting = new Map<Height, Waiter[]>();
  private isRunning = false;

  constructor(
    private readonly client: EvmClient,
    private readonly rpc: RpcOptions,
  ) {}

  get(height: Height): Promise<NodeBlockHeader | undefined> {
    return new Promise((resolve, reject) => {
      const waiters = this.waiting.get(height) ?? [];
      waiters.push({ resolve, reject });
      this.waiting.set(height, waiters);
      if (!this.isRunning) void this.run();
    });
  }

  private async run(): Promise<void> {
    this.isRunning = true;
    while (this.waiting.size > 0) {
      const batch = this.waiting;
      this.waiting = new Map();
      await this.answer(batch);
    }
    this.isRunning = false;
  }

  private async answer(batch: ReadonlyMap<Height, readonly Waiter[]>): Promise<void> {
    const heights = [...batch.keys()];
    try {
      const headers = await this.client.getBlockHeaders(heights, this.rpc);
      heights.forEach((height, index) => {
        const header = headers[index];
        if (header !== undefined && header.height !== height) {
          throw new SidecarError("NODE_FAULT", { reason: "a header of another height" });
        }
        for (const waiter of batch.get(height) ?? []) waiter.resolve(header);
      });
    } catch (error) {
      for (const waiters of batch.values()) for (const waiter of waiters) waiter.reject(error);
    }
  }
}
