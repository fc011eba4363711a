/** The pool as blocks see it: it offers transactions, knows senders, and hears of every block. */
import type { Address } from "../../chain/address.js";
import type { AnyBlockTransaction } from "../../chain/block.js";
import type { Hash32 } from "../../chain/hex.js";
import { eachInSteps, type Steps } from "../../chain/steps/steps.js";
import type { RoomLimits, UsedRoom } from "./block-room.js";

/** The room of the block that is built, and its state so far. */
export interface BlockLimits extends RoomLimits {
  readonly maxBytes: number;
}

/** The pool's executable transactions, offered to one block in the order of their worth. */
export interface TransactionOffers {
  /** The best one that fits; undefined when there is none. */
  next(): AnyBlockTransaction | undefined;
  /** What the one offered last really used; the rest is free again. */
  executed(used: UsedRoom): void;
  /** Compute units for the one offered last. */
  readonly computeLeftNs: number;
  /** Its transaction was not taken: nothing more of the sender in this block. */
  skipSender(address: Address): void;
}

/** A transaction that is in a block now. */
export interface MinedTransaction {
  readonly hash: Hash32;
  readonly from: Address;
  readonly nonce: bigint;
}

/** A block's transactions as the pool hears of them, in steps. */
export function* minedTransactions(
  transactions: Iterable<AnyBlockTransaction>,
): Steps<ReadonlyMap<Hash32, MinedTransaction>> {
  const mined = new Map<Hash32, MinedTransaction>();
  yield* eachInSteps(transactions, ({ tx, from }) => {
    mined.set(tx.hash, { hash: tx.hash, from, nonce: tx.nonce });
  });
  return mined;
}

/** What a block changed, as far as the pool is concerned. */
export interface HeadChange {
  /** The block's transactions by their hashes, in order. */
  readonly transactions: ReadonlyMap<Hash32, MinedTransaction>;
  /** Accounts whose balance or nonce changed; the transactions' senders may be left out. */
  readonly touched: Iterable<Address>;
}

/** The pool of pending transactions. */
export interface BlockPool {
  takeForBlock(limits: BlockLimits): TransactionOffers;
  /** Takes out a transaction that can never be executed. */
  drop(hash: Hash32, reason: string): void;
  /**
   * Adjusts the pool to a block, when the state reads the new head: from the return on nobody sees
   * the block's transactions as pending any more; the steps do the rest, and must be done before
   * the pool is asked for another block.
   */
  onBlockCommitted(change: HeadChange): Steps<void>;
}

/** Finds out who signed the transactions of a proposal. */
export interface ProposedTransactions {
  /**
   * A proposal's transactions with their senders, in order.
   * @param transactions SDK transactions as the proposal has them
   * @throws BLOCK_INVALID when one cannot be in any block, or names a sender who did not sign it
   */
  read(transactions: readonly Uint8Array[]): Promise<AnyBlockTransaction[]>;
}
