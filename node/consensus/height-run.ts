/**
 * One height's consensus: feeds the machine and does what it asks for. Everything that comes in is
 * checked, then logged, then handled; everything that is signed is logged and forced to disk
 * before it is handled and sent. Calls must not overlap.
 */
import { type BlockId, isSameBlockId, msToNs } from "../../chain/consensus/block-id.js";
import { proposedPartsOf } from "../../chain/consensus/consensus-params.js";
import {
  type Proposal,
  proposalSignBytes,
  type Vote,
  VOTE_TYPE,
  voteSignBytes,
} from "../../chain/consensus/vote.js";
import { verifySignature } from "../../chain/consensus/ed25519.js";
import type { Height } from "../../chain/hex.js";
import { Slices } from "../../runtime/process/slices.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { ChainTip } from "../blocks/chain-tip.js";
import type { Congestion } from "./proposals/congestion.js";
import { ConsensusError } from "./consensus-error.js";
import type {
  ConsensusBroadcast,
  ConsensusMoment,
  ConsensusReport,
  Reception,
} from "./consensus-ports.js";
import {
  type ConsensusState,
  type DecidingVotes,
  type Effect,
  type Input,
  startHeight,
  STEP,
  type TimeoutStep,
} from "./machine/consensus-state.js";
import { type Candidate, HeightBlocks } from "./proposals/height-blocks.js";
import { lastCommitFor } from "./proposals/last-commit.js";
import type { RoundMessage } from "./log/message-codec.js";
import { LockGuard } from "./signing/lock-guard.js";
import { type PrivateValidator, SIGN_STEP, type SignPlace } from "./signing/private-validator.js";
import {
  type BlockMakerParts,
  buildCandidate,
  judgeCandidate,
  judgeProposed,
} from "./proposals/proposal-block.js";
import { advance } from "./machine/state-machine.js";
import type { Wal } from "./log/wal.js";

/** Named crash points of consensus, for the fault tests; `node.*` ones lie between. */
export const CONSENSUS_FAILPOINTS = [
  "consensus.before-proposal-signature",
  "consensus.after-proposal-signature",
  "consensus.after-own-proposal-logged",
  "consensus.after-prevote-signature",
  "consensus.after-own-prevote-logged",
  "consensus.after-precommit-signature",
  "consensus.after-own-precommit-logged",
  "consensus.before-commit",
  "consensus.after-block-write",
  "consensus.after-end-height",
] as const;

/** One of `CONSENSUS_FAILPOINTS`. */
export type ConsensusFailpoint = (typeof CONSENSUS_FAILPOINTS)[number];

/** What a height's consensus works with. */
export interface HeightContext extends BlockMakerParts {
  readonly wal: Wal;
  /** Undefined for a node without a key. */
  readonly signer: PrivateValidator | undefined;
  readonly clock: Clock;
  readonly congestion: Congestion;
  readonly broadcast: ConsensusBroadcast;
  /** Asks for a timeout of the height in progress. */
  readonly schedule: (step: Exclude<TimeoutStep, typeof STEP.newHeight>, round: number) => void;
  readonly onMoment: (moment: ConsensusMoment) => void;
  readonly onVote: (vote: Vote) => void;
  readonly onReport: (report: ConsensusReport) => void;
  readonly failpoint: (name: ConsensusFailpoint) => void;
}

/** A decided block with the votes that decided it. */
export interface Decision {
  readonly candidate: Candidate;
  readonly votes: DecidingVotes;
}

/** What this node says to itself, handled before anything else. */
type OwnInput =
  | { readonly type: "message"; readonly message: RoundMessage }
  | { readonly type: "block"; readonly candidate: Candidate };

type ProposeEffect = Extract<Effect, { type: "propose" }>;

/** Voting step names as failpoints have them. */
const VOTE_NAME = { [VOTE_TYPE.prevote]: "prevote", [VOTE_TYPE.precommit]: "precommit" } as const;

