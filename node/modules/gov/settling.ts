/**
 * What becomes of proposals whose time is over (x/gov `abci.go`): too few deposits drop one, votes
 * pass or reject one, and what passes is executed by the gov account, all of it or nothing.
 */
import { accountText } from "../../../chain/abci-event.js";
import { ChainError } from "../../../chain/errors.js";
import { sdkFault, SDK_CODE } from "../../../chain/cosmos/sdk-fault.js";
import { outOfGas } from "../../../chain/cosmos/ante.js";
import { SDK_REFUSALS_VERSION } from "../../settings/app-version.js";
import type { HandlerOf, MessageContext } from "../message-context.js";
import { type BlockEndContext, MessageFailure } from "../module-context.js";
import { MODULE_ACCOUNTS } from "../system-storage.js";
import { type GovParams, govParams } from "./gov-params.js";
import { PROPOSAL_STATUS, type ProposalRecord, Proposals } from "./proposal-record.js";
import { burnDeposits, dropProposal, refundDeposits } from "./proposing.js";
import { TallyCount } from "./tally.js";

/** Proposals that a block settles; the others wait for the next one. */
const MAX_SETTLED = 10;
/** Delegations that are counted and deposits that go back in a block; the last lot goes whole. */
const MAX_STEPS = 2_000;
/** Gas of all messages of a proposal: a third of what one transaction may take. */
const MAX_EXECUTION_GAS = 10_000_000n;
/** Characters of the reason that are kept. */
const MAX_REASON_CHARACTERS = 500;

/** Settles proposals that are over by the block's time, as many as a block may. */
export function endProposals(context: BlockEndContext, handlerOf: HandlerOf): void {
  const { state, timeMs } = context;
  const proposals = new Proposals(state);
  const { soonestEndMs } = proposals;
  if (soonestEndMs === 0 || soonestEndMs > timeMs) return;
  const isFirst = context.appVersion < SDK_REFUSALS_VERSION;
  const begun = isFirst ? undefined : proposals.counting?.id;
  const due = proposals
    .listWaiting()
    .filter(({ endMs }) => endMs <= timeMs)
    .toSorted(byEnd(begun));
  // For each those hold that one before it may have changed, as in the SDK; not by the first rules.
  const fixed = isFirst ? govParams(state) : undefined;
  let steps = MAX_STEPS;
  for (const proposal of due.slice(0, MAX_SETTLED)) {
    if (steps <= 0) break;
    // What one before it did may have taken it back.
    if (!proposal.exists) continue;
    steps =
      proposal.status === PROPOSAL_STATUS.deposit
        ? steps - dropProposal(context, proposal)
        : settle(context, proposal, { params: fixed ?? govParams(state), handlerOf, steps });
  }
  proposals.findSoonestEnd();
}

/**
 * Those without enough deposits first, then by their ends. One whose counting has begun goes before all
 * that are counted: stake that moves meanwhile is told to one counting alone.
 */
function byEnd(begun: bigint | undefined) {
  const endOf = ({ id, endMs }: ProposalRecord) => (id === begun ? 0 : endMs);
  return (left: ProposalRecord, right: ProposalRecord): number => {
    if (left.status !== right.status) return left.status - right.status;
    if (endOf(left) !== endOf(right)) return endOf(left) - endOf(right);
    return left.id < right.id ? -1 : 1;
  };
}

interface Settling {
  readonly params: GovParams;
  readonly handlerOf: HandlerOf;
  readonly steps: number;
}

