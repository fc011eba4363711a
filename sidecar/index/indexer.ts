/**
 * Writes blocks into the index: checks that each one follows the last, checks its tokens, makes
 * its reply, and stores all of it in one batch. Several blocks share a batch while catching up.
 */
import type { Address } from "../../chain/address.js";
import { heightBytes } from "../../chain/encoding/height-bytes.js";
import { type Height, hexToBytes } from "../../chain/hex.js";
import type { EvmClient, NodeBlockHeader } from "../../rpc-client/evm-client.js";
import type { JournaledBlock } from "../../rpc-client/journal-codec.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import type { LevelWrite } from "../../runtime/files/level-store.js";
import { encodeBlockAccounts } from "../rosetta/block-accounts.js";
import { type EncodedBlock, encodeBlock } from "../rosetta/encoded-block.js";
import { type BlockTokens, type RosettaBlock, toRosettaBlock } from "../rosetta/operations.js";
import type { TokenRegistry } from "../rosetta/token-registry.js";
import type { Quarantine } from "./index-reader.js";
import { IndexError, type IndexStore } from "./index-store.js";
import { readJournals } from "./journal-reader.js";
import { indexKey } from "./key-spaces.js";
import { postingWrites } from "./search/search-postings.js";
import { checkTokens, type ContractChanges, readContractChanges } from "./tokens/token-check.js";
import type { TokenLedger } from "./tokens/token-ledger.js";
import { type BlockTokenMoves, tokenMovesOf, withoutTokens } from "../rosetta/token-operations.js";

/** What indexing works with. */
export interface IndexerOptions {
  readonly store: IndexStore;
  readonly ledger: TokenLedger;
  readonly client: EvmClient;
  readonly registry: TokenRegistry;
  /** Up to so many holders of a token are checked in every block that touches it. */
  readonly verifyHolders: number;
  /** Bound of the stored replies; the oldest are dropped and made again when asked for. */
  readonly storedBlocksBytes: number;
  /** Throws where a reply is not as the API's description says. */
  readonly checkReply: (body: unknown) => void;
  /** Told of blocks that are durable and served from now on. */
  readonly onIndexed: (blocks: readonly IndexedBlock[]) => void;
}

/** A block that was indexed. */
export interface IndexedBlock {
  readonly block: RosettaBlock;
  readonly encoded: EncodedBlock;
  /** Which accounts its transactions name, as it is stored. */
  readonly accounts: Buffer;
}

/** Blocks whose headers and contract changes are read at once. */
const MAX_SEGMENT_BLOCKS = 1_000;

/** A batch is written at the latest with so many blocks or bytes; both bound what is pending. */
const MAX_BATCH_BLOCKS = 64;
const MAX_BATCH_BYTES = 8 * 1024 * 1024;

/**
 * Replies that a batch drops beside as many bytes as it brings: where the bound was lowered there may be
 * millions too many, and each is read for its length. 1,000 take some 20 ms.
 */
const MAX_DROPPED_BLOCKS = 1_000;

const NOTHING = Buffer.alloc(0);
const NO_CONTRACTS: ReadonlySet<Address> = new Set();

/** The one writer of an index. */
export class Indexer {
  private blocks: IndexedBlock[] = [];
  private writes: LevelWrite[] = [];
  private pendingBytes = 0;
  /** What is pending in the ledger is of blocks that were not written: it must not be counted twice. */
  private isLedgerAhead = false;

  constructor(private readonly options: IndexerOptions) {}

  /**
   * Indexes every block up to the target. After a fault all blocks before it are in the index.
   * @throws INDEX_CONTRADICTED, JOURNAL_INCONSISTENT, NODE_FAULT, LevelStoreError WRITE_FAILED, and
   *   what the node's client throws
   */
  async indexTo(target: NodeBlockHeader, rpc: RpcOptions): Promise<void> {
    if (this.isLedgerAhead) await this.options.ledger.load();
    this.isLedgerAhead = false;
    for (let above = this.tipHeight(); above < target.height; above = this.tipHeight()) {
      const last = Math.min(target.height, above + MAX_SEGMENT_BLOCKS);
      const isWhole = last === target.height;
      const segment = isWhole ? target : await this.headerOf(last, rpc);
      try {
        await this.indexSegment({ above, target: segment }, rpc);
      } finally {
        await this.flush();
      }
    }
  }

