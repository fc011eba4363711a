/**
 * Tendermint's algorithm as CometBFT 0.38 runs it (consensus/state.go), for one height, as a pure
 * function: (state, input) -> (state, effects). It sees no clock, disk, network or key: the driver
 * checks signatures and blocks before they come in here, and performs what comes out.
 *
 * Safety rests on three rules: a validator that precommitted a block prevotes nothing else until a
 * later round has two thirds of prevotes for something else; two thirds of prevotes of the round
 * come before every precommit for a block; and more than two thirds decide.
 */
import {
  type BlockId,
  isSameBlockId,
  type PartSetHeader,
  isSameParts,
} from "../../../chain/consensus/block-id.js";
import type { ValidatorSet } from "../../../chain/consensus/validator-set.js";
import { type Vote, VOTE_TYPE, type VoteType } from "../../../chain/consensus/vote.js";
import type { Proposal } from "../../../chain/consensus/vote.js";
import {
  type ConsensusState,
  type Effect,
  type Input,
  isProposalComplete,
  type KnownBlock,
  type MomentName,
  STEP,
  type Step,
  type TimeoutStep,
} from "./consensus-state.js";
import { isMajorityFor } from "./vote-set.js";

/** One step of the machine. */
export function advance(
  state: ConsensusState,
  input: Input,
): { readonly state: ConsensusState; readonly effects: readonly Effect[] } {
  const transition = new Transition(state);
  transition.handle(input);
  return { state: transition.state, effects: transition.effects };
}

/** One input's way through the machine; each `enter` is a function of state.go. */
class Transition {
  readonly effects: Effect[] = [];

  constructor(public state: ConsensusState) {}

  handle(input: Input): void {
    if (this.state.isDecided && input.type !== "vote") return;
    switch (input.type) {
      case "timeout":
        return this.onTimeout(input.step, input.round);
      case "proposal":
        return this.onProposal(input.proposal);
      case "block":
        return this.onBlock(input.block);
      case "vote":
        return this.onVote(input.vote);
    }
  }

  private onTimeout(step: TimeoutStep, round: number): void {
    const { state } = this;
    const isPast = round < state.round || (round === state.round && step < state.step);
    // The wait for precommits runs beside the step, as in CometBFT, where its step is higher.
    if (isPast) return;
    switch (step) {
      case STEP.newHeight:
        return this.enterNewRound(0);
      case STEP.propose:
        this.moment("TimeoutPropose");
        return this.enterPrevote(round);
      case STEP.prevoteWait:
        this.moment("TimeoutWait");
        return this.enterPrecommit(round);
      case STEP.precommitWait:
        this.moment("TimeoutWait");
        this.enterPrecommit(round);
        return this.enterNewRound(round + 1);
    }
  }

  private onProposal(proposal: Proposal): void {
    const { state } = this;
    if (state.proposal !== undefined || proposal.height !== state.height) return;
    if (proposal.round !== state.round) return;
    this.update({ proposal });
    if (state.wantedParts === undefined) this.want(proposal.blockId.parts);
    this.onComplete();
  }

  /** A block that was asked for is complete. */
  private onBlock(block: KnownBlock): void {
    const { wantedParts, proposalBlock } = this.state;
    if (wantedParts === undefined || proposalBlock !== undefined) return;
    if (!isSameParts(block.id.parts, wantedParts)) return;
    this.update({ proposalBlock: block });
    this.moment("CompleteProposal");
    this.onComplete();
  }

  private onComplete(): void {
    const { state } = this;
    if (state.proposalBlock === undefined) return;
    const { majority } = state.votes.prevotes(state.round);
    const isNewPolka = majority?.blockId !== undefined && state.validRound < state.round;
    if (isNewPolka && isSameBlockId(majority.blockId, state.proposalBlock.id)) {
      this.update({ validRound: state.round, validBlock: state.proposalBlock.id });
    }
    if (this.state.step <= STEP.propose && isProposalComplete(this.state)) {
      this.enterPrevote(this.state.round);
      if (majority !== undefined) this.enterPrecommit(this.state.round);
    } else if (this.state.step === STEP.commit) {
      this.tryCommit();
    }
  }

  private onVote(vote: Vote): void {
    const { state } = this;
    if (vote.height + 1 === state.height) return this.onLateVote(vote);
    if (vote.height !== state.height) return;
    const { votes, result } = state.votes.add(vote, state.round);
    this.update({ votes });
    if (result.outcome === "conflict") {
      this.effects.push({ type: "conflict", first: result.first, second: vote });
      if (!result.isCounted) return;
    } else if (result.outcome !== "added") {
      return;
    }
    if (this.state.isDecided) return;
    if (vote.type === VOTE_TYPE.prevote) this.onPrevote(vote.round);
    else this.onPrecommit(vote.round);
  }

