/** The index as its readers see it: finished blocks from memory, disk or the node, and tokens. */
import { LRUCache } from "lru-cache";
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import { Turns } from "../../runtime/turns/turns.js";
import { blockAccountsOf } from "../rosetta/block-accounts.js";
import { EncodedBlock, encodeBlock } from "../rosetta/encoded-block.js";
import { toRosettaBlock } from "../rosetta/operations.js";
import { SidecarError } from "../rosetta/errors.js";
import type { BlockIdentifier } from "../rosetta/identifiers.js";
import type { TokenRegistry } from "../rosetta/token-registry.js";
import type { IndexReader, Quarantine, TransactionPlace } from "./index-reader.js";
import type { IndexStore } from "./index-store.js";
import { toldTokens } from "./indexer.js";
import { missingBlockFault } from "./missing-block.js";
import type { TokenLedger } from "./tokens/token-ledger.js";
import { tokenMovesOf } from "../rosetta/token-operations.js";

/** What reading works with. */
export interface IndexedBlocksOptions {
  readonly store: IndexStore;
  readonly ledger: Pick<TokenLedger, "quarantineOf" | "isUnaccompanied">;
  readonly registry: TokenRegistry;
  readonly client: Pick<EvmClient, "blockJournal" | "getBlockHeader">;
  /** Bound of the cache of finished blocks. */
  readonly cacheBytes: number;
  /** The process's signal: reads are shared by requests, so no single request may end them. */
  readonly signal: AbortSignal;
}

/** Identifiers kept: 100 bytes each, and a height never changes its hash. */
const MAX_IDENTIFIERS = 100_000;

/**
 * Dropped replies that are made again at once. Clients that read the past ask for dozens of blocks at a
 * time, and the journal of a full one has up to 64 MiB.
 */
const MAX_MADE_AGAIN = 4;

/** Blocks that may wait for that; whoever asks for more is told to come again. */
const MAX_WAITING = 1_024;

/** Reads of one index. */
export class IndexedBlocks implements IndexReader {
  private readonly cache: LRUCache<Height, EncodedBlock>;
  /** Sizes of blocks that were read from disk lately, as many as the cache could hold. */
  private readonly readOnce: LRUCache<Height, number>;
  private readonly identifiers = new LRUCache<Height, BlockIdentifier>({ max: MAX_IDENTIFIERS });
  private readonly heights = new LRUCache<Hash32, Height>({ max: MAX_IDENTIFIERS });
  private readonly loading = new Map<Height, Promise<EncodedBlock>>();
  private readonly turns = new Turns({
    maxRunning: MAX_MADE_AGAIN,
    maxWaiting: MAX_WAITING,
    full: () => new SidecarError("NODE_BUSY", { reason: "too many old blocks are asked for" }),
  });
  private readonly rpc: RpcOptions;
  private hits = 0;
  private misses = 0;

  constructor(private readonly options: IndexedBlocksOptions) {
    this.rpc = { signal: options.signal };
    this.cache = new LRUCache<Height, EncodedBlock>({
      maxSize: options.cacheBytes,
      // A block larger than the whole cache is served but not kept.
      maxEntrySize: options.cacheBytes,
      sizeCalculation: (block) => block.sizeBytes,
    });
    this.readOnce = new LRUCache<Height, number>({
      maxSize: options.cacheBytes,
      maxEntrySize: options.cacheBytes,
      sizeCalculation: (sizeBytes) => sizeBytes,
    });
  }

  tip(): BlockIdentifier | undefined {
    return this.options.store.tip();
  }

  identifierAt(height: Height): BlockIdentifier | undefined {
    if (height > this.tipHeight()) return undefined;
    const known = this.identifiers.get(height);
    if (known !== undefined) return known;
    const hash = this.options.store.hashAt(height);
    if (hash === undefined) return undefined;
    const identifier = { index: height, hash };
    this.identifiers.set(height, identifier);
    return identifier;
  }

  heightOf(hash: Hash32): Height | undefined {
    const known = this.heights.get(hash);
    if (known !== undefined) return known;
    const height = this.options.store.heightOf(hash);
    if (height === undefined || height > this.tipHeight()) return undefined;
    this.heights.set(hash, height);
    return height;
  }

  placeOf(transactionHash: Hash32): TransactionPlace | undefined {
    const place = this.options.store.placeOf(transactionHash);
    return place === undefined || place.height > this.tipHeight() ? undefined : place;
  }

  /** Keeps a block that was just made. */
  keep(block: EncodedBlock): void {
    this.cache.set(block.identifier.index, block);
  }

