/**
 * How much a new block may hold. While a round fails the pool grows, and a proposer who offers all
 * of it makes the next round fail, too: blocks that a starved machine cannot execute in time shrink
 * until one is decided, and grow back while rounds do not fail.
 */

/** Halvings in all; beyond that other reasons than the block's size keep rounds from deciding. */
const MAX_HALVINGS = 10;

/** What a block may always hold: a hundred transfers are executed in milliseconds. */
const LEAST_GAS = 2_100_000n;

/** One node's view of what the network manages; others follow theirs, any block is valid. */
export class Congestion {
  private halvings = 0;

  /** A height was decided; a dead proposer's round counts, and is made up for by the next height. */
  onDecided(round: number): void {
    this.halvings =
      round === 0 ? Math.max(0, this.halvings - 1) : Math.min(MAX_HALVINGS, this.halvings + round);
  }

  /**
   * Most gas of a new block of a round.
   * @param fullGas the chain's limit
   */
  gasOf(round: number, fullGas: bigint): bigint {
    const gas = fullGas >> BigInt(Math.min(MAX_HALVINGS, this.halvings + round));
    const least = fullGas < LEAST_GAS ? fullGas : LEAST_GAS;
    return gas > least ? gas : least;
  }
}
