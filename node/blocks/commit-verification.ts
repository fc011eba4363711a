/** What a commit proves, and the time that follows from it. */
import type { Address } from "../../chain/address.js";
import { type BlockId, isSameBlockId } from "../../chain/consensus/block-id.js";
import { type Commit, COMMIT_FLAG, voteOfCommit } from "../../chain/consensus/commit.js";
import type { ValidatorSet } from "../../chain/consensus/validator-set.js";
import { voteSignBytes } from "../../chain/consensus/vote.js";
import { verifySignature } from "../../chain/consensus/ed25519.js";
import type { Height } from "../../chain/hex.js";
import { blockInvalid } from "./block-error.js";

/**
 * Verifies all signatures of a commit and that more than two thirds are for the block, as
 * CometBFT's VerifyCommit.
 * @throws BLOCK_INVALID
 */
export function verifyCommit(
  commit: Commit,
  expected: {
    readonly chainId: string;
    readonly height: Height;
    readonly blockId: BlockId;
    readonly validators: ValidatorSet;
  },
): void {
  const { chainId, height, blockId, validators } = expected;
  if (commit.height !== height) throw blockInvalid("the commit is for another height");
  if (!isSameBlockId(commit.blockId, blockId)) {
    throw blockInvalid("the commit is for another block");
  }
  if (commit.signatures.length !== validators.size) {
    throw blockInvalid("the commit has another number of validators");
  }
  let power = 0n;
  for (const [index, validator] of validators.validators.entries()) {
    const vote = voteOfCommit(commit, index);
    if (vote === undefined) continue;
    if (vote.validatorAddress !== validator.address) {
      throw blockInvalid(`signature ${index} of the commit names another validator`);
    }
    if (!verifySignature(validator.publicKey, voteSignBytes(chainId, vote), vote.signature)) {
      throw blockInvalid(`signature ${index} of the commit is false`);
    }
    if (vote.blockId !== undefined) power += validator.power;
  }
  if (!validators.isQuorum(power)) throw blockInvalid("the commit has no two thirds");
}

/**
 * Whether more than one third of known validators signed a commit: then an honest one did, and an
 * honest validator signs only where all heights before are decided. The rule by which CometBFT's
 * light client skips heights (VerifyCommitLightTrusting, trust level 1/3).
 * @param known validators of an earlier height than the commit's
 */
export function isSignedByThird(commit: Commit, chainId: string, known: ValidatorSet): boolean {
  return isSignedBy(commit, { chainId, known, isEnough: (power) => known.isMoreThanThird(power) });
}

/** Whether more than two thirds of the validators of its own height signed a commit: it is decided. */
export function isSignedByMost(commit: Commit, chainId: string, own: ValidatorSet): boolean {
  return isSignedBy(commit, { chainId, known: own, isEnough: (power) => own.isQuorum(power) });
}

function isSignedBy(
  commit: Commit,
  by: {
    readonly chainId: string;
    readonly known: ValidatorSet;
    readonly isEnough: (power: bigint) => boolean;
  },
): boolean {
  const { chainId, known, isEnough } = by;
  const counted = new Set<Address>();
  let power = 0n;
  for (const index of commit.signatures.keys()) {
    const vote = voteOfCommit(commit, index);
    if (vote?.blockId === undefined || counted.has(vote.validatorAddress)) continue;
    const validator = known.at(known.indexOf(vote.validatorAddress));
    if (validator === undefined) continue;
    const signBytes = voteSignBytes(chainId, vote);
    // One false signature is enough: nobody honest hands on such a commit.
    if (!verifySignature(validator.publicKey, signBytes, vote.signature)) return false;
    counted.add(vote.validatorAddress);
    power += validator.power;
    if (isEnough(power)) return true;
  }
  return false;
}

/** Time of a block: the median of its last commit's votes, weighted by power (BFT time). */
export function medianTimeNs(commit: Commit, validators: ValidatorSet): bigint {
  const weighted: { readonly timeNs: bigint; readonly power: bigint }[] = [];
  let total = 0n;
  for (const [index, entry] of commit.signatures.entries()) {
    const power = validators.at(index)?.power;
    if (entry.flag === COMMIT_FLAG.absent || power === undefined) continue;
    weighted.push({ timeNs: entry.timeNs, power });
    total += power;
  }
  let left = total / 2n;
  for (const { timeNs, power } of weighted.toSorted((a, b) => (a.timeNs < b.timeNs ? -1 : 1))) {
    if (left <= power) return timeNs;
    left -= power;
  }
  throw blockInvalid("the commit has no signatures");
}
