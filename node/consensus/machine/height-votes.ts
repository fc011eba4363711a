/** All votes of one height: a pair of sets for each round that matters. Immutable. */
import { isSameParts, type PartSetHeader } from "../../../chain/consensus/block-id.js";
import type { ValidatorSet } from "../../../chain/consensus/validator-set.js";
import { type Vote, VOTE_TYPE, type VoteType } from "../../../chain/consensus/vote.js";
import { type AddOutcome, VoteSet } from "./vote-set.js";

interface RoundVotes {
  readonly prevotes: VoteSet;
  readonly precommits: VoteSet;
}

/** What became of a vote that was offered. */
export type VoteOutcome =
  | AddOutcome
  /** The round is so far ahead that the validator has used up what it may fill there. */
  | { readonly outcome: "too-far" };

/**
 * Rounds beyond the next one in which a validator's votes are kept: enough to learn that the
 * others are ahead, and a bound on what one validator can make us store.
 */
const MAX_AHEAD_ROUNDS_PER_VALIDATOR = 2;

/** Votes by round. */
export class HeightVotes {
  private constructor(
    private readonly validators: ValidatorSet,
    private readonly rounds: ReadonlyMap<number, RoundVotes>,
    /** Rounds far ahead in which each validator voted. */
    private readonly ahead: ReadonlyMap<number, ReadonlySet<number>>,
  ) {}

  /** No votes of the height yet. */
  static empty(validators: ValidatorSet): HeightVotes {
    return new HeightVotes(validators, new Map(), new Map());
  }

  /** Prevotes of a round. */
  prevotes(round: number): VoteSet {
    return this.rounds.get(round)?.prevotes ?? VoteSet.empty(this.validators);
  }

  /** Precommits of a round. */
  precommits(round: number): VoteSet {
    return this.rounds.get(round)?.precommits ?? VoteSet.empty(this.validators);
  }

  /** The votes of a type in a round. */
  of(type: VoteType, round: number): VoteSet {
    return type === VOTE_TYPE.prevote ? this.prevotes(round) : this.precommits(round);
  }

  /** Rounds with votes, ascending. */
  knownRounds(): number[] {
    return [...this.rounds.keys()].toSorted((a, b) => a - b);
  }

  /** Whether two thirds of a round voted for the block of these parts: decided, or about to be. */
  isWanted(parts: PartSetHeader): boolean {
    return [...this.rounds.values()].some(({ prevotes, precommits }) =>
      [prevotes, precommits].some(({ majority }) => isSameParts(majority?.blockId?.parts, parts)),
    );
  }

  /** Whether `add` would count a vote: others are not worth a signature check or a log entry. */
  isOfUse(vote: Vote, currentRound: number): boolean {
    const isTooFar = this.aheadWith(vote.validatorIndex, vote.round, currentRound) === undefined;
    return !isTooFar && this.of(vote.type, vote.round).isOfUse(vote);
  }

  /** Counts a vote; `currentRound` decides what is far ahead. */
  add(
    vote: Vote,
    currentRound: number,
  ): { readonly votes: HeightVotes; readonly result: VoteOutcome } {
    const { round, type, validatorIndex } = vote;
    const ahead = this.aheadWith(validatorIndex, round, currentRound);
    if (ahead === undefined) return { votes: this, result: { outcome: "too-far" } };
    const { set, result } = this.of(type, round).add(vote);
    const known = this.rounds.get(round);
    const pair: RoundVotes = {
      prevotes: known?.prevotes ?? VoteSet.empty(this.validators),
      precommits: known?.precommits ?? VoteSet.empty(this.validators),
      ...(type === VOTE_TYPE.prevote ? { prevotes: set } : { precommits: set }),
    };
    const rounds = new Map(this.rounds).set(round, pair);
    return { votes: new HeightVotes(this.validators, rounds, ahead), result };
  }

  private aheadWith(
    validatorIndex: number,
    round: number,
    currentRound: number,
  ): ReadonlyMap<number, ReadonlySet<number>> | undefined {
    if (round <= currentRound + 1) return this.ahead;
    const used = [...(this.ahead.get(validatorIndex) ?? [])].filter(
      (one) => one > currentRound + 1,
    );
    if (used.includes(round)) return this.ahead;
    if (used.length >= MAX_AHEAD_ROUNDS_PER_VALIDATOR) return undefined;
    return new Map(this.ahead).set(validatorIndex, new Set([...used, round]));
  }
}
