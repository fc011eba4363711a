/**
 * Validators on a fake clock that help each other as nodes do: each tells what it has of its height,
 * and each sends what the other lacks by that. While the network is hostile, messages are lost, nodes
 * are parted, and liars, who are on both sides, tell everybody something else; then it is perfect, and
 * the liars are silent.
 */
import type { Address } from "../../chain/address.js";
import { type BlockId, blockIdKey } from "../../chain/consensus/block-id.js";
import type { Commit } from "../../chain/consensus/commit.js";
import { type PartSet, splitIntoParts } from "../../chain/consensus/consensus-block.js";
import { ValidatorSet } from "../../chain/consensus/validator-set.js";
import { type Vote, VOTE_TYPE } from "../../chain/consensus/vote.js";
import type { ConsensusMessage, RoundStatus } from "../../node/consensus/consensus-ports.js";
import { makeCommit } from "../../node/consensus/machine/commit-votes.js";
import {
  type ConsensusState,
  type DecidingVotes,
  type Effect,
  type Input,
  startHeight,
  STEP,
  type TimeoutStep,
} from "../../node/consensus/machine/consensus-state.js";
import {
  repairDecided,
  repairSameHeight,
  roundStatus,
} from "../../node/consensus/machine/round-status.js";
import { advance } from "../../node/consensus/machine/state-machine.js";
import { HeightBlocks } from "../../node/consensus/proposals/height-blocks.js";
import { chance, type Random } from "../helpers/random.js";
import { EventQueue } from "./event-queue.js";
import { identityOf } from "./sim-identities.js";
import { TIMEOUT_MS, TIMEOUT_STEP_MS } from "./sim-timeouts.js";

/** Pace of the statuses, and after what time the same is sent again: the reactor's. */
const STATUS_MS = 50;
const RESEND_MS = 1_000;

/** How often the nodes are parted anew. */
const PARTING_MS = 400;

/** A run's shape. */
export interface RepairOptions {
  readonly random: Random;
  readonly validators: number;
  readonly liars: number;
  /** Heights that all have to decide after that. */
  readonly heights: number;
  /** Share of messages that are lost. */
  readonly dropShare: number;
  /** Share of the time in which the honest are two groups. */
  readonly partitionShare: number;
  /** When the network becomes perfect, and when a run is given up. */
  readonly hostileMs: number;
  readonly maxMs: number;
}

/** What a run came to. */
export interface RepairResult {
  readonly isFinished: boolean;
  readonly faults: readonly string[];
  readonly maxRound: number;
  readonly conflicts: number;
  readonly timeMs: number;
  /** Where each node stands, for people. */
  readonly places: readonly string[];
}

interface Decided {
  readonly commit: Commit;
  readonly parts: PartSet;
}

class RepairNode {
  state!: ConsensusState;
  kept = new HeightBlocks();
  lastCommit: DecidingVotes | undefined;
  /** What came before its round, or before its parts were asked for. */
  early: ConsensusMessage[] = [];
  timers = 0;
  readonly decided = new Map<number, Decided>();
  /** When something was last sent to whom. */
  readonly sentAtMs = new Map<string, number>();

  constructor(
    readonly index: number,
    readonly address: Address,
    readonly isLiar: boolean,
  ) {}
}

/** A network of validators. */
export class RepairNetwork {
  private readonly clock = new EventQueue();
  private readonly genesis: ValidatorSet;
  private readonly nodes: readonly RepairNode[];
  private groups: readonly number[] = [];
  private readonly blocks = new Map<string, PartSet>();
  private readonly faults: string[] = [];
  private maxRound = 0;
  private goal: number | undefined;
  private conflicts = 0;

  constructor(private readonly options: RepairOptions) {
    const all = Array.from({ length: options.validators }, (_, index) => identityOf(index));
    this.genesis = ValidatorSet.genesis(all.map(({ publicKey }) => ({ publicKey, power: 10n })));
    this.nodes = all.map(({ address }, index) => {
      return new RepairNode(index, address, index < options.liars);
    });
  }

