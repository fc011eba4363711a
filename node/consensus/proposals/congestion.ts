/**
 * How much a new block may hold, as one node sees the network; others follow theirs, any block is
 * valid. Two things make blocks smaller. While a round fails the pool grows, and a proposer who offers
 * all of it makes the next round fail, too: blocks that a starved machine cannot execute in time shrink
 * until one is decided, and grow back while rounds do not fail. And a block that takes longer to make and
 * store than the next one is away makes all that follow late: compute units are measured on another
 * machine, so blocks have the size that this one does in time.
 */

import type { ChainParams } from "../../settings/genesis.js";

/** Halvings in all; beyond that other reasons than the block's size keep rounds from deciding. */
const MAX_HALVINGS = 10;

/** What a block may always hold: a hundred transfers are executed in milliseconds. */
const LEAST_GAS = 2_100_000n;

/** Of the time between two blocks, what the work on one may take: votes need the rest. */
const WORK_SHARE = 0.9;

/** Work that is never too long, however short the time between two blocks is. */
const LEAST_WORK_MS = 1_000;

/** A block's share of the full room that work alone never goes below, however small transactions are. */
const LEAST_SHARE = 1 / 8;

/** Slower work halves a block at most, and quick work lets it grow by half. */
const MAX_SHRINKING = 0.5;
const MAX_GROWTH = 1.5;

/** The first block that has much to hold tells how fast the machine is; it had better be in time. */
const FIRST_SHARE = 0.5;

/** What a block holds of the full room for its work to tell how long a larger one's takes. */
const LEAST_TELLING = 1 / 64;

/** Work on a block: making or executing it, and storing it. */
export interface BlockWork {
  readonly workMs: number;
  /** Time between two blocks. */
  readonly blockIntervalMs: number;
  /** What the block held of the full room, of gas or of compute units, whichever is more. */
  readonly filling: number;
}

/**
 * The share of the full room that work never goes below: the largest transaction that the chain allows
 * fits by its gas and by its compute units. One that did not would be tried with every block, and would
 * hold up its sender for as long as the machine is slow.
 */
export function leastShareOf(params: RoomParams): number {
  const { maxGas, maxTransactionGas, maxComputeNs, maxTransactionComputeNs } = params;
  const byGas = Number(maxTransactionGas) / Number(maxGas);
  return Math.min(1, Math.max(LEAST_SHARE, byGas, maxTransactionComputeNs / maxComputeNs));
}

/** What of a chain's parameters bounds blocks and transactions. */
type RoomParams = Pick<
  ChainParams,
  "maxGas" | "maxTransactionGas" | "maxComputeNs" | "maxTransactionComputeNs"
>;

/** One node's view of what network and machine manage. */
export class Congestion {
  private halvings = 0;
  /** Of the full room, what this machine does in time, as far as its blocks have shown. */
  private share: number;

  /** @param leastShare see `leastShareOf` */
  constructor(private readonly leastShare = LEAST_SHARE) {
    this.share = Math.max(leastShare, FIRST_SHARE);
  }

  /** A height was decided; a dead proposer's round counts, and is made up for by the next height. */
  onDecided(round: number, work?: BlockWork): void {
    this.halvings =
      round === 0 ? Math.max(0, this.halvings - 1) : Math.min(MAX_HALVINGS, this.halvings + round);
    // Rounds that failed did work of their own, and halve the block already.
    if (round === 0 && work !== undefined) this.onWorked(work);
  }

  /** From what the block held and took: while little is asked for, what is known of the machine stays. */
  private onWorked({ workMs, blockIntervalMs, filling }: BlockWork): void {
    const mostMs = Math.max(LEAST_WORK_MS, WORK_SHARE * blockIntervalMs);
    if (filling < LEAST_TELLING && workMs <= mostMs) return;
    const inTime = (filling * mostMs) / Math.max(workMs, 1);
    const factor = Math.min(MAX_GROWTH, Math.max(MAX_SHRINKING, inTime / this.share));
    this.share = Math.min(1, Math.max(this.leastShare, this.share * factor));
  }

  /**
   * Most gas of a new block of a round.
   * @param fullGas the chain's limit
   */
  gasOf(round: number, fullGas: bigint): bigint {
    const inTime = this.share === 1 ? fullGas : BigInt(Math.ceil(Number(fullGas) * this.share));
    const gas = inTime >> BigInt(Math.min(MAX_HALVINGS, this.halvings + round));
    const least = fullGas < LEAST_GAS ? fullGas : LEAST_GAS;
    return gas > least ? gas : least;
  }
}
