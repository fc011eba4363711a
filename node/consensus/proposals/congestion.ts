/**
 * How much a new block may hold, as one node sees the network; others follow theirs, any block is
 * valid. Two things make blocks smaller. While a round fails the pool grows, and a proposer who offers
 * all of it makes the next round fail, too: blocks that a starved machine cannot execute in time shrink
 * until one is decided, and grow back while rounds do not fail. And a block that takes longer to make and
 * store than the next one is away makes all that follow late: compute units are measured on another
 * machine, so blocks shrink to what this one does in time.
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

/** Slower work halves a block at most, and quick work lets it grow by a quarter. */
const MAX_SHRINKING = 0.5;
const GROWTH = 1.25;

/** Work on a block: making or executing it, and storing it. */
export interface BlockWork {
  readonly workMs: number;
  /** Time between two blocks. */
  readonly blockIntervalMs: number;
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
  private share = 1;

  /** @param leastShare see `leastShareOf` */
  constructor(private readonly leastShare = LEAST_SHARE) {}

  /** A height was decided; a dead proposer's round counts, and is made up for by the next height. */
  onDecided(round: number, work?: BlockWork): void {
    this.halvings =
      round === 0 ? Math.max(0, this.halvings - 1) : Math.min(MAX_HALVINGS, this.halvings + round);
    // Rounds that failed did work of their own, and halve the block already.
    if (round === 0 && work !== undefined) this.onWorked(work);
  }

  private onWorked({ workMs, blockIntervalMs }: BlockWork): void {
    const mostMs = Math.max(LEAST_WORK_MS, WORK_SHARE * blockIntervalMs);
    const factor = workMs > mostMs ? Math.max(MAX_SHRINKING, mostMs / workMs) : GROWTH;
    // Between the two lies what is neither late nor leaves room for a quarter more.
    if (workMs > mostMs || workMs * GROWTH <= mostMs) {
      this.share = Math.min(1, Math.max(this.leastShare, this.share * factor));
    }
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
