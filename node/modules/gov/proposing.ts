/**
 * How proposals begin, and what is paid for them (x/gov `keeper/proposal.go`, `keeper/deposit.go`).
 * Deposits lie on the gov account until their proposal ends.
 */
import type { Address } from "../../../chain/address.js";
import { accountText, amountText } from "../../../chain/abci-event.js";
import { type AnyMessage, isAny } from "../../../chain/cosmos/field-schema.js";
import { MAX_PROPOSAL_MESSAGES } from "../../../chain/cosmos/governance-schemas.js";
import { textOf } from "../../../chain/cosmos/cosmos-transaction.js";
import { DECIMAL_ONE } from "../../../chain/encoding/decimal.js";
import { SDK_REFUSALS_VERSION } from "../../settings/app-version.js";
import { SDK_CODE } from "../../../chain/cosmos/sdk-fault.js";
import type { Atoken } from "../../../chain/units.js";
import type { HandlerOf } from "../message-context.js";
import { messageFailure } from "../message-fields.js";
import type { MessageFailure, ModuleContext } from "../module-context.js";
import { fixedParamsReason } from "../params/param-changes.js";
import { MODULE_ACCOUNTS } from "../system-storage.js";
import { govFailure } from "./gov-failure.js";
import { type GovParams, govParams } from "./gov-params.js";
import {
  assertAgreeing,
  assertLengths,
  assertTitled,
  type ProposalTexts,
} from "./proposal-texts.js";
import {
  type Deposit,
  encodeProposalMessages,
  PROPOSAL_STATUS,
  type ProposalRecord,
  Proposals,
} from "./proposal-record.js";

/** Bytes of all messages of a proposal: they are written to the state. */
const MAX_MESSAGE_BYTES = 32_768;
/** Proposals that wait for deposits or votes at a time: the end of a block looks at all of them. */
const MAX_WAITING = 500;
/** Proposals of one account among them. */
const MAX_WAITING_OF_PROPOSER = 50;
/** Accounts with deposits for one proposal: all of them are paid back in one block. */
const MAX_DEPOSITORS = 1_000;

/** What an account proposes. */
export interface Submission extends ProposalTexts {
  readonly proposer: Address;
  /** What the gov account does when it passes; none for a text. */
  readonly messages: readonly AnyMessage[];
  /** 0 or more. */
  readonly initialDepositAtoken: Atoken;
  readonly isExpedited: boolean;
}

/**
 * Makes a proposal and pays its first deposit.
 * @returns it, with its id. Throws `MessageFailure`
 */
export function submitProposal(
  context: ModuleContext,
  submission: Submission,
  handlerOf: HandlerOf,
): ProposalRecord {
  const { state, timeMs } = context;
  const { proposer, messages, initialDepositAtoken, isExpedited } = submission;
  const { params, messageBytes } = check(context, submission, handlerOf);
  const proposals = new Proposals(state);
  makeRoom(context, proposer, initialDepositAtoken);
  const { title, summary, metadata } = submission;
  const proposal = proposals.add({
    proposer,
    submitMs: timeMs,
    depositEndMs: timeMs + params.maxDepositPeriodMs,
    title,
    summary,
    metadata,
    isExpedited,
    messageBytes,
  });
  const id = proposal.id.toString();
  context.emit("submit_proposal", {
    proposal_id: id,
    proposal_type: proposalType(messages),
    proposal_proposer: accountText(proposer),
    proposal_messages: messages.map(({ typeUrl }) => typeUrl).join(","),
  });
  if (initialDepositAtoken > 0n) {
    const isOpened = pay(context, proposal, proposer, initialDepositAtoken);
    if (isOpened) context.emit("submit_proposal", { voting_period_start: id });
  }
  return proposal;
}

/**
 * Adds to a proposal's deposits; with enough of them the voting begins.
 * @param amountAtoken greater than zero. Throws `MessageFailure`
 */
export function depositOn(
  context: ModuleContext,
  id: bigint,
  { depositor, amountAtoken }: Deposit,
): void {
  const proposal = takingDeposits(context, id);
  const isOpened = pay(context, proposal, depositor, amountAtoken);
  if (isOpened) context.emit("proposal_deposit", { voting_period_start: id.toString() });
}

/** A proposal that takes deposits. Throws `MessageFailure`. */
export function takingDeposits(context: ModuleContext, id: bigint): ProposalRecord {
  const proposal = proposalOf(context, id);
  if (!isWaiting(proposal)) throw govFailure("inactive", id.toString());
  return proposal;
}