  private async indexSegment(
    range: { readonly above: Height; readonly target: NodeBlockHeader },
    rpc: RpcOptions,
  ): Promise<void> {
    const heights = { from: range.above + 1, to: range.target.height };
    const changes = readContractChanges(this.options, heights, rpc);
    // Awaited below; a fault of the journals may come first.
    changes.catch(() => undefined);
    for await (const journal of readJournals(this.options.client, range, rpc)) {
      rpc.signal.throwIfAborted();
      await this.add(journal, await changes, rpc);
      const isFull = this.blocks.length >= MAX_BATCH_BLOCKS || this.pendingBytes >= MAX_BATCH_BYTES;
      if (isFull) await this.flush();
    }
  }

  /** Takes one block in; nothing of it is pending unless all of it is. */
  private async add(
    journal: JournaledBlock,
    changes: ContractChanges,
    rpc: RpcOptions,
  ): Promise<void> {
    const { ledger, registry, checkReply } = this.options;
    this.assertFollows(journal);
    const { height } = journal;
    const moves = tokenMovesOf(journal, registry, (contract) =>
      ledger.isUnaccompanied(contract, height),
    );
    const changed = changes.get(height) ?? NO_CONTRACTS;
    const verdict = await checkTokens(this.options, { journal, moves, changed }, rpc);
    const tokens = toldTokens({ height, moves }, registry, (contract) => {
      const reason = verdict.lies.get(contract);
      return reason === undefined ? ledger.quarantineOf(contract) : { height, reason };
    });
    const block = toRosettaBlock(journal, tokens);
    checkReply({ block });
    const encoded = encodeBlock(block);
    const indexed = { block, encoded, accounts: encodeBlockAccounts(block) };
    ledger.apply(height, tokens.moves.flat(), verdict, moves.unaccompanied);
    // One by one, here as elsewhere: a large genesis has more than a call may have arguments.
    for (const write of blockWrites(indexed)) this.writes.push(write);
    this.blocks.push(indexed);
    this.pendingBytes += storedBytes(indexed);
  }

  /** Writes what is pending; after a fault nothing is. */
  private async flush(): Promise<void> {
    const { store, ledger, onIndexed } = this.options;
    const { blocks, writes } = this;
    const newest = blocks.at(-1)?.encoded;
    this.blocks = [];
    this.writes = [];
    this.pendingBytes = 0;
    if (newest === undefined) return;
    // What is read for the batch can fail as the write can.
    this.isLedgerAhead = true;
    const batch = [
      ...writes,
      ...ledger.pendingWrites(),
      ...this.boundStored(blocks),
      ...postingWrites(
        blocks.map(({ block }) => block),
        (key) => store.get(key),
      ),
      { key: indexKey("tip"), value: heightBytes(newest.identifier.index) },
    ];
    failpoint("sidecar.before-index-write");
    await store.commit(batch, newest.identifier);
    failpoint("sidecar.after-index-write");
    ledger.clearPending();
    this.isLedgerAhead = false;
    onIndexed(blocks);
  }

  /**
   * Counts the new replies in and drops the oldest above the bound, in parts where many are above it; the
   * newest always stays.
   */
  private boundStored(blocks: readonly IndexedBlock[]): LevelWrite[] {
    const { store, storedBlocksBytes } = this.options;
    const before = store.storedBlocks();
    let { oldest, bytes } = before;
    for (const block of blocks) bytes += storedBytes(block);
    const writes: LevelWrite[] = [];
    const first = blocks[0]?.encoded.identifier.index ?? 0;
    const isPartLeft = () => oldest - before.oldest < MAX_DROPPED_BLOCKS || bytes > before.bytes;
    while (bytes > storedBlocksBytes && oldest < first && isPartLeft()) {
      const height = heightBytes(oldest);
      bytes -= (store.record(oldest)?.length ?? 0) + (store.accountsRecord(oldest)?.length ?? 0);
      writes.push({ key: indexKey("block", height), value: undefined });
      writes.push({ key: indexKey("blockAccounts", height), value: undefined });
      oldest += 1;
    }
    const value = Buffer.concat([heightBytes(oldest), heightBytes(bytes)]);
    return [...writes, { key: indexKey("storedBlocks"), value }];
  }