/** The height in progress. */
export class HeightRun {
  readonly blocks = new HeightBlocks();
  /** Set once the height is decided; what comes later is of no use here. */
  decision: Decision | undefined;
  private current: ConsensusState;
  private own: OwnInput[] = [];
  /** True while the log is read back: nothing is logged, sent or newly proposed. */
  private isReplaying = false;
  private postponed: ProposeEffect | undefined;
  /** Messages signed while the log is read back; most of them are in it further on. */
  private held: OwnInput[] = [];
  private guard: LockGuard | undefined;
  private hasAbstained = false;

  constructor(
    private readonly context: HeightContext,
    readonly tip: ChainTip,
    lastCommit: DecidingVotes | undefined,
  ) {
    this.current = startHeight({
      height: tip.height + 1,
      validators: tip.validators,
      own: context.signer?.address,
      lastCommit,
    });
    this.guardLock(true);
  }

  /** What the machine knows. */
  get state(): ConsensusState {
    return this.current;
  }

  get height(): Height {
    return this.current.height;
  }

  /** A timeout of this height. */
  async onTimeout(step: TimeoutStep, round: number): Promise<void> {
    await this.log({ type: "timeout", height: this.height, round, step });
    await this.feed({ type: "timeout", step, round });
    await this.drain();
  }

  /** A message from a peer, or one of a peer's out of the log. */
  async onMessage(message: RoundMessage): Promise<Reception> {
    const reception = this.judge(message);
    if (reception !== "new") return reception;
    await this.log({ type: "message", isOwn: false, message });
    await this.take(message);
    await this.drain();
    return "new";
  }

  /** A message of this node's out of the log. */
  async onOwnMessage(message: RoundMessage): Promise<void> {
    if (message.type === "part") {
      const done = this.blocks.addOwn(message.round, message.header, message.part);
      if (done === undefined) return;
      const candidate = await judgeCandidate(this.context, this.tip, done.whole());
      return this.blocks.keepOwn(message.round, candidate);
    }
    this.guard?.onLogged(
      message.type === "vote"
        ? { ...message.vote, step: SIGN_STEP[VOTE_NAME[message.vote.type]] }
        : { ...message.proposal, step: SIGN_STEP.propose },
    );
    if (this.judge(message) !== "new") return;
    await this.take(message);
    await this.drain();
  }

  /**
   * Begins to read the log back.
   * @param isLogWhole false where records of this height were lost: see `LockGuard`
   */
  startReplay(isLogWhole: boolean): void {
    this.isReplaying = true;
    this.guardLock(isLogWhole);
  }

  private guardLock(isLogWhole: boolean): void {
    const { signer } = this.context;
    if (signer === undefined) return;
    const { height, validators } = this.current;
    const power = validators.at(validators.indexOf(signer.address))?.power ?? 0n;
    const isAlone = validators.isQuorum(power);
    this.guard = new LockGuard({ signer, height, isLogWhole, isAlone });
  }

  /**
   * The log is read: what was asked for meanwhile and is not in it is done now.
   * @returns whether it turned out that records of this height were lost
   */
  async endReplay(): Promise<boolean> {
    this.isReplaying = false;
    const { postponed } = this;
    this.postponed = undefined;
    this.own.push(...this.held);
    this.held = [];
    const isOpen = this.current.proposal === undefined && this.current.step <= STEP.propose;
    if (postponed !== undefined && postponed.round === this.current.round && isOpen) {
      await this.propose(postponed);
    }
    await this.drain();
    return this.guard?.onLogRead() === true;
  }

  private async log(record: Parameters<Wal["append"]>[0]): Promise<void> {
    if (!this.isReplaying) await this.context.wal.append(record);
  }

  /** Verifies what can be verified without handling it; "new" is to be handled. */
  private judge(message: RoundMessage): Reception {
    switch (message.type) {
      case "proposal":
        return this.judgeProposal(message.proposal);
      case "vote":
        return this.judgeVote(message.vote);
      default:
        if (message.height !== this.height) return "useless";
        return this.blocks.add(message.header, message.part) ?? "useless";
    }
  }