/**
 * Its proposer takes a proposal back: a part of the deposits is the price, the rest goes back.
 * Throws `MessageFailure`.
 */
export function cancelProposal(context: ModuleContext, id: bigint, proposer: Address): void {
  const { state } = context;
  const proposal = proposalOf(context, id);
  if (proposal.proposer !== proposer) {
    throw govFailure("proposer", `invalid proposer ${accountText(proposer)}`);
  }
  if (!isWaiting(proposal)) {
    throw govFailure("invalidProposal", "proposal should be in the deposit or voting period");
  }
  if (proposal.votingEndMs > 0 && proposal.votingEndMs < context.timeMs) {
    const text = `voting period is already ended for this proposal ${id}`;
    throw govFailure("votingEnded", text);
  }
  const { proposalCancelRatio, proposalCancelDest } = govParams(state);
  let priceAtoken = 0n;
  for (const { depositor, amountAtoken } of takeDeposits(context, proposal)) {
    const costAtoken = (amountAtoken * proposalCancelRatio) / DECIMAL_ONE;
    priceAtoken += costAtoken;
    refund(context, depositor, amountAtoken - costAtoken);
  }
  if (priceAtoken > 0n) {
    const reason = proposalCancelDest === undefined ? "DESTRUCT" : "GOV_REFUND";
    context.moveCoins(reason, MODULE_ACCOUNTS.gov, proposalCancelDest, priceAtoken);
  }
  const proposals = new Proposals(state);
  proposals.endWaiting(proposal);
  proposal.remove();
  proposals.findSoonestEnd();
  context.emit("cancel_proposal", { sender: accountText(proposer), proposal_id: id.toString() });
}

/** Gives a proposal's deposits back to those who paid them. @returns how many they are */
export function refundDeposits(context: ModuleContext, proposal: ProposalRecord): number {
  const deposits = takeDeposits(context, proposal);
  for (const { depositor, amountAtoken } of deposits) refund(context, depositor, amountAtoken);
  return deposits.length;
}

/** Destroys a proposal's deposits. @returns how many they are */
export function burnDeposits(context: ModuleContext, proposal: ProposalRecord): number {
  const deposits = takeDeposits(context, proposal);
  const sumAtoken = deposits.reduce((sum, { amountAtoken }) => sum + amountAtoken, 0n);
  if (sumAtoken > 0n) {
    context.moveCoins("DESTRUCT", MODULE_ACCOUNTS.gov, undefined, sumAtoken);
  }
  return deposits.length;
}

/** A proposal that exists. Throws `MessageFailure`. */
export function proposalOf({ state }: ModuleContext, id: bigint): ProposalRecord {
  const proposal = new Proposals(state).of(id);
  if (!proposal.exists) throw govFailure("unknownProposal", id.toString());
  return proposal;
}

/** Word for what a proposal is about, as proposals of v1beta1 were called by (D28). */
function proposalType(messages: readonly AnyMessage[]): string {
  const [first] = messages;
  if (first === undefined) return "Text";
  const known = PROPOSAL_TYPES.find(([pattern]) => pattern.test(contentName(first)));
  return known?.[1] ?? first.typeUrl;
}

const PROPOSAL_TYPES = [
  [/TextProposal$/, "Text"],
  [/CommunityPoolSpend(Proposal)?$/, "CommunityPoolSpend"],
  [/MsgUpdateParams$|ParameterChangeProposal$/, "ParameterChange"],
  [/CancelSoftwareUpgradeProposal$|MsgCancelUpgrade$/, "CancelSoftwareUpgrade"],
  [/SoftwareUpgrade(Proposal)?$/, "SoftwareUpgrade"],
] as const;

/** Of a proposal of v1beta1 what it is about, not that it is one. */
function contentName({ typeUrl, message }: AnyMessage): string {
  const { content } = message;
  return isAny(content) ? content.typeUrl : typeUrl;
}

function isWaiting({ status }: ProposalRecord): boolean {
  return status === PROPOSAL_STATUS.deposit || status === PROPOSAL_STATUS.voting;
}

function leastDeposit(params: GovParams, isExpedited: boolean): bigint {
  return isExpedited ? params.expeditedMinDepositAtoken : params.minDepositAtoken;
}