  /** Lets something reach a node before the run; blocks have to be made by `newBlock`. */
  give(index: number, input: Input): void {
    const node = this.nodes[index];
    if (node === undefined) throw new RangeError("no such node");
    if (node.timers === 0) this.begin(node, 1);
    if (input.type === "block") this.keep(node, input.block.id);
    this.feed(node, input);
  }

  /** Runs until all that is asked for is decided, or time is up. */
  run(): RepairResult {
    for (const node of this.nodes) if (node.timers === 0) this.begin(node, 1);
    this.partLater();
    this.helpLater();
    while (!this.isFinished && this.clock.nowMs < this.options.maxMs && this.faults.length === 0) {
      if (!this.clock.step()) break;
    }
    return {
      isFinished: this.isFinished,
      faults: this.faults,
      maxRound: this.maxRound,
      conflicts: this.conflicts,
      timeMs: this.clock.nowMs,
      places: this.nodes.map(({ index, isLiar, state }) => {
        const { height, round, step, lockedRound, commitRound } = state;
        const place = JSON.stringify({ height, round, step, lockedRound, commitRound });
        return `${index}${isLiar ? " (liar)" : ""}: ${place}`;
      }),
    };
  }

  private get isFinished(): boolean {
    if (this.isHostile) return false;
    const honest = this.nodes.filter(({ isLiar }) => !isLiar);
    this.goal ??= Math.max(...honest.map(({ decided }) => decided.size)) + this.options.heights;
    const { goal } = this;
    return honest.every(({ decided }) => decided.size >= goal);
  }

  private get isHostile(): boolean {
    return this.clock.nowMs < this.options.hostileMs;
  }

  private begin(node: RepairNode, height: number): void {
    node.timers += 1;
    node.kept = new HeightBlocks();
    node.state = startHeight({
      height,
      validators: height === 1 ? this.genesis : this.genesis.advance(height - 1),
      own: node.address,
      lastCommit: node.lastCommit,
    });
    this.schedule(node, STEP.newHeight, 0);
  }

  private schedule(node: RepairNode, step: TimeoutStep, round: number): void {
    const { timers } = node;
    this.clock.at(TIMEOUT_MS[step] + round * TIMEOUT_STEP_MS, () => {
      if (node.timers === timers) this.feed(node, { type: "timeout", step, round });
    });
  }

  private feed(node: RepairNode, input: Input): void {
    const before = { round: node.state.round, collecting: node.kept.collecting, run: node.kept };
    const { state, effects } = advance(node.state, input);
    node.state = state;
    this.maxRound = Math.max(this.maxRound, state.round);
    if (state.wantedParts === undefined) node.kept.wantNone();
    for (const effect of effects) this.perform(node, effect);
    const isMoved =
      node.state.round !== before.round ||
      node.kept !== before.run ||
      node.kept.collecting !== before.collecting;
    if (!isMoved) return;
    for (const message of node.early.splice(0)) {
      this.clock.at(0, () => this.receive(node, message));
    }
  }

  private perform(node: RepairNode, effect: Effect): void {
    switch (effect.type) {
      case "schedule":
        return this.schedule(node, effect.step, effect.round);
      case "propose":
        return this.propose(node, effect);
      case "vote":
        return this.vote(node, effect);
      case "fetch": {
        node.kept.want(effect.parts);
        const known = node.kept.byParts(effect.parts);
        if (known === undefined) return;
        const block = { id: known.id, isValid: true };
        this.clock.at(0, () => this.feed(node, { type: "block", block }));
        return;
      }
      case "commit":
        return this.commit(node, effect.blockId, effect.round);
      case "conflict":
        this.conflicts += 1;
        return;
      case "halt":
        this.faults.push(`node ${node.index}: ${effect.reason}`);
        return;
      case "moment":
        if (effect.name === "NewRound") this.retain(node);
    }
  }

  /** As `HeightRun` does. */
  private retain({ state, kept }: RepairNode): void {
    const { proposalBlock, lockedBlock, validBlock, wantedParts } = state;
    const wanted = wantedParts === undefined ? undefined : kept.byParts(wantedParts)?.id;
    kept.retain([proposalBlock?.id, lockedBlock, validBlock, wanted]);
  }