  private judgeProposal(proposal: Proposal): Reception {
    const { height, round, validators, proposal: known } = this.current;
    if (proposal.height !== height || proposal.round !== round) return "useless";
    if (known !== undefined) {
      return Buffer.compare(known.signature, proposal.signature) === 0 ? "known" : "useless";
    }
    const { polRound, blockId, signature } = proposal;
    // What is in the log was taken, by the bound of whoever wrote it.
    const isLarge = !this.isReplaying && blockId.parts.total > proposedPartsOf(this.tip.params);
    if (polRound < -1 || polRound >= round || isLarge) return "invalid";
    const { publicKey } = validators.proposer;
    const signBytes = proposalSignBytes(this.tip.chainId, proposal);
    return verifySignature(publicKey, signBytes, signature) ? "new" : "invalid";
  }

  private judgeVote(vote: Vote): Reception {
    const { height, lastCommit, step, votes } = this.current;
    const isLate = vote.height + 1 === height;
    if (!isLate && vote.height !== height) return "useless";
    const isUseful =
      !isLate ||
      (vote.type === VOTE_TYPE.precommit &&
        step === STEP.newHeight &&
        lastCommit?.round === vote.round);
    if (!isUseful) return "useless";
    const validators = isLate ? this.tip.lastValidators : this.current.validators;
    const validator = validators?.at(vote.validatorIndex);
    if (validator?.address !== vote.validatorAddress) return "invalid";
    const set = isLate ? lastCommit?.precommits : votes.of(vote.type, vote.round);
    if (set?.voteFor(vote.validatorIndex, vote.blockId) !== undefined) return "known";
    // Of a liar's votes only the first two are kept, and few rounds ahead: disk and time are bounded.
    const isOfUse = isLate ? set?.isOfUse(vote) : votes.isOfUse(vote, this.current.round);
    if (isOfUse !== true) return "useless";
    const signBytes = voteSignBytes(this.tip.chainId, vote);
    return verifySignature(validator.publicKey, signBytes, vote.signature) ? "new" : "invalid";
  }

  /** Handles a message that `judge` found new. */
  private async take(message: RoundMessage): Promise<void> {
    if (message.type !== "part") await this.feed(message);
    if (message.type === "vote" && !this.isReplaying) this.context.onVote(message.vote);
    await this.judgeCollected();
  }

  /** Judges the block that is collected once it is here; one that was put off, once two thirds want it. */
  private async judgeCollected(): Promise<void> {
    const { unjudged } = this.blocks;
    if (unjudged === undefined) return;
    // What is in the log is judged as whoever wrote it may have done.
    const isDue = this.isReplaying || this.current.votes.isWanted(unjudged.header);
    if (unjudged.isJudged === false && !isDue) return;
    const judge = isDue ? judgeCandidate : judgeProposed;
    const candidate = await judge(this.context, this.tip, unjudged.whole());
    unjudged.isJudged = candidate !== undefined;
    if (!this.isReplaying) {
      this.context.onReport({ type: "proposal", isAccepted: candidate?.executed !== undefined });
    }
    if (candidate === undefined) return;
    this.blocks.keep(candidate);
    this.own.push({ type: "block", candidate });
  }

  private async feed(input: Input): Promise<void> {
    const { state, effects } = advance(this.current, input);
    this.current = state;
    if (state.wantedParts === undefined) this.blocks.wantNone();
    for (const effect of effects) await this.perform(effect);
  }

  /** Handles what this node said to itself; own messages of a replay come out of the log. */
  private async drain(): Promise<void> {
    for (let next = this.own.shift(); next !== undefined; next = this.own.shift()) {
      if (next.type === "block") {
        const { id, executed } = next.candidate;
        await this.feed({ type: "block", block: { id, isValid: executed !== undefined } });
      } else if (this.isReplaying) {
        this.held.push(next);
      } else {
        await this.say(next.message);
      }
    }
  }

