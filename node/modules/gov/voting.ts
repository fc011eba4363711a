/** Votes (x/gov `keeper/vote.go`): anybody may vote; what counts is the stake when voting ends. */
import type { Address } from "../../../chain/address.js";
import { accountText } from "../../../chain/abci-event.js";
import { SDK_CODE } from "../../../chain/cosmos/sdk-fault.js";
import { DECIMAL_ONE, decimalText } from "../../../chain/encoding/decimal.js";
import { SDK_REFUSALS_VERSION } from "../../settings/app-version.js";
import { messageFailure } from "../message-fields.js";
import type { ModuleContext } from "../module-context.js";
import { govFailure } from "./gov-failure.js";
import { type ByOption, PROPOSAL_STATUS, Proposals, VOTE_OPTIONS } from "./proposal-record.js";
import { assertMetadata } from "./proposal-texts.js";
import { proposalOf } from "./proposing.js";

/** One part of a vote. */
export interface WeightedOption {
  /** `cosmos.gov.v1.VoteOption`: 1 yes, 2 abstain, 3 no, 4 no with veto. */
  readonly option: number;
  /** 10^-18. */
  readonly weight: bigint;
}

/** What an account says about a proposal. */
export interface Ballot {
  readonly voter: Address;
  readonly options: readonly WeightedOption[];
  readonly metadata: string;
}

/** A vote that is not split. */
export function plainVote(option: number): readonly WeightedOption[] {
  return [{ option, weight: DECIMAL_ONE }];
}

/** Votes, in place of what the account has voted before. Throws `MessageFailure`. */
export function voteOn(context: ModuleContext, id: bigint, ballot: Ballot): void {
  const { voter, options, metadata } = ballot;
  const weights = weightsOf(options);
  const isFirst = context.appVersion < SDK_REFUSALS_VERSION;
  const proposal = isFirst ? proposalOf(context, id) : new Proposals(context.state).of(id);
  const isOpen =
    proposal.exists && proposal.status === PROPOSAL_STATUS.voting && proposal.counted.voters === 0;
  if (!isOpen) throw govFailure("inactive", id.toString());
  assertMetadata(context, metadata);
  proposal.setVote({ voter, weights, metadata });
  context.emit("proposal_vote", {
    voter: accountText(voter),
    proposal_id: id.toString(),
    option: JSON.stringify(
      options.map(({ option, weight }) => ({ option, weight: decimalText(weight) })),
    ),
  });
}

/** Each option once, each above zero, together exactly 1. */
function weightsOf(options: readonly WeightedOption[]): ByOption {
  if (options.length === 0) {
    throw messageFailure(SDK_CODE.invalidRequest, "weighted vote options cannot be empty");
  }
  const weights = { yes: 0n, abstain: 0n, no: 0n, veto: 0n };
  let sum = 0n;
  for (const { option, weight } of options) {
    const name = VOTE_OPTIONS[option - 1];
    if (name === undefined || weight <= 0n || weight > DECIMAL_ONE) {
      throw govFailure("invalidVote", `option ${option} with weight ${decimalText(weight)}`);
    }
    if (weights[name] > 0n) throw govFailure("invalidVote", "duplicated vote option");
    weights[name] = weight;
    sum += weight;
  }
  if (sum > DECIMAL_ONE) throw govFailure("invalidVote", "total weight overflow 1.00");
  if (sum < DECIMAL_ONE) throw govFailure("invalidVote", "total weight lower than 1.00");
  return weights;
}