  /** @throws INDEX_CONTRADICTED when the block is not the child of the newest indexed one */
  private assertFollows({ height, hash, parentHash }: JournaledBlock): void {
    const tip = this.blocks.at(-1)?.encoded.identifier ?? this.options.store.tip();
    if (tip === undefined ? height === 0 : height === tip.index + 1 && parentHash === tip.hash) {
      return;
    }
    throw new IndexError(
      "INDEX_CONTRADICTED",
      `block ${height} (${hash}) of the node has the parent ${parentHash}, but block ` +
        `${tip?.index} of the index in ${this.options.store.folder} is ${tip?.hash}: ` +
        "blocks are final, so one of the two is not of this chain",
    );
  }

  private tipHeight(): Height {
    return this.options.store.tip()?.index ?? -1;
  }

  private async headerOf(height: Height, rpc: RpcOptions): Promise<NodeBlockHeader> {
    const header = await this.options.client.getBlockHeader(height, rpc);
    if (header?.height === height) return header;
    throw new IndexError("INDEX_CONTRADICTED", `the node has no block ${height} below its newest`);
  }
}

/**
 * What a block tells of tokens, by their quarantines alone: the same when it is made again later.
 */
export function toldTokens(
  block: { readonly height: Height; readonly moves: BlockTokenMoves },
  registry: TokenRegistry,
  quarantineOf: (contract: Address) => Quarantine | undefined,
): BlockTokens {
  const { height, moves } = block;
  const heightOf = (contract: Address) => quarantineOf(contract)?.height ?? Number.MAX_SAFE_INTEGER;
  const leftOut = registry.tokens
    .map(({ contractAddress }) => contractAddress)
    .filter((contract) => {
      const from = heightOf(contract);
      return from === height || (from < height && moves.contracts.has(contract));
    })
    // Not the registry's order: the same tokens in another order make the same blocks.
    .toSorted();
  const isLeftOut = (contract: Address) => heightOf(contract) <= height;
  return { moves: withoutTokens(moves, isLeftOut), leftOut };
}

/** What the bound of stored replies counts. */
function storedBytes({ encoded, accounts }: IndexedBlock): number {
  return encoded.record.length + accounts.length;
}

function blockWrites({ block, encoded, accounts }: IndexedBlock): LevelWrite[] {
  const { identifier, record, transactionCount } = encoded;
  const height = heightBytes(identifier.index);
  const hash = hexToBytes(identifier.hash);
  const writes: LevelWrite[] = [
    { key: indexKey("block", height), value: record },
    { key: indexKey("blockAccounts", height), value: accounts },
    { key: indexKey("heightHash", height), value: hash },
    { key: indexKey("blockHash", hash), value: height },
  ];
  if (block.metadata.consensus_block_hash === undefined) {
    // The node may learn to tell it; the reply, once given, stays as it is.
    writes.push({ key: indexKey("unsigned", height), value: NOTHING });
  }
  if (identifier.index === 0) {
    const key = indexKey("meta", Buffer.from("genesisHash"));
    writes.push({ key, value: Buffer.from(identifier.hash) });
  }
  for (let position = 0; position < transactionCount; position++) {
    const place = Buffer.allocUnsafe(12);
    height.copy(place);
    place.writeUInt32BE(position, 8);
    writes.push({ key: indexKey("transaction", encoded.hashBytesAt(position)), value: place });
  }
  return writes;
}
