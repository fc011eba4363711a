/** What is asked of governance and upgrades: proposals, deposits, votes, plans, as plain values. */
import type { Address } from "../../../chain/address.js";
import { encodeMessage, isAny, type ProtoValue } from "../../../chain/cosmos/field-schema.js";
import type { Atoken } from "../../../chain/units.js";
import { FIRST_APP_VERSION } from "../../settings/app-version.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { govParams } from "../gov/gov-params.js";
import {
  type ByOption,
  type Deposit,
  PROPOSAL_STATUS,
  Proposals,
  type ProposalRecord,
  type ProposalStatus,
  type Vote,
  VOTE_OPTIONS,
} from "../gov/proposal-record.js";
import { type TallyProgress, type TallySlice, tallySlice } from "../gov/tally.js";
import { MODULE_ACCOUNTS } from "../system-storage.js";
import { appVersion, upgradeHeight, upgradePlan } from "../upgrade/plan.js";

export {
  appVersion,
  type ByOption,
  type Deposit,
  FIRST_APP_VERSION,
  govParams,
  PROPOSAL_STATUS,
  type TallyProgress,
  upgradeHeight,
  upgradePlan,
  type Vote,
  VOTE_OPTIONS,
};

/** The account that proposed messages are signed by. */
export const GOV_ACCOUNT: Address = MODULE_ACCOUNTS.gov;

/** A proposal. Times are Unix milliseconds, 0 for none; amounts atoken. */
export interface ProposalRead {
  readonly id: bigint;
  readonly status: ProposalStatus;
  readonly proposer: Address;
  /** Messages by their type URLs, with their bytes. */
  readonly messages: readonly { readonly typeUrl: string; readonly bytes: Uint8Array }[];
  /** Messages in each other, all of these together: two bytes can be one. */
  readonly parts: number;
  readonly submitMs: number;
  readonly depositEndMs: number;
  readonly votingStartMs: number;
  readonly votingEndMs: number;
  readonly totalDepositAtoken: Atoken;
  /** Votes of a proposal that was decided. */
  readonly result: ByOption;
  readonly title: string;
  readonly summary: string;
  readonly metadata: string;
  readonly failedReason: string;
  readonly isExpedited: boolean;
}

/** Which proposals are wanted. */
export interface ProposalFilter {
  readonly status: number | undefined;
  readonly voter: Address | undefined;
  readonly depositor: Address | undefined;
}

/** The newest proposal's id; 0 before the first. */
export function lastProposalId(state: JournaledState): bigint {
  return new Proposals(state).lastId;
}

/** Those of some ids that are there and fit, in the order of the ids. */
export function fittingProposals(
  state: JournaledState,
  ids: readonly bigint[],
  { status, voter, depositor }: ProposalFilter,
): bigint[] {
  const proposals = new Proposals(state);
  return ids.filter((id) => {
    const one = proposals.of(id);
    return (
      one.exists &&
      (status === undefined || one.status === status) &&
      (voter === undefined || one.vote(voter) !== undefined) &&
      (depositor === undefined || one.depositOf(depositor) > 0n)
    );
  });
}

/** A proposal; undefined where there is none. */
export function readProposal(state: JournaledState, id: bigint): ProposalRead | undefined {
  const record = existing(state, id);
  if (record === undefined) return undefined;
  const { messages } = record;
  return {
    id,
    status: record.status,
    proposer: record.proposer,
    messages: messages.map(({ typeUrl, schema, message }) => {
      return { typeUrl, bytes: encodeMessage(schema, message) };
    }),
    parts: partsOf(messages),
    submitMs: record.submitMs,
    depositEndMs: record.depositEndMs,
    votingStartMs: record.votingStartMs,
    votingEndMs: record.votingEndMs,
    totalDepositAtoken: record.totalDepositAtoken,
    result: record.result,
    title: record.title,
    summary: record.summary,
    metadata: record.metadata,
    failedReason: record.failedReason,
    isExpedited: record.isExpedited,
  };
}

function partsOf(value: ProtoValue): number {
  if (Array.isArray(value)) return value.reduce((sum: number, one) => sum + partsOf(one), 0);
  if (typeof value !== "object" || value instanceof Uint8Array) return 0;
  if (isAny(value)) return partsOf(value.message);
  return 1 + partsOf(Object.values(value));
}

function existing(state: JournaledState, id: bigint): ProposalRecord | undefined {
  const record = new Proposals(state).of(id);
  return record.exists ? record : undefined;
}

/** Some of a long list. */
export interface Slice<Item> {
  readonly items: readonly Item[];
  readonly size: number;
}

/** Deposits of a proposal that are held, from a place on. */
export function depositsOf(
  state: JournaledState,
  id: bigint,
  { from, most }: { readonly from: number; readonly most: number },
): Slice<Deposit> | undefined {
  const record = existing(state, id);
  if (record === undefined) return undefined;
  return { items: record.deposits(from, most), size: record.depositorCount };
}

/** What an account has deposited, atoken; 0 where it has not. */
export function depositOf(state: JournaledState, id: bigint, depositor: Address): bigint {
  return existing(state, id)?.depositOf(depositor) ?? 0n;
}

/** Votes on a proposal in the order in which their accounts first voted, from a place on. */
export function votesOf(
  state: JournaledState,
  id: bigint,
  { from, most }: { readonly from: number; readonly most: number },
): Slice<Vote> | undefined {
  const record = existing(state, id);
  if (record === undefined) return undefined;
  const items = record.voters(from, most).flatMap((voter) => {
    const vote = record.vote(voter);
    return vote === undefined ? [] : [vote];
  });
  return { items, size: record.voterCount };
}

/** An account's vote; undefined where it has not voted. */
export function voteOf(state: JournaledState, id: bigint, voter: Address): Vote | undefined {
  return existing(state, id)?.vote(voter);
}

/**
 * What a proposal's votes come to, atoken: of one that is voted on, now, a slice at a time.
 * @param from what the slice before came to; undefined for the first one
 * @returns undefined without such a proposal
 */
export function readTally(
  state: JournaledState,
  id: bigint,
  from: TallyProgress | undefined,
): TallySlice | undefined {
  const record = existing(state, id);
  if (record === undefined) return undefined;
  if (record.status !== PROPOSAL_STATUS.voting) return { result: record.result };
  return tallySlice(state, record, govParams(state), from);
}
