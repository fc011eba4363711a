/** Proposals, votes and deposits in the messages of gov v1 and of v1beta1, which CosmJS reads. */
import { toBech32 } from "../../../../chain/address.js";
import { DECIMAL_ONE, decimalText } from "../../../../chain/encoding/decimal.js";
import { decodeMessage } from "../../../../chain/protobuf/codec.js";
import { FIRST_SECOND } from "../../../../chain/protobuf/json-texts.js";
import { asMessage, type ProtoMessage } from "../../../../chain/protobuf/values.js";
import {
  type ByOption,
  type Deposit,
  type ProposalRead,
  type Vote,
  VOTE_OPTIONS,
} from "../../../modules/reads/gov-reads.js";
import { coinsOf, secondsOf } from "../module-values.js";
import type { QuerySources } from "../sources.js";

/** The message around a proposal of v1beta1. */
const LEGACY_CONTENT = "cosmos.gov.v1.MsgExecLegacyContent";

/** How one version of the service writes things. */
export interface GovForm {
  proposal(types: QuerySources["types"], read: ProposalRead): ProtoMessage;
  vote(id: bigint, vote: Vote): ProtoMessage;
  tally(result: ByOption): ProtoMessage;
}

function timeOrNone(name: string, timeMs: number): ProtoMessage {
  return timeMs === 0 ? {} : { [name]: secondsOf(timeMs) };
}

/** These messages cannot say "not yet": Go's zero time stands in its place. */
function timeOrGoZero(timeMs: number): ProtoMessage {
  return timeMs === 0 ? { seconds: FIRST_SECOND, nanos: 0 } : secondsOf(timeMs);
}

/** What both versions say of a proposal. */
function common(read: ProposalRead): ProtoMessage {
  return {
    status: read.status,
    submit_time: secondsOf(read.submitMs),
    deposit_end_time: secondsOf(read.depositEndMs),
    total_deposit: coinsOf(read.totalDepositAtoken),
  };
}

function anys(read: ProposalRead): readonly ProtoMessage[] {
  return read.messages.map(({ typeUrl, bytes }) => ({ type_url: typeUrl, value: bytes }));
}

/** Options with their weights, those that have one. */
function weighted(vote: Vote): readonly { readonly option: number; readonly weight: bigint }[] {
  return VOTE_OPTIONS.map((name, index) => ({
    option: index + 1,
    weight: vote.weights[name],
  })).filter(({ weight }) => weight > 0n);
}

/** `cosmos.gov.v1`. */
export const GOV_V1: GovForm = {
  proposal: (_types, read) => ({
    id: read.id,
    messages: anys(read),
    ...common(read),
    final_tally_result: GOV_V1.tally(read.result),
    ...timeOrNone("voting_start_time", read.votingStartMs),
    ...timeOrNone("voting_end_time", read.votingEndMs),
    metadata: read.metadata,
    title: read.title,
    summary: read.summary,
    proposer: toBech32(read.proposer),
    expedited: read.isExpedited,
    failed_reason: read.failedReason,
  }),
  vote: (id, vote) => ({
    proposal_id: id,
    voter: toBech32(vote.voter),
    options: weighted(vote).map(({ option, weight }) => ({ option, weight: decimalText(weight) })),
    metadata: vote.metadata,
  }),
  tally: (result) => ({
    yes_count: result.yes.toString(),
    abstain_count: result.abstain.toString(),
    no_count: result.no.toString(),
    no_with_veto_count: result.veto.toString(),
  }),
};

/** `cosmos.gov.v1beta1`: one content in place of messages. */
export const GOV_V1BETA1: GovForm = {
  proposal: (types, read) => ({
    proposal_id: read.id,
    ...contentOf(types, read),
    ...common(read),
    final_tally_result: GOV_V1BETA1.tally(read.result),
    voting_start_time: timeOrGoZero(read.votingStartMs),
    voting_end_time: timeOrGoZero(read.votingEndMs),
  }),
  vote(id, vote) {
    const options = weighted(vote);
    const [only] = options;
    const isWhole = options.length === 1 && only?.weight === DECIMAL_ONE;
    return {
      proposal_id: id,
      voter: toBech32(vote.voter),
      ...(isWhole && { option: only.option }),
      options,
    };
  },
  tally: ({ yes, abstain, no, veto }) => ({ yes, abstain, no, no_with_veto: veto }),
};

/** The content of a proposal of v1beta1; of others their first message, as the SDK shows it. */
function contentOf(types: QuerySources["types"], read: ProposalRead): ProtoMessage {
  const [first] = read.messages;
  if (first === undefined) return {};
  if (first.typeUrl !== `/${LEGACY_CONTENT}`) {
    return { content: { type_url: first.typeUrl, value: first.bytes } };
  }
  const { content } = decodeMessage(types.message(LEGACY_CONTENT), first.bytes);
  return content === undefined ? {} : { content: asMessage(content, "content") };
}

/** `Deposit`, the same in both. */
export function depositMessage(id: bigint, { depositor, amountAtoken }: Deposit): ProtoMessage {
  return { proposal_id: id, depositor: toBech32(depositor), amount: coinsOf(amountAtoken) };
}
