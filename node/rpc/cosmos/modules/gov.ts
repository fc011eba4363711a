/** `cosmos.gov.v1.Query` and `cosmos.gov.v1beta1.Query`. */
import { toBech32 } from "../../../../chain/address.js";
import { decimalText } from "../../../../chain/encoding/decimal.js";
import { bigintToBytes, bytesToBigint, type Height } from "../../../../chain/hex.js";
import type { MessageReader, ProtoMessage } from "../../../../chain/protobuf/values.js";
import { breathe } from "../../../../runtime/process/main-thread.js";
import {
  depositOf,
  depositsOf,
  fittingProposals,
  govParams,
  lastProposalId,
  type ProposalFilter,
  type ProposalRead,
  readProposal,
  readTally,
  type Slice,
  type TallyProgress,
  voteOf,
  votesOf,
} from "../../../modules/reads/gov-reads.js";
import { invalidArgument, notFound, QueryFault } from "../errors.js";
import { coinsOf, secondsOf } from "../module-values.js";
import { MAX_PAGE_BYTES, type Page, type PageRequest, pageRequest } from "../paging.js";
import type { QueryContext, QueryHandlers } from "../registry.js";
import { accountOf, type ModuleSources } from "../sources.js";
import { depositMessage, GOV_V1, GOV_V1BETA1, type GovForm } from "./gov-proposals.js";

/** Proposals whose state is read between two pauses. */
const SLICE = 64n;

/**
 * Slices that one reader of a height serves: it keeps what it has fetched of history, and that is bounded.
 * Another one reads the same.
 */
const SLICES_PER_STATE = 100;

/** States that a proposal may have. */
const LAST_STATUS = 5;

type Params = ReturnType<typeof govParams>;

/** The queries of both versions. */
export function govQueries(sources: ModuleSources): QueryHandlers {
  return {
    ...versionQueries(sources, "/cosmos.gov.v1.Query", GOV_V1),
    ...versionQueries(sources, "/cosmos.gov.v1beta1.Query", GOV_V1BETA1),
    "/cosmos.gov.v1.Query/Params": async (request, context) => {
      const params = await readParams(sources, context);
      return { params: paramsMessage(params), ...v1Params(params, kindOf(request, true)) };
    },
    "/cosmos.gov.v1beta1.Query/Params": async (request, context) => {
      return oldParams(await readParams(sources, context), kindOf(request, false));
    },
    "/cosmos.gov.v1.Query/Constitution": () => ({ constitution: "" }),
  };
}

function versionQueries(sources: ModuleSources, service: string, form: GovForm): QueryHandlers {
  return {
    ...proposalQueries(sources, service, form),
    ...voteQueries(sources, service, form),
    ...depositQueries(sources, service),
  };
}

function proposalQueries(sources: ModuleSources, service: string, form: GovForm): QueryHandlers {
  const { modules, types } = sources;
  const readOf = async (id: bigint, { height, signal }: QueryContext) => {
    const read = await modules.at(height).read((state) => readProposal(state, id), signal);
    if (read === undefined) throw noProposal(id);
    return read;
  };
  return {
    [`${service}/Proposal`]: async (request, context) => ({
      proposal: form.proposal(types, await readOf(idIn(request), context)),
    }),
    [`${service}/Proposals`]: async (request, context) => {
      const page = pageRequest(request);
      const { items, response } = await proposalPage(sources, filterIn(request), page, context);
      const proposals: ProtoMessage[] = [];
      let sizeBytes = 0;
      for (const id of items) {
        const read = await readOf(id, context);
        sizeBytes += sizeOf(read);
        if (sizeBytes > MAX_PAGE_BYTES && proposals.length > 0) {
          // The next page is counted from the whole of this one: what is between would be on none.
          if (page.offset > 0) throw tooLarge();
          return { proposals, pagination: { ...response, next_key: bigintToBytes(id) } };
        }
        proposals.push(form.proposal(types, read));
        await breathe(context.signal);
      }
      return { proposals, pagination: response };
    },
  };
}

