/**
 * Counting (x/gov `keeper/tally.go`). A vote has the weight of the voter's bonded stake; the stake
 * of delegators that did not vote follows their validator's vote. Counting goes by voters and may
 * take several blocks: what one block may look at is bounded.
 */
import type { Address } from "../../../chain/address.js";
import { DECIMAL_ONE } from "../../../chain/encoding/decimal.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { Delegations } from "../staking/delegation-record.js";
import { type ValidatorRecord, Validators } from "../staking/validator-record.js";
import type { GovParams } from "./gov-params.js";
import { type ByOption, type ProposalRecord, VOTE_OPTIONS } from "./proposal-record.js";

type Sums = Record<keyof ByOption, bigint>;

/** How a proposal ended. */
export interface Outcome {
  readonly isPassed: boolean;
  readonly burnsDeposits: boolean;
  /** Atoken by option. */
  readonly result: ByOption;
}

/** How far a counting has come. */
export interface TallyProgress {
  /** Voters that were counted. */
  readonly voters: number;
  readonly sums: ByOption;
  readonly total: bigint;
  /** Shares by validator that were counted since the last block left it. */
  readonly shares: ReadonlyMap<Address, bigint>;
}

/** The counting of one proposal, from where the last block left it or from further on. */
export class TallyCount {
  private readonly delegations: Delegations;
  private readonly bonded: ReadonlyMap<Address, ValidatorRecord>;
  /** Shares of a validator's delegators that were counted by their own votes. */
  private readonly counted: Map<Address, bigint>;
  private readonly sums: Sums;
  private total: bigint;
  private voters: number;

  constructor(
    state: JournaledState,
    private readonly proposal: ProposalRecord,
    from?: TallyProgress,
  ) {
    this.delegations = new Delegations(state);
    const bonded = new Validators(state).inConsensus().filter(({ isBonded }) => isBonded);
    this.bonded = new Map(bonded.map((validator) => [validator.operator, validator]));
    const { voters, sums, total } = from ?? proposal.counted;
    this.counted = new Map(from?.shares);
    this.voters = voters;
    this.sums = { ...sums };
    this.total = total;
  }

  /**
   * Counts voters until all are counted or so many delegations were looked at; the last voter is
   * counted whole.
   * @returns steps that are left; undefined when voters are left
   */
  count(steps: number): number | undefined {
    const { proposal } = this;
    let left = steps;
    const all = proposal.voterCount;
    for (; this.voters < all; this.voters++) {
      if (left <= 0) return undefined;
      const [voter] = proposal.voters(this.voters, 1);
      if (voter === undefined) throw new RangeError("a voter is missing");
      left -= this.countVoter(voter);
    }
    return left;
  }

  private countVoter(voter: Address): number {
    const vote = this.proposal.vote(voter);
    if (vote === undefined) throw new RangeError("a voter without a vote");
    const operators = this.delegations.operatorsOf(voter);
    for (const operator of operators) {
      const validator = this.bonded.get(operator);
      if (validator === undefined) continue;
      const shares = this.delegations.shares(operator, voter);
      this.counted.set(operator, this.countedShares(operator) + shares);
      this.add(vote.weights, powerOf(validator, shares));
    }
    return 1 + operators.length;
  }

  private countedShares(operator: Address): bigint {
    return this.counted.get(operator) ?? this.proposal.countedShares(operator);
  }

  private add(weights: ByOption, power: bigint): void {
    for (const option of VOTE_OPTIONS) {
      if (weights[option] > 0n) this.sums[option] += (power * weights[option]) / DECIMAL_ONE;
    }
    this.total += power;
  }

  /** How far it has come. */
  get progress(): TallyProgress {
    const { voters, sums, total, counted } = this;
    return { voters, sums: { ...sums }, total, shares: new Map(counted) };
  }

