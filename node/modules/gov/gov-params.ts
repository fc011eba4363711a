/** The parameters of governance as they hold: the expedited way is never the easier one. */
import type { Address } from "../../../chain/address.js";
import type { Atoken } from "../../../chain/units.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { moduleParam } from "../module-params.js";
import { wordAddress } from "../system-storage.js";

/** Fractions are in 10^-18, times in milliseconds. */
export interface GovParams {
  readonly minDepositAtoken: Atoken;
  readonly maxDepositPeriodMs: number;
  readonly votingPeriodMs: number;
  readonly quorum: bigint;
  readonly threshold: bigint;
  readonly vetoThreshold: bigint;
  readonly minInitialDepositRatio: bigint;
  readonly proposalCancelRatio: bigint;
  /** Undefined: what a cancelled proposal costs is burned. */
  readonly proposalCancelDest: Address | undefined;
  /** At most the voting period. */
  readonly expeditedVotingPeriodMs: number;
  /** At least the threshold. */
  readonly expeditedThreshold: bigint;
  /** At least the least deposit. */
  readonly expeditedMinDepositAtoken: Atoken;
  readonly burnVoteQuorum: boolean;
  readonly burnProposalDepositPrevote: boolean;
  readonly burnVoteVeto: boolean;
  readonly minDepositRatio: bigint;
}

/**
 * Reads all of them. A genesis may change one without the other (a voting period of a minute beside
 * the expedited one of a day), so the expedited ones are bounded by the plain ones here.
 */
export function govParams(state: JournaledState): GovParams {
  const word = (name: Parameters<typeof moduleParam<"gov">>[2]) => moduleParam(state, "gov", name);
  const minDepositAtoken = word("min_deposit");
  const votingPeriod = word("voting_period");
  const threshold = word("threshold");
  const cancelDest = word("proposal_cancel_dest");
  return {
    minDepositAtoken,
    maxDepositPeriodMs: Number(word("max_deposit_period")),
    votingPeriodMs: Number(votingPeriod),
    quorum: word("quorum"),
    threshold,
    vetoThreshold: word("veto_threshold"),
    minInitialDepositRatio: word("min_initial_deposit_ratio"),
    proposalCancelRatio: word("proposal_cancel_ratio"),
    proposalCancelDest: cancelDest === 0n ? undefined : wordAddress(cancelDest),
    expeditedVotingPeriodMs: Number(least(word("expedited_voting_period"), votingPeriod)),
    expeditedThreshold: most(word("expedited_threshold"), threshold),
    expeditedMinDepositAtoken: most(word("expedited_min_deposit"), minDepositAtoken),
    burnVoteQuorum: word("burn_vote_quorum") === 1n,
    burnProposalDepositPrevote: word("burn_proposal_deposit_prevote") === 1n,
    burnVoteVeto: word("burn_vote_veto") === 1n,
    minDepositRatio: word("min_deposit_ratio"),
  };
}

function least(left: bigint, right: bigint): bigint {
  return left < right ? left : right;
}

function most(left: bigint, right: bigint): bigint {
  return left > right ? left : right;
}