  /** Logs an own message, sends it and handles it, in this order. */
  private async say(message: RoundMessage): Promise<void> {
    const { wal, broadcast, failpoint } = this.context;
    // After a restart it may have been read back already; then it is only sent again.
    const isNew = this.judge(message) === "new";
    if (isNew) {
      await wal.append({ type: "message", isOwn: true, message });
      await wal.sync();
      if (message.type === "proposal") failpoint("consensus.after-own-proposal-logged");
      if (message.type === "vote") {
        failpoint(`consensus.after-own-${VOTE_NAME[message.vote.type]}-logged`);
      }
    }
    broadcast.broadcast(message);
    if (message.type === "proposal") {
      await this.sendParts(message.proposal);
      // As CometBFT counts it: a proposer receives its own, too.
      this.context.onReport({ type: "proposal", isAccepted: true });
    }
    if (isNew) await this.take(message);
  }

  private async sendParts({ height, round, blockId }: Proposal): Promise<void> {
    const header = blockId.parts;
    const slices = new Slices();
    for (const part of this.blocks.byId(blockId)?.parts ?? []) {
      this.context.broadcast.broadcast({ type: "part", height, round, header, part });
      await slices.pause();
    }
  }

  private async perform(effect: Effect): Promise<void> {
    switch (effect.type) {
      case "propose":
        if (this.isReplaying) this.postponed = effect;
        else await this.propose(effect);
        return;
      case "vote":
        return this.vote(effect);
      case "schedule":
        if (effect.step !== STEP.newHeight) this.context.schedule(effect.step, effect.round);
        return;
      case "fetch": {
        this.blocks.want(effect.parts);
        const candidate = this.blocks.byParts(effect.parts);
        if (candidate !== undefined) this.own.push({ type: "block", candidate });
        return;
      }
      case "commit":
        return this.decide(effect.blockId, effect.round);
      case "conflict":
        return this.reportConflict(effect.first, effect.second);
      case "moment":
        return this.onMoment(effect);
      case "halt":
        throw new ConsensusError("CONSENSUS_FAILURE", effect.reason);
    }
  }

  private onMoment({ name, round, step }: Extract<Effect, { type: "moment" }>): void {
    if (name === "NewRound") {
      const { proposalBlock, lockedBlock, validBlock, wantedParts } = this.current;
      // What the same step asks for again is still here, and nobody would send its parts once more.
      const wanted = wantedParts === undefined ? undefined : this.blocks.byParts(wantedParts)?.id;
      this.blocks.retain([proposalBlock?.id, lockedBlock, validBlock, wanted]);
    }
    if (this.isReplaying) return;
    const blockId = this.current.proposal?.blockId;
    this.context.onMoment({ name, height: this.height, round, step, blockId });
  }

  private reportConflict(first: Vote, second: Vote): void {
    if (second.validatorAddress === this.context.signer?.address) {
      const { height, round, type } = second;
      this.context.log.error({ height, round, type }, "a conflicting vote by this validator's key");
      return;
    }
    this.context.evidence.report(first, second);
  }

  private decide(blockId: BlockId, round: number): void {
    const candidate = this.blocks.byId(blockId);
    if (candidate?.executed === undefined) {
      throw new ConsensusError("CONSENSUS_FAILURE", "the decided block is not here");
    }
    const precommits = this.current.votes.precommits(round);
    this.decision = { candidate, votes: { round, precommits } };
  }

