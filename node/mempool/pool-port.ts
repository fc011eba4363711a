/** What servers and the block producer may ask of the mempool (D23). */
import type { Address } from "../../chain/address.js";
import type { Hash32 } from "../../chain/hex.js";
import type { TransactionFaultCode } from "../../chain/transaction-rules.js";
import type { PendingTransaction } from "../view/event-bus.js";
import type { PoolLimits } from "./pool-limits.js";

/** What became of a transaction hash, as far as the node knows. */
export type TransactionStatus =
  | { readonly status: "pending" }
  | {
      readonly status: "queued";
      readonly missingNonce: bigint;
      /** Why it waits although no nonce before it is missing. */
      readonly reason?: string;
    }
  | { readonly status: "included"; readonly height: number; readonly index: number }
  | { readonly status: "replaced"; readonly by: Hash32 }
  | { readonly status: "dropped"; readonly reason: string }
  | { readonly status: "unknown" };

/** A sender's transactions in the pool, each list in nonce order. */
export interface SenderContent {
  readonly pending: readonly PendingTransaction[];
  readonly queued: readonly PendingTransaction[];
}

/**
 * Refusal of a transaction. `code` is one of PoolErrorCode; the message is geth's text, because
 * clients match on it.
 */
export type PoolErrorCode =
  | TransactionFaultCode
  | "ALREADY_KNOWN"
  | "UNDERPRICED"
  | "POOL_FULL"
  | "ACCOUNT_LIMIT"
  | "SDK_FAULT"
  | "UNPROTECTED"
  | "TYPE_NOT_SUPPORTED"
  | "INVALID_SENDER"
  | "INVALID_TRANSACTION"
  | "NODE_HALTED";

/**
 * Who handed a transaction over. A client is promised that it survives this process; a peer keeps
 * that promise to its own clients itself, and offers again what is pending when it is met again.
 */
export type TransactionOrigin = "client" | "peer";

/** The mempool as the JSON-RPC servers see it. */
export interface TransactionPool {
  /**
   * Admits raw transactions. Each answer is the hash, or an AppError with a PoolErrorCode; it is
   * given only after the pool's journal is durable, except for what peers sent, which is not
   * journalled. One call is one group commit, so batches should be passed whole.
   * @param origin a client when absent
   */
  submit(
    raws: readonly Uint8Array[],
    origin?: TransactionOrigin,
  ): Promise<readonly (Hash32 | Error)[]>;
  get(hash: Hash32): PendingTransaction | undefined;
  /** Next nonce of the sender, counting its contiguous pending transactions. */
  pendingNonce(address: Address): bigint;
  status(hash: Hash32): TransactionStatus;
  /** Counts of executable and queued transactions. */
  counts(): { readonly pending: number; readonly queued: number };
  /** Bytes of the executable ones as consensus would carry them. */
  carriedBytes(): number;
  /** Executable ones, one sender after the other, each sender's in nonce order; as of `senders`. */
  executables(): Iterable<PendingTransaction>;
  /**
   * The whole pool, one sender after the other, each as it is when it is come to. Who lets others run
   * in between may be given a sender again that left and came back.
   */
  senders(): Iterable<readonly [Address, SenderContent]>;
  contentFrom(address: Address): SenderContent;
}

/** The mempool as the network sees it. */
export interface NetworkPool extends Pick<TransactionPool, "submit" | "senders" | "status"> {
  /** How much it holds, and how much of what peers send may wait for it. */
  readonly limits: PoolLimits;
  /**
   * Executable transactions that clients sent to this node before a time, one sender after the other as
   * `senders` has them: this node alone answers for them.
   * @param beforeMs by the clock that nobody sets: what was sent before the day's was put right counts, too
   */
  promised(beforeMs: number): Iterable<PendingTransaction>;
}
