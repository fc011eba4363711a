/** The one read model that every server of the node uses: committed and indexed data only (D11). */
import type { Address } from "../chain/address.js";
import type { BalanceChange } from "../chain/balance-change.js";
import type { Hash32, Hex, Height } from "../chain/hex.js";
import type { CommittedBlock, TransactionLocation } from "./event-bus.js";

/** An account as of some height. */
export interface AccountState {
  readonly nonce: bigint;
  readonly balanceAtoken: bigint;
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
  readonly totalAtoken: bigint;
  readonly mintedAtoken: bigint;
  readonly burnedAtoken: bigint;
}

/** One balance change of an account with its place in the chain. */
export interface AccountJournalEntry {
  readonly height: Height;
  readonly blockHash: Hash32;
  /** Undefined for block-level changes. */
  readonly transactionHash: Hash32 | undefined;
  /** Index of the transaction; the count of transactions for block-level changes. */
  readonly transactionIndex: number;
  /** Position of the change among its transaction's (or the block's) changes. */
  readonly changeIndex: number;
  readonly change: BalanceChange;
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
  /**
   * Block, receipts and journal; decoded blocks are cached, so a repeated read is cheap. Below
   * `oldest().journal` the journal of a block is empty.
   */
  block(height: Height): CommittedBlock | undefined;
  heightOfHash(hash: Hash32): Height | undefined;
  /** For BLOCKHASH: there for the 256 heights below the oldest block as well. */
  blockHash(height: Height): Hash32 | undefined;
  /** Location by keccak256 hash of the raw transaction. */
  locate(hash: Hash32): TransactionLocation | undefined;
  /** Location by SHA-256 of the SDK transaction (consensus hash). */
  locateBySdkHash(hash: Hash32): TransactionLocation | undefined;
  /** Blooms of the heights in the range, both ends included, in order. */
  blooms(from: Height, to: Height): AsyncIterable<{ height: Height; bloom: Uint8Array }>;
  /** Undefined when the account does not exist at that height. */
  account(address: Address, height: Height): Promise<AccountState | undefined>;
  code(address: Address, height: Height): Promise<Uint8Array>;
  storageAt(address: Address, slot: Hash32, height: Height): Promise<bigint>;
  /** Throws HISTORY_PRUNED for heights older than the proof window. */
  proof(address: Address, slots: readonly Hash32[], height: Height): Promise<AccountProof>;
  supply(height: Height): Supply | undefined;
  accountJournal(address: Address, from: Height, to: Height): AsyncIterable<AccountJournalEntry>;
  /**
   * Heights, ascending, of the blocks in the range that wrote the account's record: those that
   * changed its balance, nonce, code or storage, and those whose journal names it.
   */
  accountHeights(address: Address, from: Height, to: Height): AsyncIterable<Height>;
}
