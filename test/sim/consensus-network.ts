/**
 * Validators on a fake clock over a network that drops, delays, reorders and partitions messages
 * and crashes nodes at any moment. Durability is as the driver promises it: inputs are logged,
 * the log is on disk before a signature leaves, and what was signed last is never forgotten.
 */
import { generateKeyPairSync } from "node:crypto";
import { type BlockId, blockIdKey } from "../../chain/consensus/block-id.js";
import {
  validatorAddress,
  ValidatorSet,
  type ValidatorUpdate,
} from "../../chain/consensus/validator-set.js";
import { type Proposal, type Vote, VOTE_TYPE } from "../../chain/consensus/vote.js";
import type { Address } from "../../chain/address.js";
import type { Hash32 } from "../../chain/hex.js";
import {
  type ConsensusState,
  type DecidingVotes,
  type Effect,
  type Input,
  startHeight,
  STEP,
  type TimeoutStep,
} from "../../node/consensus/consensus-state.js";
import { advance as advanceMachine } from "../../node/consensus/state-machine.js";
import type { Random } from "../helpers/random.js";

/** The machine, replaceable so that a broken one can be shown to fail. */
export type Machine = typeof advanceMachine;

/** A run's shape. */
export interface SimOptions {
  readonly random: Random;
  readonly validators: number;
  /** How many of them lie: two proposals, two votes. */
  readonly liars: number;
  readonly heights: number;
  readonly dropShare: number;
  /** Share of (node, round, vote type) for which the node hears nothing at all. */
  readonly deafShare: number;
  /** A chosen deafness instead of the random one: true where the node never hears the message. */
  readonly isDeaf?: (to: number, message: Heard) => boolean;
  /** Whether those that decided cannot tell the others. */
  readonly areDecisionsHidden: boolean;
  readonly maxDelayMs: number;
  readonly crashShare: number;
  readonly partitionShare: number;
  readonly machine?: Machine;
}

/** What a run came to. */
export interface SimResult {
  /** Decided blocks per node, by height. */
  readonly decisions: readonly ReadonlyMap<number, string>[];
  readonly honest: readonly number[];
  readonly timeMs: number;
  readonly isFinished: boolean;
  readonly maxRound: number;
  readonly conflicts: number;
  readonly crashes: number;
  readonly faults: readonly string[];
}

/** What a node may be kept from hearing. */
export type Heard =
  | { readonly kind: "vote"; readonly vote: Vote }
  | { readonly kind: "proposal"; readonly proposal: Proposal };

type Message =
  | Heard
  | { readonly kind: "block"; readonly blockId: BlockId; readonly height: number }
  | { readonly kind: "vote"; readonly vote: Vote }
  | {
      readonly kind: "decided";
      readonly height: number;
      readonly blockId: BlockId;
      readonly votes: readonly Vote[];
    };

interface SimEvent {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

const TIMEOUT_MS: Readonly<Record<TimeoutStep, number>> = {
  [STEP.newHeight]: 50,
  [STEP.propose]: 300,
  [STEP.prevoteWait]: 100,
  [STEP.precommitWait]: 100,
};
const TIMEOUT_STEP_MS = 60;

/** Everything is sent again at this pace: the reactor's gossip. */
const GOSSIP_MS = 150;

/** After this the network is perfect, so that every schedule must end. */
const STABLE_AFTER_MS = 6_000;

const MAX_TIME_MS = 90_000;

let identities: readonly { readonly address: Address; readonly publicKey: Uint8Array }[] = [];

function identityOf(index: number) {
  if (identities.length <= index) {
    identities = Array.from({ length: index + 1 }, (_, at) => {
      const known = identities[at];
      if (known !== undefined) return known;
      const der = generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "der" });
      const publicKey = Uint8Array.from(der.subarray(-32));
      return { address: validatorAddress(publicKey), publicKey };
    });
  }
  const identity = identities[index];
  if (identity === undefined) throw new RangeError("no such validator");
  return identity;
}

/** Address of a node's validator. */
export function simAddress(index: number): Address {
  return identityOf(index).address;
}

function hashOf(text: string): Hash32 {
  return `0x${Buffer.from(text).toString("hex").padEnd(64, "0").slice(0, 64)}` as Hash32;
}

function blockIdOf(height: number, round: number, proposer: number, variant: number): BlockId {
  const hash = hashOf(`${height}/${round}/${proposer}/${variant}`);
  return { hash, parts: { total: 1, hash } };
}

function chance(random: Random, share: number): boolean {
  return random.integer(1_000_000) < share * 1_000_000;
}

/** One validator: volatile state, and what survives a crash. */
class SimNode {
  state!: ConsensusState;
  isUp = true;
  /** On disk: inputs since the height began; the tail after `durable` may be lost. */
  log: Input[] = [];
  durable = 0;
  /** On disk: what was signed last. */
  signed:
    | { height: number; round: number; step: number; key: string; vote: Vote | undefined }
    | undefined;
  readonly decided = new Map<
    number,
    { readonly blockId: BlockId; readonly votes: readonly Vote[] }
  >();
  readonly blocks = new Map<string, BlockId>();
  lastCommit: DecidingVotes | undefined;
  timers = 0;