function takeDeposits({ state }: ModuleContext, proposal: ProposalRecord): Deposit[] {
  const deposits = proposal.takeDeposits();
  const sumAtoken = deposits.reduce((sum, { amountAtoken }) => sum + amountAtoken, 0n);
  new Proposals(state).addHeld(-sumAtoken);
  return deposits;
}

function refund(context: ModuleContext, depositor: Address, amountAtoken: Atoken): void {
  if (amountAtoken === 0n) return;
  context.moveCoins("GOV_REFUND", MODULE_ACCOUNTS.gov, depositor, amountAtoken);
}

/** Takes a deposit. @returns whether the voting began with it */
function pay(
  context: ModuleContext,
  proposal: ProposalRecord,
  depositor: Address,
  amountAtoken: Atoken,
): boolean {
  const { state, timeMs } = context;
  const params = govParams(state);
  const needed = leastDeposit(params, proposal.isExpedited);
  const least = (needed * params.minDepositRatio) / DECIMAL_ONE;
  if (amountAtoken < least) {
    const needs = `but need at least one of the following: ${amountText(least)}`;
    const text = `received ${amountText(amountAtoken)} ${needs}`;
    throw govFailure("depositTooSmall", text);
  }
  const isKnown = proposal.depositOf(depositor) > 0n;
  if (!isKnown && proposal.depositorCount >= MAX_DEPOSITORS) {
    const text = `proposal ${proposal.id} has deposits of ${MAX_DEPOSITORS} accounts already`;
    throw messageFailure(SDK_CODE.invalidRequest, text);
  }
  context.moveCoins("GOV_DEPOSIT", depositor, MODULE_ACCOUNTS.gov, amountAtoken);
  const proposals = new Proposals(state);
  proposal.addDeposit(depositor, amountAtoken);
  proposals.addHeld(amountAtoken);
  context.emit("proposal_deposit", {
    depositor: accountText(depositor),
    amount: amountText(amountAtoken),
    proposal_id: proposal.id.toString(),
  });
  const isEnough = proposal.totalDepositAtoken >= needed;
  if (proposal.status !== PROPOSAL_STATUS.deposit || !isEnough) return false;
  const period = proposal.isExpedited ? params.expeditedVotingPeriodMs : params.votingPeriodMs;
  proposal.openVoting(timeMs, timeMs + period);
  proposals.findSoonestEnd();
  return true;
}

/** Looks at what is submitted, in the SDK's order or in that of the first rules. */
function check(context: ModuleContext, submission: Submission, handlerOf: HandlerOf) {
  const { messages } = submission;
  assertTitled(submission);
  if (context.appVersion < SDK_REFUSALS_VERSION) {
    assertLengths(context, submission);
    const messageBytes = checkMessages(context, messages, handlerOf);
    return { params: paramsForDeposit(context, submission), messageBytes };
  }
  assertContent(submission);
  assertAgreeing(submission);
  const params = paramsForDeposit(context, submission);
  assertLengths(context, submission);
  return { params, messageBytes: checkMessages(context, messages, handlerOf) };
}

/** The parameters. Throws `MessageFailure` where the first deposit is too small for them. */
function paramsForDeposit(
  { state }: ModuleContext,
  { initialDepositAtoken, isExpedited }: Submission,
): GovParams {
  const params = govParams(state);
  const least = (leastDeposit(params, isExpedited) * params.minInitialDepositRatio) / DECIMAL_ONE;
  if (initialDepositAtoken >= least) return params;
  const was = `was (${amountText(initialDepositAtoken)}), need (${amountText(least)})`;
  throw govFailure("depositTooSmall", was);
}

function assertContent({ messages, metadata }: Submission): void {
  if (messages.length > 0 || metadata !== "") return;
  throw govFailure("noMessages", "either metadata or Msgs length must be non-nil");
}

/**
 * Only what the gov account may do, something does, and no look at it says is hopeless.
 * @returns the bytes that are stored
 */
