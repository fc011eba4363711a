/** The one read model that every server of the node uses: committed and indexed data only (D11). */
import type { Address } from "../../chain/address.js";
import type { BalanceChange, BlockJournal } from "../../chain/balance-change.js";
import type { AbciEvent } from "../../chain/consensus/abci-types.js";
import type { BlockOutline, BlockTransaction } from "../../chain/block.js";
import type { MinedCosmosTransaction } from "../../chain/cosmos/cosmos-result.js";
import type { Hash32, Hex, Height } from "../../chain/hex.js";
import type { BlockRecordBytes } from "../../chain/records/block-records.js";
import type { Log } from "../../chain/receipt.js";
import type { Steps } from "../../chain/steps/steps.js";
import type { Atoken } from "../../chain/units.js";
import type { BlockPage, PlacedReceipt } from "./block-pages.js";
import type { CommittedBlock, TransactionLocation } from "./event-bus.js";

/** An account as of some height. */
export interface AccountState {
  readonly nonce: bigint;
  readonly balanceAtoken: Atoken;
  readonly codeHash: Hash32;
  readonly storageRoot: Hash32;
}

/** The last block that is committed and indexed. */
export interface Head {
  readonly height: Height;
  readonly hash: Hash32;
  readonly timeMs: number;
}

/** The oldest heights that a node has, of each kind of data; block 0 is there besides. */
export interface OldestHeights {
  /** Blocks, receipts, logs and transactions. */
  readonly block: Height;
  /** Balance journals, and the events made of them. */
  readonly journal: Height;
  /** Balances, nonces, code and storage. */
  readonly state: Height;
  /** Proofs. */
  readonly proof: Height;
}

/** EIP-1186 proof of one account and some of its slots, RLP nodes as hex. */
export interface AccountProof {
  readonly account: AccountState;
  readonly accountProof: readonly Hex[];
  readonly storageProof: readonly {
    readonly key: Hash32;
    readonly value: bigint;
    readonly proof: readonly Hex[];
  }[];
}

/** Supply after a block; `mintedAtoken` and `burnedAtoken` are since genesis, genesis included. */
export interface Supply {
  readonly totalAtoken: Atoken;
  readonly mintedAtoken: Atoken;
  readonly burnedAtoken: Atoken;
}

/** One balance change of an account with its place in the chain. */
export interface AccountJournalEntry {
  readonly height: Height;
  readonly blockHash: Hash32;
  /** Undefined for block-level changes. */
  readonly transactionHash: Hash32 | undefined;
  /**
   * Place in the journal: EVM transactions by their index, then Cosmos transactions, then, for
   * block-level changes, the count of both.
   */
  readonly transactionIndex: number;
  /** Position of the change among its transaction's (or the block's) changes. */
  readonly changeIndex: number;
  readonly change: BalanceChange;
}

/** What the log index knows logs by: the contract's address, the first topic, or both. */
export interface LogTerm {
  readonly address?: Address;
  readonly topic?: Hash32;
}

/** Whether a log is wanted, by its address (20 bytes) and topics (32 each) as they are stored. */
export type LogTest = (address: Uint8Array, topics: readonly Uint8Array[]) => boolean;

/** A log with its place in its block. */
export interface PlacedLog {
  readonly log: Log;
  /** Counts within the block. */
  readonly logIndex: number;
  readonly transactionIndex: number;
  readonly transactionHash: Hash32;
}

/**
 * Reads of committed data. Heights must be between 0 and the head; a height above it gives
 * undefined where the type allows it. Pruned data throws HISTORY_PRUNED (JSON-RPC 4444).
 */
