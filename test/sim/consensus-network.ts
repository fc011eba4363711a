/**
 * Validators on a fake clock over a network that drops, delays, reorders and partitions messages
 * and crashes nodes at any moment. Durability is as the driver promises it: inputs are logged,
 * the log is on disk before a signature leaves, and what was signed last is never forgotten.
 */
import { type BlockId, blockIdKey } from "../../chain/consensus/block-id.js";
import { ValidatorSet, type ValidatorUpdate } from "../../chain/consensus/validator-set.js";
import { type Proposal, type Vote, VOTE_TYPE } from "../../chain/consensus/vote.js";
import {
  type Effect,
  type Input,
  startHeight,
  STEP,
  type TimeoutStep,
} from "../../node/consensus/machine/consensus-state.js";
import { advance as advanceMachine } from "../../node/consensus/machine/state-machine.js";
import { chance } from "../helpers/random.js";
import { EventQueue } from "./event-queue.js";
import { blockIdOf, identityOf } from "./sim-identities.js";
import { SimLinks } from "./sim-links.js";
import { SimNode } from "./sim-node.js";
import type { Machine, Message, SimOptions, SimResult } from "./sim-options.js";
import { TIMEOUT_MS, TIMEOUT_STEP_MS } from "./sim-timeouts.js";

/** Everything is sent again at this pace: the reactor's gossip. */
const GOSSIP_MS = 150;

const MAX_TIME_MS = 90_000;

/** A network of validators. */
export class ConsensusNetwork {
  private readonly nodes: SimNode[];
  private readonly genesis: ValidatorSet;
  private readonly clock = new EventQueue();
  private readonly links: SimLinks;
  private conflicts = 0;
  private crashes = 0;
  private maxRound = 0;
  private readonly faults: string[] = [];
  private readonly machine: Machine;

  constructor(private readonly options: SimOptions) {
    this.machine = options.machine ?? advanceMachine;
    const count = options.validators;
    const updates: ValidatorUpdate[] = Array.from({ length: count }, (_, index) => ({
      publicKey: identityOf(index).publicKey,
      power: 10n,
    }));
    this.genesis = ValidatorSet.genesis(updates);
    this.nodes = Array.from({ length: count }, (_, index) => {
      return new SimNode(index, identityOf(index).address, index < options.liars);
    });
    this.links = new SimLinks(options, this.clock);
  }

  /** Runs until every honest node decided all heights, or time is up. */
  run(): SimResult {
    for (const node of this.nodes) this.begin(node, 1);
    for (const node of this.nodes) this.gossipLater(node);
    this.disturbLater();
    while (!this.isFinished && this.clock.nowMs < MAX_TIME_MS && this.faults.length === 0) {
      if (!this.clock.step()) break;
    }
    return {
      decisions: this.nodes.map(({ decided }) => {
        return new Map([...decided].map(([height, { blockId }]) => [height, blockIdKey(blockId)]));
      }),
      honest: this.nodes.filter(({ isLiar }) => !isLiar).map(({ index }) => index),
      timeMs: this.clock.nowMs,
      isFinished: this.isFinished,
      maxRound: this.maxRound,
      conflicts: this.conflicts,
      crashes: this.crashes,
      faults: this.faults,
    };
  }

  private get isFinished(): boolean {
    return this.nodes.every(
      ({ isLiar, decided }) => isLiar || decided.size >= this.options.heights,
    );
  }

  private validatorsAt(height: number): ValidatorSet {
    return height === 1 ? this.genesis : this.genesis.advance(height - 1);
  }

  private begin(node: SimNode, height: number): void {
    node.log = [];
    node.durable = 0;
    node.timers += 1;
    node.state = startHeight({
      height,
      validators: this.validatorsAt(height),
      own: node.address,
      lastCommit: node.lastCommit,
    });
    this.schedule(node, STEP.newHeight, 0);
  }

  private schedule(node: SimNode, step: TimeoutStep, round: number): void {
    const { timers } = node;
    const delayMs = TIMEOUT_MS[step] + round * TIMEOUT_STEP_MS;
    this.clock.at(delayMs, () => {
      if (node.isUp && node.timers === timers) this.feed(node, { type: "timeout", step, round });
    });
  }