  constructor(
    readonly index: number,
    readonly address: Address,
    readonly isLiar: boolean,
  ) {}
}

/** A network of validators. */
export class ConsensusNetwork {
  private readonly nodes: SimNode[];
  private readonly genesis: ValidatorSet;
  private events: SimEvent[] = [];
  private nowMs = 0;
  private order = 0;
  private groups: readonly number[] = [];
  private conflicts = 0;
  private crashes = 0;
  private maxRound = 0;
  private readonly faults: string[] = [];
  private readonly machine: Machine;
  private readonly deaf = new Map<string, boolean>();

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
    this.groups = this.nodes.map(() => 0);
  }

  /** Runs until every honest node decided all heights, or time is up. */
  run(): SimResult {
    for (const node of this.nodes) this.begin(node, 1);
    for (const node of this.nodes) this.gossipLater(node);
    this.disturbLater();
    while (!this.isFinished && this.nowMs < MAX_TIME_MS && this.faults.length === 0) {
      const next = this.events.pop();
      if (next === undefined) break;
      this.nowMs = next.atMs;
      next.run();
    }
    return {
      decisions: this.nodes.map(({ decided }) => {
        return new Map([...decided].map(([height, { blockId }]) => [height, blockIdKey(blockId)]));
      }),
      honest: this.nodes.filter(({ isLiar }) => !isLiar).map(({ index }) => index),
      timeMs: this.nowMs,
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

  private get isStable(): boolean {
    return this.nowMs > STABLE_AFTER_MS;
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

  private at(delayMs: number, run: () => void): void {
    const event = { atMs: this.nowMs + delayMs, order: this.order++, run };
    // Sorted from last to first; inserting by halves keeps long runs quick.
    let [low, high] = [0, this.events.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.events[middle];
      const isLater =
        other !== undefined &&
        (other.atMs > event.atMs || (other.atMs === event.atMs && other.order > event.order));
      if (isLater) low = middle + 1;
      else high = middle;
    }
    this.events.splice(low, 0, event);
  }

  private schedule(node: SimNode, step: TimeoutStep, round: number): void {
    const { timers } = node;
    const delayMs = TIMEOUT_MS[step] + round * TIMEOUT_STEP_MS;
    this.at(delayMs, () => {
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
          this.at(0, () => this.feed(node, { type: "block", block: { id: block, isValid: true } }));
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
        !this.maySign(node, round, STEP.propose, blockIdKey(blockId), undefined)
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
    if (!this.maySign(node, round, step, blockIdKey(blockId), vote)) return;
    // Before or after the signature left: both must be survivable.
    if (this.crashesNow()) return this.crash(node);
    for (const target of this.nodes) this.send(node, target, { kind: "vote", vote });
  }

  /** The signer's rule: never back, and never two different things in one step. */
  private maySign(
    node: SimNode,
    round: number,
    step: number,
    key: string,
    vote: Vote | undefined,
  ): boolean {
    const { height } = node.state;
    node.durable = node.log.length;
    const { signed } = node;
    if (signed !== undefined) {
      const before = [signed.height, signed.round, signed.step];
      const now = [height, round, step];
      const order = before.findIndex((value, index) => value !== now[index]);
      const isBack = order >= 0 && (before[order] ?? 0) > (now[order] ?? 0);
      if (isBack) return false;
      if (order < 0) return signed.key === key;
    }
    node.signed = { height, round, step, key, vote };
    return true;
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
    const { random, dropShare, maxDelayMs } = this.options;
    if (from !== to && !this.isStable) {
      if (this.groups[from.index] !== this.groups[to.index] || chance(random, dropShare)) return;
      if (this.isDeaf(to, message)) return;
    }
    const delayMs = from === to ? 0 : 1 + random.integer(this.isStable ? 20 : maxDelayMs);
    this.at(delayMs, () => this.receive(to, message));
  }

  /** Losses that gossip does not mend: the adversary of the proofs picks whom it keeps ignorant. */
  private isDeaf(to: SimNode, message: Message): boolean {
    if (message.kind === "decided") return this.options.areDecisionsHidden;
    if (message.kind === "block") return false;
    if (this.options.isDeaf !== undefined) return this.options.isDeaf(to.index, message);
    if (message.kind === "proposal") return false;
    const { height, type, round } = message.vote;
    const key = `${to.index}/${height}/${round}/${type}`;
    const isDeaf = this.deaf.get(key) ?? chance(this.options.random, this.options.deafShare);
    this.deaf.set(key, isDeaf);
    return isDeaf;
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
    this.at(GOSSIP_MS + this.options.random.integer(50), () => {
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
    this.at(200, () => {
      if (!this.isStable) this.disturb();
      this.disturbLater();
    });
  }

  private disturb(): void {
    const { random, partitionShare } = this.options;
    const isSplit = chance(random, partitionShare);
    this.groups = this.nodes.map(() => (isSplit ? random.integer(2) : 0));
    const victim = this.nodes[random.integer(this.nodes.length)];
    if (victim?.isUp === true && this.crashesNow()) this.crash(victim);
  }

  private crashesNow(): boolean {
    return !this.isStable && chance(this.options.random, this.options.crashShare);
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
    this.at(20 + random.integer(1_500), () =>
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