  /** Precommits of the block before count for the next block's last commit for a while. */
  private onLateVote(vote: Vote): void {
    const { lastCommit, step } = this.state;
    if (vote.type !== VOTE_TYPE.precommit || step !== STEP.newHeight) return;
    if (lastCommit?.round !== vote.round) return;
    const { round, precommits } = lastCommit;
    const { set, result } = precommits.add(vote);
    this.update({ lastCommit: { round, precommits: set } });
    if (result.outcome !== "conflict") return;
    this.effects.push({ type: "conflict", first: result.first, second: vote });
  }

  private onPrevote(round: number): void {
    const prevotes = this.state.votes.prevotes(round);
    const { majority } = prevotes;
    if (majority !== undefined) this.onPolka(round, majority.blockId);
    const { state } = this;
    if (state.round < round && prevotes.hasQuorumOfAny) return this.enterNewRound(round);
    if (state.round === round && state.step >= STEP.prevote) {
      const isDecidable = isProposalComplete(state) || isMajorityFor(majority, undefined);
      if (majority !== undefined && isDecidable) this.enterPrecommit(round);
      else if (prevotes.hasQuorumOfAny) this.enterPrevoteWait(round);
      return;
    }
    // The polka that the proposal points to may be what was missing.
    if (state.proposal?.polRound === round && isProposalComplete(state)) {
      this.enterPrevote(state.round);
    }
  }

  /** More than two thirds of prevotes of a round are for one block, or for nil. */
  private onPolka(round: number, blockId: BlockId | undefined): void {
    const { lockedBlock, lockedRound } = this.state;
    const isRecent = lockedRound < round && round <= this.state.round;
    if (lockedBlock !== undefined && isRecent && !isSameBlockId(lockedBlock, blockId)) {
      this.unlock();
    }
    const { state } = this;
    if (blockId === undefined || state.validRound >= round || round !== state.round) return;
    if (isSameBlockId(state.proposalBlock?.id, blockId)) {
      this.update({ validRound: round, validBlock: blockId });
    } else {
      this.update({ proposalBlock: undefined });
    }
    if (!isSameParts(state.wantedParts, blockId.parts)) this.want(blockId.parts);
    this.moment("ValidBlock");
  }

  private onPrecommit(round: number): void {
    const precommits = this.state.votes.precommits(round);
    const { majority } = precommits;
    if (majority !== undefined) {
      this.enterNewRound(round);
      this.enterPrecommit(round);
      if (majority.blockId === undefined) this.enterPrecommitWait(round);
      else this.enterCommit(round, majority.blockId);
    } else if (this.state.round <= round && precommits.hasQuorumOfAny) {
      this.enterNewRound(round);
      this.enterPrecommitWait(round);
    }
  }

  private enterNewRound(round: number): void {
    const { state } = this;
    const isFirst = round === state.round && state.step === STEP.newHeight;
    if (round < state.round || (round === state.round && !isFirst)) return;
    if (state.step === STEP.commit) return;
    this.update({
      validators: roundsLater(state.validators, round - state.round),
      round,
      step: STEP.newRound,
      isPrecommitTimeoutSet: false,
    });
    // Round 0 keeps what came in early; later rounds have proposals of their own.
    if (round > 0) {
      this.update({ proposal: undefined, proposalBlock: undefined, wantedParts: undefined });
    }
    this.moment("NewRound");
    this.enterPropose(round);
  }

  private enterPropose(round: number): void {
    if (!this.isAhead(round, STEP.propose)) return;
    this.effects.push({ type: "schedule", step: STEP.propose, round });
    const { own, validators, validBlock, validRound } = this.state;
    if (own !== undefined && validators.proposer.address === own) {
      this.effects.push({ type: "propose", round, validBlock, polRound: validRound });
    }
    this.enter(round, STEP.propose);
    if (isProposalComplete(this.state)) this.enterPrevote(round);
  }

  private enterPrevote(round: number): void {
    if (!this.isAhead(round, STEP.prevote)) return;
    const { lockedBlock, proposalBlock } = this.state;
    const isAcceptable = proposalBlock?.isValid === true;
    // A lock binds whatever is proposed, until a later polka lifts it.
    const choice = lockedBlock ?? (isAcceptable ? proposalBlock.id : undefined);
    this.vote(VOTE_TYPE.prevote, round, choice);
    this.enter(round, STEP.prevote);
    // Votes that came early are counted now that this node has voted.
    this.onEarlyPrevotes(round);
  }

  /** In CometBFT the own prevote comes round as a message and has this effect. */
  private onEarlyPrevotes(round: number): void {
    const { majority, hasQuorumOfAny } = this.state.votes.prevotes(round);
    const isDecidable = isProposalComplete(this.state) || isMajorityFor(majority, undefined);
    if (majority !== undefined && isDecidable) this.enterPrecommit(round);
    else if (hasQuorumOfAny) this.enterPrevoteWait(round);
  }