  /** Leaves the rest to the next block. */
  pause(): void {
    const { proposal, voters, sums, total } = this;
    for (const [operator, shares] of this.counted) proposal.setCountedShares(operator, shares);
    proposal.counted = { voters, sums, total };
  }

  /** When all voters are counted: adds what follows the validators, and judges. */
  outcome(params: GovParams): Outcome {
    const { proposal, bonded, sums } = this;
    for (const [operator, validator] of bonded) {
      const vote = proposal.vote(operator);
      if (vote === undefined) continue;
      const rest = validator.shares - this.countedShares(operator);
      // Less than nothing only where delegators left while counting went on.
      if (rest > 0n) this.add(vote.weights, powerOf(validator, rest));
    }
    const all = [...bonded.values()].reduce((sum, { tokens }) => sum + tokens, 0n) * DECIMAL_ONE;
    const threshold = proposal.isExpedited ? params.expeditedThreshold : params.threshold;
    const judged = judge({ sums, total: this.total, bonded: all }, { ...params, threshold });
    const entries = VOTE_OPTIONS.map((option) => [option, sums[option] / DECIMAL_ONE] as const);
    return { ...judged, result: Object.fromEntries(entries) as Sums };
  }
}

/** Stake of shares, 10^-18 atoken, rounded down. */
function powerOf({ tokens, shares: all }: ValidatorRecord, shares: bigint): bigint {
  return all === 0n ? 0n : (shares * tokens * DECIMAL_ONE) / all;
}

/** What was voted, in one unit. */
export interface TallySums {
  readonly sums: ByOption;
  /** Weight of all who voted. */
  readonly total: bigint;
  /** Weight of all who could have voted. */
  readonly bonded: bigint;
}

/** The rule: quorum, then veto, then threshold. */
function judge(
  { sums, total, bonded }: TallySums,
  params: Pick<
    GovParams,
    "quorum" | "threshold" | "vetoThreshold" | "burnVoteQuorum" | "burnVoteVeto"
  >,
): Pick<Outcome, "isPassed" | "burnsDeposits"> {
  const lost = { isPassed: false, burnsDeposits: false };
  if (bonded === 0n) return lost;
  if (total * DECIMAL_ONE < params.quorum * bonded)
    return { ...lost, burnsDeposits: params.burnVoteQuorum };
  const decided = total - sums.abstain;
  if (decided <= 0n) return lost;
  if (sums.veto * DECIMAL_ONE > params.vetoThreshold * total) {
    return { ...lost, burnsDeposits: params.burnVoteVeto };
  }
  return { ...lost, isPassed: sums.yes * DECIMAL_ONE > params.threshold * decided };
}

/** Delegations that a contract's view looks at, at most: a rule of the chain, paid by gas. */
const MAX_VIEW_STEPS = 20_000;

/**
 * What a proposal's votes would come to now, atoken, for contracts; queries count in slices.
 * @returns undefined where there are too many votes to count
 */
export function currentTally(
  state: JournaledState,
  proposal: ProposalRecord,
  params: GovParams,
): ByOption | undefined {
  const count = new TallyCount(state, proposal);
  return count.count(MAX_VIEW_STEPS) === undefined ? undefined : count.outcome(params).result;
}

/** Delegations that a query looks at before others get the thread: some milliseconds. */
const SLICE_STEPS = 100;

/** A tally, or how far it has come. */
export type TallySlice = { readonly result: ByOption } | { readonly progress: TallyProgress };

/**
 * Counts a slice of a proposal's votes as they are now, for queries, which must not hold up blocks.
 * @param from what the slice before came to; undefined for the first one
 */
export function tallySlice(
  state: JournaledState,
  proposal: ProposalRecord,
  params: GovParams,
  from: TallyProgress | undefined,
): TallySlice {
  const count = new TallyCount(state, proposal, from);
  if (count.count(SLICE_STEPS) === undefined) return { progress: count.progress };
  return { result: count.outcome(params).result };
}