  private async vote(effect: Extract<Effect, { type: "vote" }>): Promise<void> {
    const { signer, wal, failpoint } = this.context;
    if (signer === undefined) return;
    const { voteType: type, round, blockId } = effect;
    const { address } = signer;
    const validatorIndex = this.current.validators.indexOf(address);
    const heard = this.current.votes.of(type, round).firstOf(validatorIndex);
    // Of an older home, or a copied one, peers know what it has signed at this height.
    if (heard !== undefined && !isSameBlockId(heard.blockId, blockId)) {
      this.context.log.error({ round, type }, "nothing is signed: its key has another vote here");
      return;
    }
    // What led here must be read back before the same vote can be asked for again.
    await wal.sync();
    const content = { type, height: this.height, round, blockId, timeNs: this.voteTimeNs() };
    const place = { height: this.height, round, step: SIGN_STEP[VOTE_NAME[type]] };
    const signed = await this.signedOrRefused(place, () => signer.signVote(content));
    if (signed === undefined) return;
    failpoint(`consensus.after-${VOTE_NAME[type]}-signature`);
    const vote: Vote = { ...content, ...signed, validatorAddress: address, validatorIndex };
    this.own.push({ type: "message", message: { type: "vote", vote } });
  }

  /** Not before the block that the round is about, so that block times never go back. */
  private voteTimeNs(): bigint {
    const { lockedBlock, proposalBlock } = this.current;
    const block = this.blocks.byId(lockedBlock ?? proposalBlock?.id)?.block;
    const nowNs = msToNs(this.context.clock.nowMs());
    const leastNs = block === undefined ? nowNs : block.header.timeNs + msToNs(1);
    return nowNs > leastNs ? nowNs : leastNs;
  }

  private async propose(effect: ProposeEffect): Promise<void> {
    const { signer, wal, clock, failpoint } = this.context;
    const { round, validBlock, polRound } = effect;
    const candidate =
      validBlock === undefined ? await this.ownCandidate(round) : this.blocks.byId(validBlock);
    if (signer === undefined || candidate === undefined) return;
    await wal.sync();
    failpoint("consensus.before-proposal-signature");
    const timeNs = msToNs(clock.nowMs());
    const content = { height: this.height, round, polRound, blockId: candidate.id, timeNs };
    const place = { height: this.height, round, step: SIGN_STEP.propose };
    const signed = await this.signedOrRefused(place, () => signer.signProposal(content));
    if (signed === undefined) return;
    failpoint("consensus.after-proposal-signature");
    const proposal: Proposal = { ...content, ...signed };
    this.own.push({ type: "message", message: { type: "proposal", proposal } });
  }

  /** The block to offer; a new one is logged, so that a restart offers the same. */
  private async ownCandidate(round: number): Promise<Candidate | undefined> {
    const known = this.blocks.ownOf(round);
    if (known !== undefined) return known;
    const { signer, wal } = this.context;
    if (signer === undefined) return undefined;
    const lastCommit = lastCommitFor(this.tip, this.current.lastCommit);
    const maxGas = this.context.congestion.gasOf(round, this.tip.params.blockMaxGas);
    const start = { lastCommit, proposer: signer.address, maxGas };
    const candidate = await buildCandidate(this.context, this.tip, start);
    const header = candidate.id.parts;
    const slices = new Slices();
    for (const part of candidate.parts) {
      await slices.pause();
      const message: RoundMessage = { type: "part", height: this.height, round, header, part };
      await wal.append({ type: "message", isOwn: true, message });
    }
    this.blocks.keepOwn(round, candidate);
    return candidate;
  }

  /** A refusal costs this node its say in the round and no more. */
  private async signedOrRefused<T>(
    place: SignPlace,
    sign: () => Promise<T>,
  ): Promise<T | undefined> {
    if (this.guard?.maySign(place) === false) {
      this.tellAbstention();
      return undefined;
    }
    try {
      const signed = await sign();
      this.guard?.onSigned(place);
      return signed;
    } catch (error) {
      const isRefusal = error instanceof ConsensusError && error.code === "SIGNATURE_REFUSED";
      if (!isRefusal) throw error;
      if (!this.isReplaying) this.context.log.error({ ...place, err: error }, "nothing is signed");
      return undefined;
    }
  }

  private tellAbstention(): void {
    if (this.hasAbstained) return;
    this.hasAbstained = true;
    this.context.log.error(
      { height: this.height },
      "nothing new is signed at this height: the log of consensus has lost records, and this " +
        "validator may have locked on a block; it votes again when the others have decided",
    );
  }
}