  /** An input reaches a node: logged, then handled. */
  private feed(node: SimNode, input: Input): void {
    if (!node.isUp) return;
    node.log.push(input);
    const { state, effects } = this.machine(node.state, input);
    node.state = state;
    this.maxRound = Math.max(this.maxRound, state.round);
    for (const effect of effects) {
      if (!node.isUp) return;
      this.perform(node, effect);
    }
  }

  private perform(node: SimNode, effect: Effect): void {
    switch (effect.type) {
      case "schedule":
        return this.schedule(node, effect.step, effect.round);
      case "propose":
        return this.propose(node, effect);
      case "vote":
        return this.vote(node, effect.voteType, effect.round, effect.blockId);
      case "fetch": {
        const block = [...node.blocks.values()].find(
          ({ parts }) => parts.hash === effect.parts.hash,
        );
        if (block !== undefined) {
          this.clock.at(0, () =>
            this.feed(node, { type: "block", block: { id: block, isValid: true } }),
          );
        }
        return;
      }
      case "conflict":
        this.conflicts += 1;
        return;
      case "commit":
        return this.commit(node, effect.blockId, effect.round);
      case "halt":
        this.faults.push(`node ${node.index}: ${effect.reason}`);
        return;
      case "moment":
        return;
    }
  }

  private propose(node: SimNode, effect: Extract<Effect, { type: "propose" }>): void {
    const { height } = node.state;
    const { round, polRound } = effect;
    const variants = node.isLiar ? [0, 1] : [0];
    variants.forEach((variant) => {
      const blockId =
        variant === 0 && effect.validBlock !== undefined
          ? effect.validBlock
          : blockIdOf(height, round, node.index, variant);
      const isReproposed = blockId === effect.validBlock;
      const proposal: Proposal = {
        height,
        round,
        polRound: isReproposed ? polRound : -1,
        blockId,
        timeNs: 0n,
        signature: new Uint8Array(64),
      };
      if (
        !node.isLiar &&
        !node.maySign({ round, step: STEP.propose, key: blockIdKey(blockId), vote: undefined })
      ) {
        return;
      }
      node.blocks.set(blockIdKey(blockId), blockId);
      const targets = node.isLiar
        ? this.nodes.filter(({ index }) => index % 2 === variant)
        : this.nodes;
      for (const target of targets) {
        this.send(node, target, { kind: "proposal", proposal });
        this.send(node, target, { kind: "block", blockId, height });
      }
    });
  }

  private vote(
    node: SimNode,
    type: Vote["type"],
    round: number,
    blockId: BlockId | undefined,
  ): void {
    const { height, validators } = node.state;
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
    if (node.isLiar) {
      // Says one thing to one half and another to the other.
      const other = chance(this.options.random, 0.5) ? undefined : [...node.blocks.values()].at(-1);
      for (const target of this.nodes) {
        const said = target.index % 2 === 0 ? vote : { ...vote, blockId: other };
        this.send(node, target, { kind: "vote", vote: said });
      }
      return;
    }
    const step = type === VOTE_TYPE.prevote ? STEP.prevote : STEP.precommit;
    if (!node.maySign({ round, step, key: blockIdKey(blockId), vote })) return;
    // Before or after the signature left: both must be survivable.
    if (this.crashesNow()) return this.crash(node);
    for (const target of this.nodes) this.send(node, target, { kind: "vote", vote });
  }

  private commit(node: SimNode, blockId: BlockId, round: number): void {
    const { height, votes } = node.state;
    const precommits = votes.precommits(round);
    const proof = [...precommits.votes()].filter(
      (vote) => blockIdKey(vote.blockId) === blockIdKey(blockId),
    );
    this.decide(node, height, blockId, proof);
    node.lastCommit = { round, precommits };
    if (this.crashesNow()) return this.crash(node);
    this.begin(node, height + 1);
  }

  private decide(node: SimNode, height: number, blockId: BlockId, votes: readonly Vote[]): void {
    const known = node.decided.get(height);
    if (known !== undefined && blockIdKey(known.blockId) !== blockIdKey(blockId)) {
      this.faults.push(`node ${node.index} decided height ${height} twice`);
    }
    for (const other of this.nodes) {
      const theirs = other.isLiar ? undefined : other.decided.get(height);
      if (theirs !== undefined && blockIdKey(theirs.blockId) !== blockIdKey(blockId)) {
        this.faults.push(`fork at height ${height}: nodes ${node.index} and ${other.index}`);
      }
    }
    const power = BigInt(new Set(votes.map(({ validatorIndex }) => validatorIndex)).size) * 10n;
    if (!this.genesis.isQuorum(power)) {
      this.faults.push(`node ${node.index} decided without two thirds`);
    }
    node.decided.set(height, { blockId, votes });
  }

