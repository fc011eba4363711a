/**
 * The room of a block (D21), for who builds a block and for who checks one: a transaction fits
 * when the gas that it names is left. Once it is executed, only what it used is taken, and the
 * compute units that it took: execution itself stops at those that are left.
 */
import { TRANSFER_GAS } from "../../chain/networks.js";
import { type WeightsVersion, weightsOf } from "../../chain/evm/compute-weights.js";

/** What a block has room for. */
export interface RoomLimits {
  readonly maxGas: bigint;
  /** Compute units, nanoseconds of the reference machine. */
  readonly maxComputeNs: number;
  /** What they are counted by. */
  readonly computeWeights: WeightsVersion;
  /**
   * Bytes of the SDK transactions in `data.txs`; at least MAX_TRANSACTION_BYTES and what an SDK
   * transaction adds. Absent for who checks a block: consensus has measured its encoding.
   */
  readonly maxBytes?: number | undefined;
}

/**
 * Compute units of a block that may hold less gas than the chain allows: as much less of them. A
 * proposer whose blocks could not be executed in time makes smaller ones, whatever they are full of.
 * @param roomGas at most `maxGas`
 */
export function computeForGas(
  { maxGas, maxComputeNs }: Pick<RoomLimits, "maxGas" | "maxComputeNs">,
  roomGas: bigint,
): number {
  if (roomGas >= maxGas) return maxComputeNs;
  return Number((BigInt(maxComputeNs) * roomGas) / maxGas);
}

/** What a transaction asks for. */
export interface RoomRequest {
  readonly gasLimit: bigint;
  /** Bytes of the SDK transaction, at most; absent where bytes have no limit. */
  readonly sizeBytes?: number;
}

/** Room that a transaction has taken; each of the two ends it. */
export interface TakenRoom {
  /** The transaction is in the block and used so much gas: the rest is free again. */
  executed(used: UsedRoom): void;
  /** The transaction is not in the block. */
  giveBack(): void;
}

/** What an executed transaction has used. */
export interface UsedRoom {
  readonly gasUsed: bigint;
  readonly computeNs: number;
}

/** What is left of one block's room. */
export class BlockRoom {
  private gasLeft: bigint;
  private computeLeft: number;
  private bytesLeft: number;
  /** Compute units of a plain transfer. */
  private readonly transferNs: number;

  constructor(limits: RoomLimits) {
    this.gasLeft = limits.maxGas;
    this.computeLeft = limits.maxComputeNs;
    this.transferNs = weightsOf(limits.computeWeights).transactionNs;
    this.bytesLeft = limits.maxBytes === undefined ? Number.POSITIVE_INFINITY : limits.maxBytes;
  }

  /** True when not even a plain transfer fits. */
  get isFull(): boolean {
    return this.gasLeft < TRANSFER_GAS || this.computeLeft < this.transferNs;
  }

  /** Compute units for the next transaction. */
  get computeLeftNs(): number {
    return this.computeLeft;
  }

  /** Takes room, or says by undefined that there is not enough. */
  take({ gasLimit, sizeBytes = 0 }: RoomRequest): TakenRoom | undefined {
    if (gasLimit > this.gasLeft || sizeBytes > this.bytesLeft) return undefined;
    this.gasLeft -= gasLimit;
    this.bytesLeft -= sizeBytes;
    return {
      executed: ({ gasUsed, computeNs }) => {
        this.gasLeft += gasLimit - gasUsed;
        this.computeLeft -= computeNs;
      },
      giveBack: () => {
        this.gasLeft += gasLimit;
        this.bytesLeft += sizeBytes;
      },
    };
  }
}