/** Counts a proposal's votes and does what they say. @returns steps that are left */
function settle(
  context: BlockEndContext,
  proposal: ProposalRecord,
  { params, handlerOf, steps }: Settling,
): number {
  const tally = new TallyCount(context.state, proposal);
  const left = tally.count(steps);
  if (left === undefined) {
    tally.pause();
    new Proposals(context.state).counting = proposal;
    return 0;
  }
  const { isPassed, burnsDeposits, result } = tally.outcome(params);
  forgetCount(context, proposal);
  if (proposal.isExpedited && !isPassed) {
    goOnAsRegular(context, proposal, params);
    return left;
  }
  const moved = burnsDeposits ? burnDeposits(context, proposal) : refundDeposits(context, proposal);
  new Proposals(context.state).endWaiting(proposal);
  proposal.result = result;
  // It is over when it acts: it takes neither itself back nor a deposit that nobody would give back.
  const isOver = isPassed && context.appVersion >= SDK_REFUSALS_VERSION;
  if (isOver) proposal.status = PROPOSAL_STATUS.passed;
  const failure = isPassed ? execute(context, proposal, handlerOf) : undefined;
  const [status, outcome, log] = !isPassed
    ? ([PROPOSAL_STATUS.rejected, "proposal_rejected", "rejected"] as const)
    : failure === undefined
      ? ([PROPOSAL_STATUS.passed, "proposal_passed", "passed"] as const)
      : ([PROPOSAL_STATUS.failed, "proposal_failed", failure.fault.log] as const);
  proposal.status = status;
  if (failure !== undefined)
    proposal.failedReason = failure.fault.log.slice(0, MAX_REASON_CHARACTERS);
  else if (!isPassed) proposal.failedReason = "proposal did not get enough votes to pass";
  told(context, proposal, outcome, log);
  return left - moved;
}

function forgetCount({ state }: BlockEndContext, proposal: ProposalRecord): void {
  if (proposal.counted.voters === 0) return;
  new Proposals(state).counting = undefined;
  const nothing = { yes: 0n, abstain: 0n, no: 0n, veto: 0n };
  proposal.counted = { voters: 0, sums: nothing, total: 0n };
}

/** One that was to be decided sooner gets the whole time; votes stay. */
function goOnAsRegular(
  context: BlockEndContext,
  proposal: ProposalRecord,
  { votingPeriodMs }: GovParams,
): void {
  proposal.isExpedited = false;
  const { votingStartMs } = proposal;
  proposal.openVoting(votingStartMs, votingStartMs + votingPeriodMs);
  const log = "expedited proposal converted to regular";
  told(context, proposal, "expedited_proposal_rejected", log);
}

function told(context: BlockEndContext, { id }: ProposalRecord, result: string, log: string): void {
  context.emit("active_proposal", {
    proposal_id: id.toString(),
    proposal_result: result,
    proposal_log: log.slice(0, MAX_REASON_CHARACTERS),
  });
}

/** Does what a proposal says. @returns why nothing of it was done */
function execute(
  context: BlockEndContext,
  proposal: ProposalRecord,
  handlerOf: HandlerOf,
): MessageFailure | undefined {
  const acting = actingAsGov(context);
  return context.attempt(() => {
    const messages = refusing("messages", () => proposal.messages);
    for (const [index, one] of messages.entries()) {
      refusing(`message ${index} (${one.typeUrl})`, () => {
        const handler = handlerOf(one);
        if (handler === undefined) throw new RangeError("nothing runs it");
        handler.run(one.message, acting);
      });
    }
    assertDepositsLeft(context);
  });
}

function actingAsGov(context: BlockEndContext): MessageContext {
  let gas = 0n;
  return {
    ...context,
    signer: MODULE_ACCOUNTS.gov,
    useGas(more, location) {
      gas += more;
      if (gas > MAX_EXECUTION_GAS) {
        throw new MessageFailure(outOfGas(location, MAX_EXECUTION_GAS, gas));
      }
    },
  };
}

/** Faults of a message are its own: a value out of range must not end the chain. */
function refusing<Result>(what: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (error instanceof MessageFailure) {
      const { fault } = error;
      throw new MessageFailure({ ...fault, log: `${what}: ${fault.log}` });
    }
    const isOwn =
      error instanceof RangeError ||
      error instanceof TypeError ||
      error instanceof SyntaxError ||
      error instanceof ChainError;
    if (!isOwn) throw error;
    throw new MessageFailure(sdkFault(SDK_CODE.invalidRequest, `${what}: ${error.message}`));
  }
}

/** The gov account holds deposits of other proposals: no proposal spends them. */
function assertDepositsLeft({ state }: BlockEndContext): void {
  const { gov } = MODULE_ACCOUNTS;
  const balanceAtoken = state.accountNow(gov)?.balanceAtoken ?? 0n;
  if (balanceAtoken >= new Proposals(state).heldAtoken) return;
  const text = `${accountText(gov)} holds deposits of proposals, which cannot be spent`;
  throw new MessageFailure(sdkFault(SDK_CODE.insufficientFunds, text));
}
