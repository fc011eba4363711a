/** An EVM as the execution of transactions needs it; two stand behind it, with the same results. */
import type { Address } from "../../chain/address.js";
import type { Log } from "../../chain/receipt.js";
import type { BalanceRecorder } from "../state/balance-recorder.js";
import type { MaybePromise } from "../store/state-reader.js";
import type { BlockContext, EvmMessage } from "./message.js";
import type { Watcher } from "./interpreter/watcher.js";

/** What a message from outside came to; the state has its effects. */
export interface RunResult {
  /** Why it failed; undefined for success. */
  readonly error: string | undefined;
  /** The same in the words of go-ethereum, as far as the engine knows them. */
  readonly errorText: string | undefined;
  readonly isRevert: boolean;
  /** Without intrinsic gas, and before refunds. */
  readonly gasUsed: bigint;
  /** What cleared slots give back, before the share that may be refunded is applied. */
  readonly gasRefund: bigint;
  readonly output: Uint8Array;
  readonly logs: readonly Log[];
  readonly createdAddress: Address | undefined;
  /** Contracts that go at the end of the transaction (EIP-6780). */
  readonly destroyed: readonly Address[];
  /** Compute units (D21) that it took. */
  readonly computeNs: number;
  /** It needed more of them than it had: all its gas is gone. */
  readonly isOutOfCompute: boolean;
}

/** One engine over the state of one block; messages follow each other. */
export interface TransactionEngine {
  /** Runs a message and raises its sender's nonce, also where it fails. */
  run(message: EvmMessage, block: BlockContext, terms: RunTerms): MaybePromise<RunResult>;
  /** The transaction of the last message is in the block, or has been undone. */
  finish(isIncluded: boolean): MaybePromise<void>;
}

/** What goes with a message. */
export interface RunTerms {
  /** Hears of the coins that move. */
  readonly recorder?: BalanceRecorder;
  /** Compute units that the message may take. */
  readonly limitNs: number;
  /** Is told what happens; only our own engine tells. */
  readonly watcher?: Watcher | undefined;
}
