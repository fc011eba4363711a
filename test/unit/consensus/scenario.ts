/**
 * One validator's machine among others that the test speaks for. Own votes and proposals come back
 * to it as they would from the queue; timeouts come when the test says so.
 */
import type { Address } from "../../../chain/address.js";
import { type BlockId, isSameBlockId } from "../../../chain/consensus/block-id.js";
import { ValidatorSet } from "../../../chain/consensus/validator-set.js";
import { type Vote, VOTE_TYPE, type VoteType } from "../../../chain/consensus/vote.js";
import type { Hash32 } from "../../../chain/hex.js";
import {
  type ConsensusState,
  type DecidingVotes,
  type Effect,
  type Input,
  startHeight,
  STEP,
  type TimeoutStep,
} from "../../../node/consensus/machine/consensus-state.js";
import { signingKeyOf } from "../../../chain/consensus/ed25519.js";
import { advance } from "../../../node/consensus/machine/state-machine.js";

/** "nil", or the name of a block. */
export type Choice = string;

/** Ids of blocks by their names. */
export function blockNamed(name: Choice): BlockId | undefined {
  if (name === "nil") return undefined;
  const hash = `0x${Buffer.from(name).toString("hex").padEnd(64, "0")}` as Hash32;
  return { hash, parts: { total: 1, hash } };
}

function nameOf(id: BlockId | undefined): Choice {
  if (id === undefined) return "nil";
  return Buffer.from(id.hash.slice(2), "hex").toString().replaceAll("\0", "");
}

/** Validators of equal power; 0 proposes in round 0, 1 in round 1 and so on. */
export function orderedValidators(count: number): {
  readonly set: ValidatorSet;
  readonly addresses: readonly Address[];
} {
  const updates = Array.from({ length: count }, (_, index) => ({
    publicKey: signingKeyOf(Buffer.alloc(32, index + 1)).publicKey,
    power: 10n,
  }));
  const set = ValidatorSet.genesis(updates);
  const addresses = Array.from({ length: count }, (_, round) => {
    return (round === 0 ? set : set.advance(round)).proposer.address;
  });
  return { set, addresses };
}

/** A running scenario. */
export class Scenario {
  state: ConsensusState;
  /** Own votes as "type/round:block", in order. */
  readonly said: string[] = [];
  /** Own proposals as "round:block/polka round". */
  readonly proposed: string[] = [];
  readonly moments: string[] = [];
  readonly timeouts: string[] = [];
  readonly conflicts: (readonly [Vote, Vote])[] = [];
  halted: string | undefined;
  committed: { readonly block: Choice; readonly round: number } | undefined;
  private readonly height: number;
  private readonly addresses: readonly Address[];
  private readonly known = new Map<string, boolean>();
  private readonly own: Input[] = [];

  /** @param own which validator the machine is, counted by turns; -1 only follows */
  constructor(options: {
    readonly validators: number;
    readonly own: number;
    /** 1 by default. */
    readonly height?: number;
    readonly lastCommit?: DecidingVotes;
  }) {
    const { set, addresses } = orderedValidators(options.validators);
    this.addresses = addresses;
    this.height = options.height ?? 1;
    this.state = startHeight({
      height: this.height,
      validators: set,
      own: addresses[options.own],
      lastCommit: options.lastCommit,
    });
  }

  /** Begins round 0. */
  start(): this {
    return this.timeout("newHeight");
  }

  /** The present round's timeout, or another's. */
  timeout(
    step: "newHeight" | "propose" | "prevoteWait" | "precommitWait",
    round = this.state.round,
  ): this {
    const number: TimeoutStep = STEP[step];
    return this.feed({ type: "timeout", step: number, round });
  }

  /** Votes of others, by their turns. */
  prevote(round: number, block: Choice, ...who: number[]): this {
    return this.vote(VOTE_TYPE.prevote, round, block, who);
  }

  precommit(round: number, block: Choice, ...who: number[]): this {
    return this.vote(VOTE_TYPE.precommit, round, block, who);
  }

  /** Precommits of the height before, which come late. */
  late(round: number, block: Choice, ...who: number[]): this {
    const height = this.height - 1;
    for (const one of who) {
      const vote = { ...this.voteOf(VOTE_TYPE.precommit, round, block, one), height };
      this.feed({ type: "vote", vote });
    }
    return this;
  }