function voteQueries({ modules }: ModuleSources, service: string, form: GovForm): QueryHandlers {
  return {
    [`${service}/Vote`]: async (request, { height, signal }) => {
      const id = idIn(request);
      const voter = accountOf(request.text("voter"));
      const vote = await modules.at(height).read((state) => voteOf(state, id, voter), signal);
      if (vote !== undefined) return { vote: form.vote(id, vote) };
      throw invalidArgument(`voter: ${toBech32(voter)} not found for proposal: ${id}`);
    },
    [`${service}/Votes`]: async (request, context) => {
      const id = idIn(request);
      const read = (from: number, most: number) =>
        modules
          .at(context.height)
          .read((state) => votesOf(state, id, { from, most }), context.signal);
      const { items, response } = await placePage(pageRequest(request), read);
      return { votes: items.map((vote) => form.vote(id, vote)), pagination: response };
    },
    [`${service}/TallyResult`]: async (request, { height, signal }) => {
      const id = idIn(request);
      // One height for all slices: what a block changes meanwhile is read from history.
      const state = renewedStates(modules, height);
      for (let from: TallyProgress | undefined; ; ) {
        const slice = await state().read((now) => readTally(now, id, from), signal);
        if (slice === undefined) throw noProposal(id);
        if ("result" in slice) return { tally: form.tally(slice.result) };
        from = slice.progress;
        await breathe(signal);
      }
    },
  };
}

function depositQueries({ modules }: ModuleSources, service: string): QueryHandlers {
  return {
    [`${service}/Deposit`]: async (request, { height, signal }) => {
      const id = idIn(request);
      const depositor = accountOf(request.text("depositor"));
      const amountAtoken = await modules
        .at(height)
        .read((state) => depositOf(state, id, depositor), signal);
      if (amountAtoken > 0n) return { deposit: depositMessage(id, { depositor, amountAtoken }) };
      throw invalidArgument(`depositer: ${toBech32(depositor)} not found for proposal: ${id}`);
    },
    [`${service}/Deposits`]: async (request, context) => {
      const id = idIn(request);
      const read = (from: number, most: number) =>
        modules
          .at(context.height)
          .read((state) => depositsOf(state, id, { from, most }), context.signal);
      const { items, response } = await placePage(pageRequest(request), read);
      return { deposits: items.map((one) => depositMessage(id, one)), pagination: response };
    },
  };
}

/** Bytes that names and empty values of a message come to in an answer, about. */
const PART_BYTES = 64;

function sizeOf({ messages, parts, title, summary, metadata, failedReason }: ProposalRead): number {
  const texts = title.length + summary.length + metadata.length + failedReason.length;
  return messages.reduce((sum, { bytes }) => sum + bytes.length, texts + parts * PART_BYTES);
}

function tooLarge(): QueryFault {
  return new QueryFault("RESOURCE_EXHAUSTED", "the proposals are large: use a smaller limit");
}

function noProposal(id: bigint): QueryFault {
  return notFound(`proposal ${id} doesn't exist`);
}

function idIn(request: MessageReader): bigint {
  const id = request.bigint("proposal_id");
  if (id === 0n) throw invalidArgument("proposal id can not be 0");
  return id;
}

function filterIn(request: MessageReader): ProposalFilter {
  const status = request.number("proposal_status");
  if (status < 0 || status > LAST_STATUS) throw invalidArgument("invalid proposal status");
  const account = (field: string) =>
    request.text(field) === "" ? undefined : accountOf(request.text(field));
  return {
    status: status === 0 ? undefined : status,
    voter: account("voter"),
    depositor: account("depositor"),
  };
}

/** Ids of a page of proposals; its key is the id that it begins with. */
async function proposalPage(
  { modules }: ModuleSources,
  filter: ProposalFilter,
  page: PageRequest,
  { height, signal }: QueryContext,
): Promise<Page<bigint>> {
  const state = renewedStates(modules, height);
  const last = await state().read(lastProposalId, signal);
  const { key, offset, limit, isReverse, isTotalWanted } = page;
  const first = key.length === 0 ? (isReverse ? last : 1n) : bytesToBigint(key);
  const step = isReverse ? -1n : 1n;
  const isInside = (id: bigint) => id >= 1n && id <= last;
  const items: bigint[] = [];
  let next: bigint | undefined;
  let found = 0;
  for (let id = first; isInside(id); id += step * SLICE) {
    const ids = Array.from({ length: Number(SLICE) }, (_, index) => id + step * BigInt(index));
    const inside = ids.filter(isInside);
    for (const one of await state().read((now) => fittingProposals(now, inside, filter), signal)) {
      const place = found++ - offset;
      if (place >= 0 && place < limit) items.push(one);
      else if (place === limit) next = one;
    }
    if (next !== undefined && !isTotalWanted) break;
    await breathe(signal);
  }
  return {
    items,
    response: {
      ...(next !== undefined && { next_key: bigintToBytes(next) }),
      ...(isTotalWanted && { total: BigInt(found) }),
    },
  };
}

