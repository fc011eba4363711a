/**
 * The room of a block (D21), for who builds a block and for who checks one: a transaction fits
 * when the gas that it names is left, in the whole block and, if it enters code, in the part for
 * code. Once it is executed, only what it used is taken.
 */
import { TRANSFER_GAS } from "../../chain/transaction-rules.js";

/** What a block has room for. */
export interface RoomLimits {
  readonly maxGas: bigint;
  /** Part of `maxGas` that transactions entering code may take. */
  readonly maxCallGas: bigint;
  /**
   * Bytes of the SDK transactions in `data.txs`; at least MAX_TRANSACTION_BYTES and what an SDK
   * transaction adds. Absent for who checks a block: consensus has measured its encoding.
   */
  readonly maxBytes?: number | undefined;
}

/** What a transaction asks for. */
export interface RoomRequest {
  readonly gasLimit: bigint;
  /** True when it may run code, in the state that the block has built so far. */
  readonly entersCode: boolean;
  /** Bytes of the SDK transaction, at most; absent where bytes have no limit. */
  readonly sizeBytes?: number;
}

/** Room that a transaction has taken; each of the two ends it. */
export interface TakenRoom {
  /** The transaction is in the block and used so much gas: the rest is free again. */
  executed(gasUsed: bigint): void;
  /** The transaction is not in the block. */
  giveBack(): void;
}

/** What is left of one block's room. */
export class BlockRoom {
  private gasLeft: bigint;
  private callGasLeft: bigint;
  private bytesLeft: number;

  constructor(limits: RoomLimits) {
    this.gasLeft = limits.maxGas;
    this.callGasLeft = limits.maxCallGas;
    this.bytesLeft = limits.maxBytes === undefined ? Number.POSITIVE_INFINITY : limits.maxBytes;
  }

  /** True when not even a plain transfer fits. */
  get isFull(): boolean {
    return this.gasLeft < TRANSFER_GAS;
  }

  /** Takes room, or says by undefined that there is not enough. */
  take({ gasLimit, entersCode, sizeBytes = 0 }: RoomRequest): TakenRoom | undefined {
    const fits =
      gasLimit <= this.gasLeft &&
      sizeBytes <= this.bytesLeft &&
      (!entersCode || gasLimit <= this.callGasLeft);
    if (!fits) return undefined;
    const free = (gas: bigint): void => {
      this.gasLeft += gas;
      if (entersCode) this.callGasLeft += gas;
    };
    free(-gasLimit);
    this.bytesLeft -= sizeBytes;
    return {
      executed: (gasUsed) => free(gasLimit - gasUsed),
      giveBack: () => {
        free(gasLimit);
        this.bytesLeft += sizeBytes;
      },
    };
  }
}
