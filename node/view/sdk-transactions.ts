/**
 * Transactions as clients of SDK chains see them, whichever kind they are: the one port that the
 * consensus RPC, gRPC, REST and `abci_query` share. EVM transactions are served as the SDK Tx
 * around them (D20), Cosmos transactions as the bytes that were signed.
 */
import type { AbciEvent } from "../../chain/consensus/abci-types.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Asker } from "../../runtime/turns/resting-lane.js";

/** What execution, or the way into the pool, says of a transaction: `ExecTxResult` of ABCI. */
export interface SdkResult {
  /** 0 for success; else a code of `codespace`. */
  readonly code: number;
  readonly codespace: string;
  /** In words; "" for success. */
  readonly log: string;
  /** Protobuf `cosmos.base.abci.v1beta1.TxMsgData`; empty for EVM transactions and failures. */
  readonly data: Uint8Array;
  readonly gasWanted: bigint;
  readonly gasUsed: bigint;
  readonly events: readonly AbciEvent[];
}

/** A transaction of a committed block. */
export interface SdkTransactionRecord {
  /** SHA-256 of `bytes`. */
  readonly hash: Hash32;
  /** SDK `Tx`, as it stands in the block's `data.txs`. */
  readonly bytes: Uint8Array;
  readonly height: Height;
  /** Place in the block's `data.txs`. */
  readonly index: number;
  /** Unix milliseconds of the block's time. */
  readonly timeMs: number;
  readonly result: SdkResult;
}

/** Where a transaction stands. */
export interface SdkTransactionPlace {
  readonly height: Height;
  /** Place in the block's `data.txs`. */
  readonly index: number;
}

/** Answer of a submission; `result.code` 0 says that the pool has it on disk. */
export interface SdkSubmission {
  readonly hash: Hash32;
  readonly result: SdkResult;
}

/** Reads and submissions. */
export interface SdkTransactions {
  /**
   * By SHA-256 of the SDK Tx; undefined where no committed block has it.
   * @throws HISTORY_PRUNED where its block is gone; the asker's reason when the asker goes
   */
  byHash(hash: Hash32, asker: Asker): Promise<SdkTransactionRecord | undefined>;
  /** One of a committed block; undefined where it has no such one. @throws as `byHash` */
  at(place: SdkTransactionPlace, asker: Asker): Promise<SdkTransactionRecord | undefined>;
  /**
   * Places whose events satisfy a query of CometBFT's language (`&` counts as AND), in the order
   * of the chain; complete or an error.
   */
  search(query: string, asker: Asker): Promise<readonly SdkTransactionPlace[]>;
  /** As `broadcast_tx_sync`: answers when the pool has the transaction on disk or refused it. */
  submit(bytes: Uint8Array): Promise<SdkSubmission>;
  /** Executes the transaction on the state at the head without keeping anything of it. */
  simulate(bytes: Uint8Array, asker: Asker): Promise<SdkResult>;
}