  /** The block if it is in memory or on disk; the node is not asked. */
  kept(height: Height): EncodedBlock | undefined {
    const cached = this.cache.get(height);
    if (cached !== undefined) {
      this.hits += 1;
      return cached;
    }
    const identifier = this.identifierAt(height);
    const record = identifier === undefined ? undefined : this.options.store.record(height);
    if (identifier === undefined || record === undefined) return undefined;
    this.misses += 1;
    const block = new EncodedBlock(identifier, record);
    this.keepIfReadAgain(block);
    return block;
  }

  /**
   * Keeps what is read from disk for the second time. Who catches up reads each block once, and keeping
   * those would drop all that others ask for, and have the garbage collector look after every one of them.
   */
  private keepIfReadAgain(block: EncodedBlock): void {
    const { index } = block.identifier;
    if (this.readOnce.delete(index)) this.cache.set(index, block);
    else this.readOnce.set(index, block.sizeBytes);
  }

  async block(height: Height): Promise<EncodedBlock> {
    const kept = this.kept(height);
    if (kept !== undefined) return kept;
    const identifier = this.identifierAt(height);
    if (identifier === undefined) throw new SidecarError("BLOCK_ABOVE_TIP", { index: height });
    const pending = this.loading.get(height);
    if (pending !== undefined) return pending;
    this.misses += 1;
    const started = this.encodeInTurn(identifier).finally(() => this.loading.delete(height));
    this.loading.set(height, started);
    return started;
  }

  /**
   * Which accounts the block's transactions name, as JSON; see `BlockAccounts`. Of a block that was
   * indexed before such records were kept, or whose record was dropped, it is made of the reply.
   */
  async accountsOf(height: Height): Promise<Buffer> {
    return this.keptAccounts(height) ?? blockAccountsOf(await this.block(height));
  }

  /** The same where it is on disk; undefined for a block that is not indexed, too. */
  keptAccounts(height: Height): Buffer | undefined {
    const isIndexed = this.identifierAt(height) !== undefined;
    return isIndexed ? this.options.store.accountsRecord(height) : undefined;
  }

  async holdings(account: Address, at: Height): Promise<Address[]> {
    const holdings = this.options.store.holdings(account);
    return [...holdings].flatMap(([contract, first]) => (first <= at ? [contract] : []));
  }

  async tokenBalance(
    { contract, account }: { readonly contract: Address; readonly account: Address },
    at: Height,
  ): Promise<bigint> {
    const { store } = this.options;
    const holder = store.holder(contract, account);
    if (holder === undefined) return 0n;
    // The record tells the height of the last change, so that a newer block cannot mix in.
    return holder.height <= at ? holder.units : store.balanceAt(contract, account, at);
  }

  quarantineOf(contract: Address): Quarantine | undefined {
    const quarantine = this.options.ledger.quarantineOf(contract);
    const isIndexed = quarantine !== undefined && quarantine.height <= this.tipHeight();
    return isIndexed ? quarantine : undefined;
  }

  /** Hits, misses and bytes held, for metrics. */
  statistics(): { readonly hits: number; readonly misses: number; readonly bytes: number } {
    return { hits: this.hits, misses: this.misses, bytes: this.cache.calculatedSize };
  }

  private async encodeInTurn(identifier: BlockIdentifier): Promise<EncodedBlock> {
    const leave = await this.turns.enter(this.rpc.signal);
    try {
      return await this.encodeAgain(identifier);
    } finally {
      leave();
    }
  }

  /** Makes a dropped reply again, of the node's journal and the index' quarantines. */
  private async encodeAgain(identifier: BlockIdentifier): Promise<EncodedBlock> {
    const { client, ledger, registry, store } = this.options;
    const found = await client.blockJournal(identifier.hash, this.rpc);
    if (found === undefined) throw await missingBlockFault(client, identifier, this.rpc);
    const isTold = store.tellsSigned(identifier.index);
    const journal = isTold ? found : { ...found, consensusBlockHash: undefined };
    if (journal.height !== identifier.index) {
      throw new SidecarError("NODE_FAULT", { reason: "the journal of another block" });
    }
    const moves = tokenMovesOf(journal, registry, (contract) =>
      ledger.isUnaccompanied(contract, identifier.index),
    );
    const tokens = toldTokens({ height: identifier.index, moves }, registry, (contract) =>
      this.quarantineOf(contract),
    );
    const block = encodeBlock(toRosettaBlock(journal, tokens));
    this.cache.set(identifier.index, block);
    return block;
  }

  private tipHeight(): Height {
    return this.options.store.tip()?.index ?? -1;
  }
}
