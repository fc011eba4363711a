/** What 0x805 answers about proposals, deposits and votes, without changing anything. */
import { type Address, ZERO_ADDRESS } from "../../../chain/address.js";
import { accountText } from "../../../chain/abci-event.js";
import { SDK_CODE } from "../../../chain/cosmos/sdk-fault.js";
import { decimalText } from "../../../chain/encoding/decimal.js";
import type { AbiValue } from "../../../chain/evm/abi/abi-values.js";
import { BASE_DENOM, type Atoken } from "../../../chain/units.js";
import { govParams } from "../../modules/gov/gov-params.js";
import {
  type ByOption,
  PROPOSAL_STATUS,
  type ProposalRecord,
  Proposals,
  type Vote,
  VOTE_OPTIONS,
} from "../../modules/gov/proposal-record.js";
import { proposalOf } from "../../modules/gov/proposing.js";
import { currentTally } from "../../modules/gov/tally.js";
import { messageFailure } from "../../modules/message-fields.js";
import { type NativeFunction, refusal } from "./abi-native.js";
import { pageOf } from "./pages.js";

const NS_PER_MS = 1_000_000n;

/** Views by name. */
export const GOV_VIEWS: Readonly<Record<string, NativeFunction>> = {
  getVote(args, call) {
    const proposal = proposalOf(call.context(), args.integer("proposalId"));
    const voter = args.address("voter");
    const vote = proposal.vote(voter);
    if (vote === undefined) {
      throw notFound(`voter: ${accountText(voter)} not found for proposal: ${proposal.id}`);
    }
    return [voteValue(proposal, vote)];
  },
  getVotes(args, call) {
    const proposal = proposalOf(call.context(), args.integer("proposalId"));
    const voters = proposal.voters(0, proposal.voterCount);
    const { items, response } = pageOf(voters, args.struct("pagination"));
    const votes = items.flatMap((voter) => {
      const vote = proposal.vote(voter);
      return vote === undefined ? [] : [voteValue(proposal, vote)];
    });
    return [votes, response];
  },
  getDeposit(args, call) {
    const proposal = proposalOf(call.context(), args.integer("proposalId"));
    const depositor = args.address("depositor");
    const amountAtoken = proposal.depositOf(depositor);
    if (amountAtoken === 0n) {
      throw notFound(`depositer: ${accountText(depositor)} not found for proposal: ${proposal.id}`);
    }
    return [depositValue(proposal, depositor, amountAtoken)];
  },
  getDeposits(args, call) {
    const proposal = proposalOf(call.context(), args.integer("proposalId"));
    const { items, response } = pageOf(proposal.deposits(), args.struct("pagination"));
    const deposits = items.map(({ depositor, amountAtoken }) =>
      depositValue(proposal, depositor, amountAtoken),
    );
    return [deposits, response];
  },
  getTallyResult(args, call) {
    const { state } = call.host;
    const proposal = proposalOf(call.context(), args.integer("proposalId"));
    const isOpen = proposal.status === PROPOSAL_STATUS.voting;
    const result = isOpen ? currentTally(state, proposal, govParams(state)) : proposal.result;
    if (result === undefined) throw refusal("there are too many votes to count in a call");
    return [tallyValue(result)];
  },
  getProposal: (args, call) => [
    proposalValue(proposalOf(call.context(), args.integer("proposalId"))),
  ],
  getProposals(args, call) {
    const status = Number(args.integer("proposalStatus"));
    const voter = args.address("voter");
    const depositor = args.address("depositor");
    const proposals = new Proposals(call.host.state);
    const isWanted = (one: ProposalRecord) =>
      one.exists &&
      (status === 0 || one.status === status) &&
      (voter === ZERO_ADDRESS || one.vote(voter) !== undefined) &&
      (depositor === ZERO_ADDRESS || one.depositOf(depositor) > 0n);
    const found: ProposalRecord[] = [];
    const { lastId } = proposals;
    // One after the other, each paid for when it is looked at: ids are cheap to make, and many.
    for (let id = 1n; id <= lastId; id += 1n) {
      const one = proposals.of(id);
      if (isWanted(one)) found.push(one);
    }
    const { items, response } = pageOf(found, args.struct("pagination"));
    return [items.map(proposalValue), response];
  },
  getParams(_args, call) {
    const params = govParams(call.host.state);
    const { proposalCancelDest } = params;
    return [
      {
        votingPeriod: durationOf(params.votingPeriodMs),
        minDeposit: coinsOf(params.minDepositAtoken),
        maxDepositPeriod: durationOf(params.maxDepositPeriodMs),
        quorum: decimalText(params.quorum),
        threshold: decimalText(params.threshold),
        vetoThreshold: decimalText(params.vetoThreshold),
        minInitialDepositRatio: decimalText(params.minInitialDepositRatio),
        proposalCancelRatio: decimalText(params.proposalCancelRatio),
        proposalCancelDest: proposalCancelDest === undefined ? "" : accountText(proposalCancelDest),
        expeditedVotingPeriod: durationOf(params.expeditedVotingPeriodMs),
        expeditedThreshold: decimalText(params.expeditedThreshold),
        expeditedMinDeposit: coinsOf(params.expeditedMinDepositAtoken),
        burnVoteQuorum: params.burnVoteQuorum,
        burnProposalDepositPrevote: params.burnProposalDepositPrevote,
        burnVoteVeto: params.burnVoteVeto,
        minDepositRatio: decimalText(params.minDepositRatio),
      },
    ];
  },
  getConstitution: () => [""],
};

function notFound(text: string) {
  return messageFailure(SDK_CODE.invalidRequest, text);
}

function voteValue({ id }: ProposalRecord, { voter, weights, metadata }: Vote): AbiValue {
  const options = VOTE_OPTIONS.flatMap((name, index) =>
    weights[name] === 0n ? [] : [{ option: BigInt(index + 1), weight: decimalText(weights[name]) }],
  );
  return { proposalId: id, voter, options, metadata };
}

function depositValue({ id }: ProposalRecord, depositor: Address, amountAtoken: Atoken): AbiValue {
  return { proposalId: id, depositor, amount: coinsOf(amountAtoken) };
}

function proposalValue(proposal: ProposalRecord): AbiValue {
  return {
    id: proposal.id,
    messages: proposal.messages.map(({ typeUrl }) => typeUrl),
    status: BigInt(proposal.status),
    finalTallyResult: tallyValue(proposal.result),
    submitTime: secondsOf(proposal.submitMs),
    depositEndTime: secondsOf(proposal.depositEndMs),
    totalDeposit: coinsOf(proposal.totalDepositAtoken),
    votingStartTime: secondsOf(proposal.votingStartMs),
    votingEndTime: secondsOf(proposal.votingEndMs),
    metadata: proposal.metadata,
    title: proposal.title,
    summary: proposal.summary,
    proposer: proposal.proposer,
  };
}

function tallyValue(result: ByOption): AbiValue {
  return {
    yes: result.yes.toString(),
    abstain: result.abstain.toString(),
    no: result.no.toString(),
    noWithVeto: result.veto.toString(),
  };
}

function coinsOf(amountAtoken: Atoken): AbiValue {
  return amountAtoken === 0n ? [] : [{ denom: BASE_DENOM, amount: amountAtoken }];
}

function secondsOf(timeMs: number): bigint {
  return BigInt(Math.floor(timeMs / 1_000));
}

function durationOf(timeMs: number): bigint {
  return BigInt(timeMs) * NS_PER_MS;
}