export interface ChainView {
  head(): Head;
  /** The oldest heights that are there: the others were pruned, or never came. */
  oldest(): OldestHeights;
  /** Block 0: on every node, pruned or not. */
  genesis(): CommittedBlock;
  /** A block without what is in it. */
  outline(height: Height): BlockOutline | undefined;
  transaction(height: Height, index: number): BlockTransaction | undefined;
  receipt(height: Height, index: number): PlacedReceipt | undefined;
  /** The same in steps, for one that may have tens of thousands of logs. */
  receiptSteps(height: Height, index: number): Steps<PlacedReceipt | undefined>;
  /**
   * A Cosmos transaction of a block with what execution made of it, by its number among them. All of a
   * full block take a while to decode: whoever wants all takes `cosmosOf`.
   */
  cosmosTransaction(height: Height, item: number): MinedCosmosTransaction | undefined;
  /** Its bytes alone, which cost a tenth of that. */
  cosmosBytes(height: Height, item: number): Uint8Array | undefined;
  /** What an EVM transaction did to balances; nothing below `oldest().journal`. */
  changes(height: Height, index: number): readonly BalanceChange[];
  /** Events of modules that the code of one EVM transaction called. */
  moduleEvents(height: Height, index: number): readonly AbciEvent[];
  /** The transactions with all that belongs to them, in pages of less than a millisecond's work. */
  pages(height: Height): Iterable<BlockPage>;
  /** The records of a block, as they are stored. */
  records(height: Height): BlockRecordBytes;
  /** The journal without its transactions; it is empty below `oldest().journal`. */
  blockChanges(height: Height): Omit<BlockJournal, "transactions">;
  /**
   * Block, receipts and journal at once. The newest are in memory; an older one takes some ten
   * milliseconds per ten thousand transactions: whoever can wait takes `load`, whoever wants a
   * part, that part. Below `oldest().journal` the journal is empty.
   */
  block(height: Height): CommittedBlock | undefined;
  /** The same in slices, others running in between. Throws the signal's reason. */
  load(height: Height, signal?: AbortSignal): Promise<CommittedBlock | undefined>;
  heightOfHash(hash: Hash32): Height | undefined;
  /** For BLOCKHASH: there for the 256 heights below the oldest block as well. */
  blockHash(height: Height): Hash32 | undefined;
  /** Location by keccak256 hash of the raw transaction. */
  locate(hash: Hash32): TransactionLocation | undefined;
  /** Location in `data.txs` by SHA-256 of the SDK transaction (consensus hash). */
  locateBySdkHash(hash: Hash32): TransactionLocation | undefined;
  /** Blooms of the heights in the range, both ends included, in order. */
  blooms(from: Height, to: Height): AsyncIterable<{ height: Height; bloom: Uint8Array }>;
  /** Pages of a range of blocks that have logs of a term, both ends included, in order. */
  logPages(
    term: LogTerm,
    from: Height,
    to: Height,
  ): AsyncIterable<{ height: Height; starts: readonly number[] }>;
  /** Where the pages of a block begin: `pageLogs` takes these. */
  pageStarts(height: Height): readonly number[];
  /**
   * The logs of a page that pass a test, as they are come to; a log is decoded when it is asked for.
   * A page may have tens of thousands: undefined comes where others may have their turn.
   */
  pageLogs(height: Height, start: number, isWanted: LogTest): Iterable<PlacedLog | undefined>;
  /** Undefined when the account does not exist at that height. */
  account(address: Address, height: Height): Promise<AccountState | undefined>;
  /**
   * Addresses of all accounts, in their order, from one on; those of the newest block, with what
   * comes while they are listed.
   */
  addresses(
    from: Address | undefined,
    options: { readonly isReverse: boolean },
  ): AsyncIterable<Address>;
  code(address: Address, height: Height): Promise<Uint8Array>;
  storageAt(address: Address, slot: Hash32, height: Height): Promise<bigint>;
  /** Throws HISTORY_PRUNED for heights older than the proof window. */
  proof(
    address: Address,
    slots: readonly Hash32[],
    height: Height,
    signal: AbortSignal,
  ): Promise<AccountProof>;
  supply(height: Height): Supply | undefined;
  /**
   * What a range of blocks did to the account's balance, in order. Every block that wrote its record is
   * read, also where it moved nothing. Throws the signal's reason.
   */
  accountJournal(
    address: Address,
    from: Height,
    to: Height,
    signal?: AbortSignal,
  ): AsyncIterable<AccountJournalEntry>;
  /**
   * Heights, ascending, of the blocks in the range that wrote the account's record: those that
   * changed its balance, nonce, code or storage, and those whose journal names it.
   */
  accountHeights(address: Address, from: Height, to: Height): AsyncIterable<Height>;
}