  private propose(node: RepairNode, effect: Extract<Effect, { type: "propose" }>): void {
    const { height } = node.state;
    const { round, validBlock } = effect;
    if (node.isLiar && !this.isHostile) return;
    for (const variant of node.isLiar ? [0, 1] : [0]) {
      const isAgain = variant === 0 && validBlock !== undefined;
      const blockId = isAgain
        ? validBlock
        : this.newBlock(`${height}/${round}/${node.index}/${variant}`);
      const polRound = isAgain ? effect.polRound : -1;
      const proposal = {
        height,
        round,
        polRound,
        blockId,
        timeNs: 0n,
        signature: Buffer.alloc(64, variant),
      };
      this.keep(node, blockId);
      const targets = this.nodes.filter(({ index }) => !node.isLiar || index % 2 === variant);
      for (const target of targets) {
        this.send(node, target, { type: "proposal", proposal });
        for (const part of this.partsOf(blockId).parts) {
          this.send(node, target, { type: "part", height, round, header: blockId.parts, part });
        }
      }
    }
  }

  /** The id of a block of this content. */
  newBlock(content: string): BlockId {
    const parts = splitIntoParts(Buffer.from(content));
    const { header } = parts;
    const id = { hash: header.hash, parts: header };
    this.blocks.set(blockIdKey(id), parts);
    return id;
  }

  private partsOf(id: BlockId): PartSet {
    const parts = this.blocks.get(blockIdKey(id));
    if (parts === undefined) throw new RangeError("nobody made this block");
    return parts;
  }

  private keep(node: RepairNode, id: BlockId): void {
    const { parts } = this.partsOf(id);
    node.kept.keep({ id, parts, block: undefined, executed: undefined });
  }

  private vote(node: RepairNode, effect: Extract<Effect, { type: "vote" }>): void {
    const { height, validators } = node.state;
    const { voteType: type, round, blockId } = effect;
    const vote: Vote = {
      type,
      height,
      round,
      blockId,
      timeNs: 0n,
      validatorAddress: node.address,
      validatorIndex: validators.indexOf(node.address),
      signature: new Uint8Array(64),
    };
    if (node.isLiar) return this.lie(node, vote);
    for (const target of this.nodes) this.send(node, target, { type: "vote", vote });
  }

  /** To each what the liar likes: a block, nothing, a later round, or no vote at all. */
  private lie(node: RepairNode, vote: Vote): void {
    const { random } = this.options;
    if (!this.isHostile) return;
    const known = [undefined, ...node.state.votes.prevotes(vote.round).votes()].map((one) => {
      return one?.blockId;
    });
    const choices = [vote.blockId, node.state.proposal?.blockId, ...known];
    for (const target of this.nodes) {
      const isAhead = chance(random, 0.1);
      const round = vote.round + (isAhead ? 1 + random.integer(4) : 0);
      const type = isAhead ? random.pick([VOTE_TYPE.prevote, VOTE_TYPE.precommit]) : vote.type;
      const blockId = choices[random.integer(choices.length)];
      if (chance(random, 0.2)) continue;
      this.send(node, target, { type: "vote", vote: { ...vote, type, round, blockId } });
    }
  }

  private commit(node: RepairNode, blockId: BlockId, round: number): void {
    const { height, votes, validators } = node.state;
    const precommits = votes.precommits(round);
    const commit = makeCommit(height, { round, precommits }, validators);
    for (const other of this.nodes) {
      const theirs = other.isLiar ? undefined : other.decided.get(height)?.commit.blockId;
      if (theirs !== undefined && blockIdKey(theirs) !== blockIdKey(blockId)) {
        this.faults.push(`fork at height ${height}: nodes ${node.index} and ${other.index}`);
      }
    }
    node.decided.set(height, { commit, parts: this.partsOf(blockId) });
    node.lastCommit = { round, precommits };
    this.begin(node, height + 1);
  }

  private passes(from: RepairNode, to: RepairNode): boolean {
    if (from === to || !this.isHostile) return true;
    // Liars are on both sides.
    const isParted =
      !from.isLiar && !to.isLiar && this.groups[from.index] !== this.groups[to.index];
    return !isParted && !chance(this.options.random, this.options.dropShare);
  }