  /** The proposal of a round's proposer, and the block unless it is held back. */
  propose(
    round: number,
    block: Choice,
    options: {
      readonly polRound?: number;
      readonly isValid?: boolean;
      readonly held?: boolean;
    } = {},
  ): this {
    const blockId = blockNamed(block);
    if (blockId === undefined) throw new RangeError("nil is not proposed");
    const polRound = options.polRound ?? -1;
    const content = { height: this.height, round, polRound, blockId, timeNs: 0n };
    this.feed({ type: "proposal", proposal: { ...content, signature: new Uint8Array(64) } });
    return options.held === true ? this : this.deliver(block, options.isValid ?? true);
  }

  /** A block's parts are complete. */
  deliver(block: Choice, isValid = true): this {
    const id = blockNamed(block);
    if (id === undefined) throw new RangeError("nil has no parts");
    this.known.set(block, isValid);
    return this.feed({ type: "block", block: { id, isValid } });
  }

  /** Where the machine is: "height/round/step". */
  get place(): string {
    const step = Object.entries(STEP).find(([, number]) => number === this.state.step)?.[0];
    return `${this.state.height}/${this.state.round}/${step}`;
  }

  get lock(): string {
    const { lockedBlock, lockedRound } = this.state;
    return `${lockedRound}:${nameOf(lockedBlock)}`;
  }

  get valid(): string {
    const { validBlock, validRound } = this.state;
    return `${validRound}:${nameOf(validBlock)}`;
  }

  /** Own vote of a step, "none" before. */
  ownVote(type: "prevote" | "precommit", round: number): string {
    const prefix = `${type}/${round}:`;
    return this.said.find((one) => one.startsWith(prefix))?.slice(prefix.length) ?? "none";
  }

  private vote(type: VoteType, round: number, block: Choice, who: readonly number[]): this {
    for (const one of who) this.feed({ type: "vote", vote: this.voteOf(type, round, block, one) });
    return this;
  }

  private voteOf(type: VoteType, round: number, block: Choice, who: number): Vote {
    const address = this.addresses[who];
    if (address === undefined) throw new RangeError("no such validator");
    return {
      type,
      height: this.height,
      round,
      blockId: blockNamed(block),
      timeNs: 0n,
      validatorAddress: address,
      validatorIndex: this.state.validators.indexOf(address),
      signature: new Uint8Array(64),
    };
  }

  private feed(input: Input): this {
    this.own.push(input);
    for (let next = this.own.shift(); next !== undefined; next = this.own.shift()) {
      const { state, effects } = advance(this.state, next);
      this.state = state;
      for (const effect of effects) this.perform(effect);
    }
    return this;
  }

  private perform(effect: Effect): void {
    switch (effect.type) {
      case "vote": {
        const { voteType, round, blockId } = effect;
        const name = voteType === VOTE_TYPE.prevote ? "prevote" : "precommit";
        this.said.push(`${name}/${round}:${nameOf(blockId)}`);
        const who = this.addresses.findIndex((address) => address === this.state.own);
        this.own.push({ type: "vote", vote: this.voteOf(voteType, round, nameOf(blockId), who) });
        return;
      }
      case "propose": {
        const name =
          effect.validBlock === undefined ? `own${effect.round}` : nameOf(effect.validBlock);
        const polRound = effect.validBlock === undefined ? -1 : effect.polRound;
        this.proposed.push(`${effect.round}:${name}/${polRound}`);
        this.known.set(name, true);
        const blockId = blockNamed(name);
        if (blockId === undefined) return;
        const place = { height: this.height, round: effect.round };
        const content = { ...place, polRound, blockId, timeNs: 0n };
        const proposal = { ...content, signature: new Uint8Array(64) };
        this.own.push({ type: "proposal", proposal });
        return;
      }
      case "fetch": {
        for (const [name, isValid] of this.known) {
          const id = blockNamed(name);
          if (id?.parts.hash !== effect.parts.hash) continue;
          this.own.push({ type: "block", block: { id, isValid } });
        }
        return;
      }
      case "schedule": {
        const step = Object.entries(STEP).find(([, number]) => number === effect.step)?.[0];
        this.timeouts.push(`${step}/${effect.round}`);
        return;
      }
      case "commit":
        this.committed = { block: nameOf(effect.blockId), round: effect.round };
        return;
      case "conflict":
        this.conflicts.push([effect.first, effect.second]);
        return;
      case "halt":
        this.halted = effect.reason;
        return;
      case "moment":
        this.moments.push(effect.name);
    }
  }

  /** Whether a block is the one that the round is about. */
  isProposalBlock(name: Choice): boolean {
    return isSameBlockId(this.state.proposalBlock?.id, blockNamed(name));
  }
}