function checkMessages(
  context: ModuleContext,
  messages: readonly AnyMessage[],
  handlerOf: HandlerOf,
): Uint8Array {
  // As many as can be read again: contracts bring them in a text without a bound.
  if (messages.length > MAX_PROPOSAL_MESSAGES) {
    const text = `${messages.length} messages, at most ${MAX_PROPOSAL_MESSAGES}`;
    throw govFailure("invalidMessage", text);
  }
  for (const one of messages) {
    const { typeUrl, schema, message } = one;
    const { signer } = schema;
    const handler = handlerOf(one);
    if (signer === undefined || handler === undefined) throw govFailure("unroutable", typeUrl);
    const reason = fixedParamsReason(schema.name);
    if (reason !== undefined) throw govFailure("invalidMessage", reason);
    const text = textOf(message, signer);
    if (text !== accountText(MODULE_ACCOUNTS.gov)) {
      throw govFailure("signer", text.slice(0, 100));
    }
    if (context.appVersion >= SDK_REFUSALS_VERSION) handler.rehearse?.(message, context);
  }
  const bytes = encodeProposalMessages(messages);
  if (bytes.length <= MAX_MESSAGE_BYTES) return bytes;
  const text = `messages of ${bytes.length} bytes, at most ${MAX_MESSAGE_BYTES}`;
  throw govFailure("invalidMessage", text);
}

/**
 * A place for one more. Where all are taken the proposal with the least deposit is dropped for one that
 * brings more: otherwise proposals that cost nothing would keep everybody else's out.
 */
function makeRoom(context: ModuleContext, proposer: Address, depositAtoken: Atoken): void {
  const proposals = new Proposals(context.state);
  if (proposals.waitingOf(proposer) >= MAX_WAITING_OF_PROPOSER) {
    const own = `${MAX_WAITING_OF_PROPOSER} proposals of ${accountText(proposer)} wait`;
    throw noRoom(context, `${own} for deposits and votes, as many as may: ${WHEN_OVER}`);
  }
  if (proposals.waitingCount < MAX_WAITING) return;
  const least = leastOf(proposals);
  if (least === undefined) {
    const all = `${MAX_WAITING} proposals are being voted on, as many as may wait`;
    throw noRoom(context, `${all}, and each keeps its place: ${WHEN_OVER}`);
  }
  if (least.depositAtoken >= depositAtoken) {
    const all = `${MAX_WAITING} proposals wait for deposits and votes, as many as may`;
    const more = `or with a deposit of more than ${amountText(least.depositAtoken)}`;
    throw noRoom(context, `${all}: ${WHEN_OVER}, ${more}`);
  }
  pushOut(context, least.proposal);
}

const WHEN_OVER = "try again when one is over";

/** What contracts are reverted with is a rule, so that the first rules keep their one text for all. */
function noRoom({ appVersion }: ModuleContext, text: string): MessageFailure {
  const first =
    `${MAX_WAITING} proposals, and ${MAX_WAITING_OF_PROPOSER} of one account, may wait for ` +
    "deposits and votes at a time: try again when one has ended, or with a higher deposit";
  const isFirst = appVersion < SDK_REFUSALS_VERSION;
  return messageFailure(SDK_CODE.invalidRequest, isFirst ? first : text);
}

/** Of those that wait for deposits the one with the least, the newest of several. */
function leastOf(proposals: Proposals) {
  const poor = proposals
    .listWaiting()
    .filter(({ status }) => status === PROPOSAL_STATUS.deposit)
    .map((proposal) => ({ proposal, depositAtoken: proposal.totalDepositAtoken }))
    .toSorted((left, right) => {
      if (left.depositAtoken !== right.depositAtoken) {
        return left.depositAtoken < right.depositAtoken ? -1 : 1;
      }
      return left.proposal.id > right.proposal.id ? -1 : 1;
    });
  return poor[0];
}

/** Forgets a proposal that did not get its deposits in time. @returns how many deposits it had */
export function dropProposal(context: ModuleContext, proposal: ProposalRecord): number {
  const { burnProposalDepositPrevote } = govParams(context.state);
  return forget(context, proposal, burnProposalDepositPrevote ? burnDeposits : refundDeposits);
}

/** Forgets one that makes room: it has missed no time, which by the first rules cost it the same. */
function pushOut(context: ModuleContext, proposal: ProposalRecord): void {
  if (context.appVersion < SDK_REFUSALS_VERSION) dropProposal(context, proposal);
  else forget(context, proposal, refundDeposits);
}

function forget(
  context: ModuleContext,
  proposal: ProposalRecord,
  endDeposits: typeof refundDeposits,
): number {
  const deposits = endDeposits(context, proposal);
  new Proposals(context.state).endWaiting(proposal);
  proposal.remove();
  context.emit("inactive_proposal", {
    proposal_id: proposal.id.toString(),
    proposal_result: "proposal_dropped",
  });
  return deposits;
}
