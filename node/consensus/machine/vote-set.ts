/**
 * Votes of one type in one round, with their tallies. Immutable: adding gives a new set. Votes
 * that come in here have had their signatures checked.
 */
import { type BlockId, blockIdKey, isSameBlockId } from "../../../chain/consensus/block-id.js";
import type { ValidatorSet } from "../../../chain/consensus/validator-set.js";
import type { Vote } from "../../../chain/consensus/vote.js";

/** What became of a vote that was offered to a set. */
export type AddOutcome =
  | { readonly outcome: "added" }
  /** The same vote was there already. */
  | { readonly outcome: "known" }
  /** The validator voted otherwise before: both votes are evidence. */
  | { readonly outcome: "conflict"; readonly first: Vote; readonly isCounted: boolean };

interface Tally {
  readonly blockId: BlockId | undefined;
  readonly power: bigint;
  readonly votes: ReadonlyMap<number, Vote>;
}

/**
 * Different votes of one validator that are counted. An honest one casts one; of a liar the
 * others may have counted either, and a majority must be found whichever came here first.
 */
const MAX_VOTES_PER_VALIDATOR = 2;

/** A round's votes of one type. */
export class VoteSet {
  private constructor(
    private readonly validators: ValidatorSet,
    private readonly tallies: ReadonlyMap<string, Tally>,
    /** The first vote of each validator, by index. */
    private readonly firsts: ReadonlyMap<number, Vote>,
    /** Power of all that voted at all. */
    private readonly votedPower: bigint,
  ) {}

  /** No votes yet, to be cast by these validators. */
  static empty(validators: ValidatorSet): VoteSet {
    return new VoteSet(validators, new Map(), new Map(), 0n);
  }

  /**
   * Counts a vote of a member of the set.
   * @throws RangeError for a stranger: the caller checks membership with the signature
   */
  add(vote: Vote): { readonly set: VoteSet; readonly result: AddOutcome } {
    const validator = this.validators.at(vote.validatorIndex);
    if (validator?.address !== vote.validatorAddress) throw new RangeError("a stranger's vote");
    const key = blockIdKey(vote.blockId);
    const tally = this.tallies.get(key);
    if (tally?.votes.has(vote.validatorIndex) === true) {
      return { set: this, result: { outcome: "known" } };
    }
    const first = this.firsts.get(vote.validatorIndex);
    if (first === undefined) {
      const firsts = new Map(this.firsts).set(vote.validatorIndex, vote);
      const votedPower = this.votedPower + validator.power;
      const set = new VoteSet(
        this.validators,
        this.withVote(key, vote, validator.power),
        firsts,
        votedPower,
      );
      return { set, result: { outcome: "added" } };
    }
    const isCounted = this.mayCountAgain(vote, tally);
    const set = isCounted
      ? new VoteSet(
          this.validators,
          this.withVote(key, vote, validator.power),
          this.firsts,
          this.votedPower,
        )
      : this;
    return { set, result: { outcome: "conflict", first, isCounted } };
  }

  /** Whether a vote would be counted or is the first proof of a contradiction. */
  isOfUse(vote: Vote): boolean {
    if (!this.firsts.has(vote.validatorIndex)) return true;
    return this.mayCountAgain(vote, this.tallies.get(blockIdKey(vote.blockId)));
  }

  /** What more than two thirds voted for: `blockId` undefined is nil; undefined without any. */
  get majority(): { readonly blockId: BlockId | undefined } | undefined {
    for (const { blockId, power } of this.tallies.values()) {
      if (this.validators.isQuorum(power)) return { blockId };
    }
    return undefined;
  }

  /** Whether more than two thirds voted, for whatever. */
  get hasQuorumOfAny(): boolean {
    return this.validators.isQuorum(this.votedPower);
  }

  /** Whether more than a third voted for one block or nil. */
  private isWidely(tally: Tally | undefined): boolean {
    return tally !== undefined && this.validators.isMoreThanThird(tally.power);
  }

  /** The validator's vote for a block (or nil). */
  voteFor(validatorIndex: number, blockId: BlockId | undefined): Vote | undefined {
    return this.tallies.get(blockIdKey(blockId))?.votes.get(validatorIndex);
  }

  /** The first vote of a validator. */
  firstOf(validatorIndex: number): Vote | undefined {
    return this.firsts.get(validatorIndex);
  }

  /** Every vote that is counted. */
  *votes(): Generator<Vote> {
    for (const { votes } of this.tallies.values()) yield* votes.values();
  }

  private mayCountAgain(vote: Vote, tally: Tally | undefined): boolean {
    if (this.isWidely(tally)) return true;
    let count = 0;
    for (const { votes } of this.tallies.values()) count += votes.has(vote.validatorIndex) ? 1 : 0;
    return count < MAX_VOTES_PER_VALIDATOR;
  }

  private withVote(key: string, vote: Vote, power: bigint): ReadonlyMap<string, Tally> {
    const tally = this.tallies.get(key);
    const votes = new Map(tally?.votes).set(vote.validatorIndex, vote);
    const next = { blockId: vote.blockId, power: (tally?.power ?? 0n) + power, votes };
    return new Map(this.tallies).set(key, next);
  }
}

/** Whether a majority is for this very block. */
export function isMajorityFor(
  majority: { readonly blockId: BlockId | undefined } | undefined,
  blockId: BlockId | undefined,
): boolean {
  return majority !== undefined && isSameBlockId(majority.blockId, blockId);
}
