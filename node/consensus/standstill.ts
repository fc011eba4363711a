/**
 * What the log says of a height that nobody decides: without votes of more than two thirds of the power
 * consensus waits for as long as it takes, and would do so without a word.
 */
import type { Address } from "../../chain/address.js";
import type { Validator } from "../../chain/consensus/validator-set.js";
import type { Logger } from "../../runtime/process/logger.js";
import { sleep } from "../../runtime/process/task.js";
import type { ConsensusState } from "./machine/consensus-state.js";

/** How long a height may take before it is told of, and the pause between two such lines. */
const STANDSTILL_MS = 30_000;

/** Validators that one line names, the strongest ones: a chain may have hundreds. */
const MAX_NAMED = 10;

/** Why a height is where it is. */
export interface Standstill {
  readonly height: number;
  readonly round: number;
  readonly step: number;
  /** Power of the validators of whom a vote of this height is here, of any round; decimal. */
  readonly heardPower: string;
  readonly totalPower: string;
  /** The strongest of the others. */
  readonly silent: readonly Address[];
}

/** What is known of the height in progress. */
export function standstillOf(state: ConsensusState): Standstill {
  const { height, round, step, validators, votes } = state;
  const sets = votes.knownRounds().flatMap((one) => [votes.prevotes(one), votes.precommits(one)]);
  const isHeard = (_: Validator, index: number) =>
    sets.some((set) => set.firstOf(index) !== undefined);
  const heardPower = validators.validators
    .filter(isHeard)
    .reduce((sum, { power }) => sum + power, 0n);
  const silent = validators.validators
    .filter((one, index) => !isHeard(one, index))
    .slice(0, MAX_NAMED)
    .map(({ address }) => address);
  return {
    height,
    round,
    step,
    heardPower: heardPower.toString(),
    totalPower: validators.totalPower.toString(),
    silent,
  };
}

/**
 * Tells of a height again and again while it is not decided.
 * @param ports.state the height's state now
 * @param delayMs until it begins
 * @throws only the signal's reason, which fires when the height is over
 */
export async function tellStandstill(
  ports: { readonly state: () => ConsensusState; readonly log: Logger },
  delayMs: number,
  signal: AbortSignal,
): Promise<never> {
  await sleep(delayMs, { signal });
  for (;;) {
    await sleep(STANDSTILL_MS, { signal });
    ports.log.warn(
      { ...standstillOf(ports.state()) },
      "no block is decided: it takes votes of more than two thirds of the power",
    );
  }
}