  private send(from: SimNode, to: SimNode, message: Message): void {
    if (!this.links.passes(from.index, to.index, message)) return;
    const delayMs = this.links.delayMs(from.index, to.index);
    this.clock.at(delayMs, () => this.receive(to, message));
  }

  private receive(node: SimNode, message: Message): void {
    if (!node.isUp) return;
    if (message.kind === "decided") return this.catchUp(node, message);
    if (message.kind === "block") {
      node.blocks.set(blockIdKey(message.blockId), message.blockId);
      return this.feed(node, { type: "block", block: { id: message.blockId, isValid: true } });
    }
    if (message.kind === "proposal") {
      const { proposal } = message;
      const isCurrent =
        proposal.height === node.state.height && proposal.round === node.state.round;
      if (isCurrent) this.feed(node, { type: "proposal", proposal });
      return;
    }
    this.feed(node, { type: "vote", vote: message.vote });
  }

  /** Block sync: a decided block with its commit, one height at a time. */
  private catchUp(node: SimNode, message: Extract<Message, { kind: "decided" }>): void {
    if (message.height !== node.state.height || node.state.isDecided) return;
    this.decide(node, message.height, message.blockId, message.votes);
    node.lastCommit = undefined;
    this.begin(node, message.height + 1);
  }

  private gossipLater(node: SimNode): void {
    this.clock.at(GOSSIP_MS + this.options.random.integer(50), () => {
      if (node.isUp && !node.isLiar) this.gossip(node);
      this.gossipLater(node);
    });
  }

  /** Sends what a peer may lack: votes, proposal and block of the height, or older decisions. */
  private gossip(node: SimNode): void {
    const { state } = node;
    for (const peer of this.nodes) {
      if (peer === node) continue;
      const old = node.decided.get(peer.state.height);
      if (old !== undefined) {
        this.send(node, peer, { kind: "decided", height: peer.state.height, ...old });
        continue;
      }
      if (peer.state.height !== state.height) continue;
      for (const round of state.votes.knownRounds()) {
        for (const set of [state.votes.prevotes(round), state.votes.precommits(round)]) {
          for (const vote of set.votes()) this.send(node, peer, { kind: "vote", vote });
        }
      }
      if (state.proposal !== undefined) {
        this.send(node, peer, { kind: "proposal", proposal: state.proposal });
      }
      const known = [state.proposalBlock?.id, state.lockedBlock, state.validBlock];
      for (const blockId of known) {
        if (blockId !== undefined)
          this.send(node, peer, { kind: "block", blockId, height: state.height });
      }
    }
  }

  private disturbLater(): void {
    this.clock.at(200, () => {
      if (!this.links.isStable) this.disturb();
      this.disturbLater();
    });
  }

  private disturb(): void {
    const { random } = this.options;
    this.links.shuffle();
    const victim = this.nodes[random.integer(this.nodes.length)];
    if (victim?.isUp === true && this.crashesNow()) this.crash(victim);
  }

  private crashesNow(): boolean {
    return !this.links.isStable && chance(this.options.random, this.options.crashShare);
  }

  /** Power off: the log's tail that was not forced to disk may be gone. */
  private crash(node: SimNode): void {
    const { random } = this.options;
    this.crashes += 1;
    node.isUp = false;
    node.timers += 1;
    const keep = node.durable + random.integer(node.log.length - node.durable + 1);
    const log = node.log.slice(0, keep);
    const { height } = node.state;
    const isDecidedHeight = node.decided.has(height);
    this.clock.at(20 + random.integer(1_500), () =>
      this.restart(node, isDecidedHeight ? height + 1 : height, log),
    );
  }

  private restart(node: SimNode, height: number, log: readonly Input[]): void {
    node.isUp = true;
    const isNew = height !== node.state.height;
    this.begin(node, height);
    if (isNew) return;
    for (const input of log) this.feed(node, input);
    // The last signature may never have left: it is sent again, the very same.
    const { signed } = node;
    if (signed?.height === height && signed.vote !== undefined) {
      for (const target of this.nodes) this.send(node, target, { kind: "vote", vote: signed.vote });
    }
  }
}