  private enterPrevoteWait(round: number): void {
    if (!this.isAhead(round, STEP.prevoteWait)) return;
    this.enter(round, STEP.prevoteWait);
    this.effects.push({ type: "schedule", step: STEP.prevoteWait, round });
  }

  private enterPrecommit(round: number): void {
    if (!this.isAhead(round, STEP.precommit)) return;
    // A decided block is only waited for; who went on to a later round would never take it.
    if (this.state.step === STEP.commit) return;
    this.vote(VOTE_TYPE.precommit, round, this.precommitChoice(round));
    this.enter(round, STEP.precommit);
  }

  /** What to precommit; locks, unlocks and asks for the block on the way. */
  private precommitChoice(round: number): BlockId | undefined {
    const { majority } = this.state.votes.prevotes(round);
    if (majority === undefined) return undefined;
    this.moment("Polka");
    const { blockId } = majority;
    const { lockedBlock, proposalBlock, wantedParts } = this.state;
    if (blockId === undefined) {
      if (lockedBlock !== undefined) this.unlock();
      return undefined;
    }
    if (isSameBlockId(lockedBlock, blockId)) {
      this.update({ lockedRound: round });
      this.moment("Relock");
      return blockId;
    }
    if (isSameBlockId(proposalBlock?.id, blockId)) {
      if (proposalBlock?.isValid !== true) {
        this.halt("more than two thirds prevoted an invalid block");
        return undefined;
      }
      this.update({ lockedRound: round, lockedBlock: blockId });
      this.moment("Lock");
      return blockId;
    }
    // A polka for a block that is not here lifts the lock all the same.
    this.unlock();
    if (!isSameParts(wantedParts, blockId.parts)) {
      this.update({ proposalBlock: undefined });
      this.want(blockId.parts);
    }
    return undefined;
  }

  private enterPrecommitWait(round: number): void {
    const { state } = this;
    if (round < state.round || (round === state.round && state.isPrecommitTimeoutSet)) return;
    this.update({ isPrecommitTimeoutSet: true });
    this.effects.push({ type: "schedule", step: STEP.precommitWait, round });
  }

  private enterCommit(commitRound: number, blockId: BlockId): void {
    if (this.state.step === STEP.commit) return;
    this.update({ commitRound });
    this.enter(this.state.round, STEP.commit);
    const { lockedBlock, proposalBlock, wantedParts } = this.state;
    if (isSameBlockId(lockedBlock, blockId) && !isSameBlockId(proposalBlock?.id, blockId)) {
      // Locked blocks were valid and are kept by the driver.
      this.update({ proposalBlock: { id: blockId, isValid: true }, wantedParts: blockId.parts });
    } else if (!isSameBlockId(proposalBlock?.id, blockId)) {
      this.update({ proposalBlock: undefined });
      if (!isSameParts(wantedParts, blockId.parts)) this.want(blockId.parts);
      this.moment("ValidBlock");
    }
    this.tryCommit();
  }

  private tryCommit(): void {
    const { commitRound, proposalBlock, votes } = this.state;
    const blockId = votes.precommits(commitRound).majority?.blockId;
    if (blockId === undefined || !isSameBlockId(proposalBlock?.id, blockId)) return;
    if (proposalBlock?.isValid !== true) {
      return this.halt("more than two thirds precommitted an invalid block");
    }
    this.update({ isDecided: true });
    this.effects.push({ type: "commit", blockId, round: commitRound });
  }

  private isAhead(round: number, step: Step): boolean {
    const { state } = this;
    return round > state.round || (round === state.round && state.step < step);
  }

  private enter(round: number, step: Step): void {
    this.update({ round, step });
    this.moment("NewRoundStep");
  }

  private vote(voteType: VoteType, round: number, blockId: BlockId | undefined): void {
    const { own, validators } = this.state;
    if (own === undefined || validators.indexOf(own) < 0) return;
    this.effects.push({ type: "vote", voteType, round, blockId });
  }

  private unlock(): void {
    this.update({ lockedRound: -1, lockedBlock: undefined });
    this.moment("Unlock");
  }

  private want(parts: PartSetHeader): void {
    this.update({ wantedParts: parts });
    this.effects.push({ type: "fetch", parts });
  }

  private halt(reason: string): void {
    this.effects.push({ type: "halt", reason });
  }

  private moment(name: MomentName): void {
    this.effects.push({ type: "moment", name, round: this.state.round, step: this.state.step });
  }

  private update(change: Partial<ConsensusState>): void {
    this.state = { ...this.state, ...change };
  }
}

/**
 * One turn at a time: several at once may round otherwise, and who passes rounds over must expect the
 * proposers of those who went through each.
 */
function roundsLater(validators: ValidatorSet, rounds: number): ValidatorSet {
  let later = validators;
  for (let round = 0; round < rounds; round++) later = later.advance(1);
  return later;
}