/** @returns the state of a height for the next slice. Throws HISTORY_PRUNED */
function renewedStates(modules: ModuleSources["modules"], height: Height) {
  let state = modules.at(height);
  let slices = 0;
  return () => {
    if (slices === SLICES_PER_STATE) [state, slices] = [modules.at(height), 0];
    slices += 1;
    return state;
  };
}

/**
 * A page of a list that is read by places, which only grows at its end. Its key is the place that the
 * next page begins with, counted from 1 and from the list's first, also where that is the last to come.
 */
async function placePage<Item>(
  { key, offset, limit, isReverse, isTotalWanted }: PageRequest,
  read: (from: number, most: number) => Promise<Slice<Item> | undefined>,
): Promise<Page<Item>> {
  // As in the SDK: a proposal that never was has no votes either.
  const size = (await read(0, 0))?.size ?? 0;
  const first = isReverse ? size - offset : offset + 1;
  const place = key.length === 0 ? first : Number(bytesToBigint(key.subarray(0, 6)));
  if (key.length > 0 && (place < 1 || place > size))
    throw invalidArgument("invalid pagination key");
  const count = Math.max(0, Math.min(limit, isReverse ? place : size - place + 1));
  const from = isReverse ? place - count : place - 1;
  const items = count === 0 ? [] : ((await read(from, count))?.items ?? []);
  const next = isReverse ? from : from + count + 1;
  return {
    items: isReverse ? items.toReversed() : items,
    response: {
      ...(next >= 1 && next <= size && count > 0 && { next_key: bigintToBytes(BigInt(next)) }),
      ...(isTotalWanted && { total: BigInt(size) }),
    },
  };
}

function readParams({ modules }: ModuleSources, { height, signal }: QueryContext): Promise<Params> {
  return modules.at(height).read(govParams, signal);
}

type Kind = "voting" | "tallying" | "deposit" | "";

/** Which parameters are asked for. Throws INVALID_ARGUMENT. */
function kindOf(request: MessageReader, mayBeEmpty: boolean): Kind {
  const kind = request.text("params_type");
  const isKnown = kind === "voting" || kind === "tallying" || kind === "deposit";
  if (isKnown || (kind === "" && mayBeEmpty)) return kind;
  throw invalidArgument(`${kind.slice(0, 100)} is not a valid parameter type`);
}

/** `cosmos.gov.v1.Params`. */
function paramsMessage(params: Params): ProtoMessage {
  const { proposalCancelDest } = params;
  return {
    min_deposit: coinsOf(params.minDepositAtoken),
    max_deposit_period: secondsOf(params.maxDepositPeriodMs),
    voting_period: secondsOf(params.votingPeriodMs),
    quorum: decimalText(params.quorum),
    threshold: decimalText(params.threshold),
    veto_threshold: decimalText(params.vetoThreshold),
    min_initial_deposit_ratio: decimalText(params.minInitialDepositRatio),
    proposal_cancel_ratio: decimalText(params.proposalCancelRatio),
    proposal_cancel_dest: proposalCancelDest === undefined ? "" : toBech32(proposalCancelDest),
    expedited_voting_period: secondsOf(params.expeditedVotingPeriodMs),
    expedited_threshold: decimalText(params.expeditedThreshold),
    expedited_min_deposit: coinsOf(params.expeditedMinDepositAtoken),
    burn_vote_quorum: params.burnVoteQuorum,
    burn_proposal_deposit_prevote: params.burnProposalDepositPrevote,
    burn_vote_veto: params.burnVoteVeto,
    min_deposit_ratio: decimalText(params.minDepositRatio),
  };
}

/** The three older groups of v1, of which one is asked for by its kind. */
function v1Params(params: Params, kind: Kind): ProtoMessage {
  const [quorum, threshold] = [decimalText(params.quorum), decimalText(params.threshold)];
  const veto_threshold = decimalText(params.vetoThreshold);
  switch (kind) {
    case "voting":
      return { voting_params: { voting_period: secondsOf(params.votingPeriodMs) } };
    case "deposit":
      return { deposit_params: depositParams(params) };
    case "tallying":
      return { tally_params: { quorum, threshold, veto_threshold } };
    default:
      return {};
  }
}

function depositParams(params: Params): ProtoMessage {
  return {
    min_deposit: coinsOf(params.minDepositAtoken),
    max_deposit_period: secondsOf(params.maxDepositPeriodMs),
  };
}

/** Of v1beta1, whose fractions are numbers. */
function oldParams(params: Params, kind: Kind): ProtoMessage {
  const { quorum, threshold, vetoThreshold: veto_threshold } = params;
  return kind === "tallying"
    ? { tally_params: { quorum, threshold, veto_threshold } }
    : v1Params(params, kind);
}