  private send(from: RepairNode, to: RepairNode, message: ConsensusMessage): void {
    if (!this.passes(from, to)) return;
    const delayMs = from === to ? 0 : 1 + this.options.random.integer(20);
    this.clock.at(delayMs, () => this.receive(to, message));
  }

  private receive(node: RepairNode, message: ConsensusMessage): void {
    if (this.isEarly(node, message)) {
      node.early.push(message);
      return;
    }
    if (message.type === "vote") return this.feed(node, message);
    if (message.type === "proposal") return this.feed(node, message);
    if (message.type !== "part" || message.height !== node.state.height) return;
    const outcome = node.kept.add(message.header, message.part);
    if (outcome !== "new" || node.kept.collecting?.isComplete !== true) return;
    const id = { hash: message.header.hash, parts: message.header };
    this.keep(node, id);
    this.feed(node, { type: "block", block: { id, isValid: true } });
  }

  /** As the driver has it. */
  private isEarly({ state, kept }: RepairNode, message: ConsensusMessage): boolean {
    if (message.type === "status" || message.type === "evidence") return false;
    if (message.type === "part" && kept.collecting?.header.hash === message.header.hash)
      return false;
    const place =
      message.type === "part" ? message : message.type === "vote" ? message.vote : message.proposal;
    if (place.height !== state.height) return place.height === state.height + 1;
    if (message.type === "vote") return false;
    const isUnannounced = message.type === "part" && kept.collecting === undefined;
    return place.round > state.round || (place.round === state.round && isUnannounced);
  }

  private partLater(): void {
    this.clock.at(PARTING_MS, () => {
      const { random, partitionShare, validators } = this.options;
      const isSplit = this.isHostile && chance(random, partitionShare);
      this.groups = Array.from({ length: validators }, () => (isSplit ? random.integer(2) : 0));
      this.partLater();
    });
  }

  private helpLater(): void {
    this.clock.at(STATUS_MS, () => {
      for (const peer of this.nodes) {
        const status = roundStatus(peer.state, peer.kept);
        for (const node of this.nodes) {
          const isSilent = node.isLiar && !this.isHostile;
          if (node !== peer && !isSilent && this.passes(peer, node)) {
            this.help(node, peer, status);
          }
        }
      }
      this.helpLater();
    });
  }

  private help(node: RepairNode, peer: RepairNode, status: RoundStatus): void {
    for (const message of this.repair(node, status)) {
      if (node.isLiar && this.isKeptBack(node, message)) continue;
      const key = `${peer.index} ${keyOf(message)}`;
      const sentAtMs = node.sentAtMs.get(key) ?? Number.NEGATIVE_INFINITY;
      if (this.clock.nowMs - sentAtMs < RESEND_MS) continue;
      node.sentAtMs.set(key, this.clock.nowMs);
      this.send(node, peer, message);
    }
  }

  /** A liar hands on what others said, some of it. */
  private isKeptBack(liar: RepairNode, message: ConsensusMessage): boolean {
    const isOwn = message.type === "vote" && message.vote.validatorAddress === liar.address;
    return isOwn || chance(this.options.random, 0.7);
  }

  private repair(node: RepairNode, status: RoundStatus): readonly ConsensusMessage[] {
    const { state, kept, decided } = node;
    if (status.height === state.height) return repairSameHeight(state, kept, status);
    const old = decided.get(status.height);
    if (old === undefined) return [];
    const { header, parts } = old.parts;
    const isWanted = status.parts === undefined || status.parts.header.hash === header.hash;
    return repairDecided(old.commit, { header, parts: isWanted ? parts : [] }, status);
  }
}

/** What of the reactor's names matters here: a vote's says nothing of its block. */
function keyOf(message: ConsensusMessage): string {
  if (message.type === "vote") {
    const { type, height, round, validatorIndex } = message.vote;
    return `vote ${type} ${height} ${round} ${validatorIndex}`;
  }
  if (message.type === "part") return `part ${message.header.hash} ${message.round}`;
  return message.type === "proposal"
    ? `proposal ${message.proposal.height} ${message.proposal.round}`
    : message.type;
}
