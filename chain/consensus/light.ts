/**
 * Rules of a light client: from a header that is trusted to a newer one, with nothing but headers,
 * commits and validator sets (CometBFT 0.38's light/verifier.go). Pure: the time and the check of
 * signatures are given.
 */
import { AppError } from "../errors.js";
import { isSameBlockId } from "./block-id.js";
import { type Commit, COMMIT_FLAG, voteOfCommit } from "./commit.js";
import {
  BLOCK_PROTOCOL_VERSION,
  type ConsensusHeader,
  hashConsensusHeader,
} from "./consensus-header.js";
import type { Validator, ValidatorSet } from "./validator-set.js";
import { voteSignBytes } from "./vote.js";

/** Why a header is not believed. */
export type LightErrorCode =
  /** What was trusted is older than the trusting period. */
  | "LIGHT_EXPIRED"
  /** The header is of a time that is to come: the clock here is behind, or somebody made it up. */
  | "LIGHT_FUTURE"
  /** The header, its commit or its validators contradict a rule: somebody made it up. */
  | "LIGHT_INVALID"
  /** Too little of the trusted power signed it: a header in between may lead there. */
  | "LIGHT_UNTRUSTED";

/** A header that is not believed. */
export class LightError extends AppError<LightErrorCode> {}

/** A header and the precommits that decided it. */
export interface SignedHeader {
  readonly header: ConsensusHeader;
  readonly commit: Commit;
}

/** A signed header with the validators of its height. */
export interface LightBlock extends SignedHeader {
  readonly validators: ValidatorSet;
}

/** What verification goes by. */
export interface LightRules {
  readonly chainId: string;
  /** How long validators answer for what they signed. */
  readonly trustPeriodNs: bigint;
  /** Wall clock, nanoseconds since 1970. */
  readonly nowNs: bigint;
  /** ed25519 over the message; the key has 32 bytes, the signature 64. */
  readonly verifySignature: (
    publicKey: Uint8Array,
    message: Uint8Array,
    signature: Uint8Array,
  ) => boolean;
}

/** How far clocks of validators may run ahead of ours, as in CometBFT. */
export const MAX_CLOCK_DRIFT_NS = 10_000_000_000n;

/** Whether a header is too old to be trusted. */
export function isLightExpired(
  header: Pick<ConsensusHeader, "timeNs">,
  rules: Pick<LightRules, "trustPeriodNs" | "nowNs">,
): boolean {
  return header.timeNs + rules.trustPeriodNs <= rules.nowNs;
}

/**
 * Verifies a newer header, by the next validators of the trusted one where it is the very next,
 * else by more than a third of the trusted validators.
 * @param trusted its validators may be those of its height or of the next one
 * @throws LIGHT_EXPIRED, LIGHT_FUTURE, LIGHT_INVALID, LIGHT_UNTRUSTED
 */
export function verifyLightBlock(trusted: LightBlock, next: LightBlock, rules: LightRules): void {
  const isAdjacent = next.header.height === trusted.header.height + 1;
  if (isAdjacent) verifyAdjacent(trusted, next, rules);
  else verifyNonAdjacent(trusted, next, rules);
}

/** Verifies the header of the next height. Throws LIGHT_EXPIRED, LIGHT_FUTURE, LIGHT_INVALID. */
export function verifyAdjacent(trusted: SignedHeader, next: LightBlock, rules: LightRules): void {
  if (next.header.height !== trusted.header.height + 1) {
    throw invalid("headers must be adjacent in height");
  }
  verifyNewHeader(trusted, next, rules);
  if (next.header.validatorsHash !== trusted.header.nextValidatorsHash) {
    throw invalid("the trusted header's next validators do not match those from the new header");
  }
  verifyTwoThirds(next, rules);
}

/** Verifies a header further up. Throws as `verifyLightBlock`. */
export function verifyNonAdjacent(trusted: LightBlock, next: LightBlock, rules: LightRules): void {
  if (next.header.height === trusted.header.height + 1) {
    throw invalid("headers must be non adjacent in height");
  }
  verifyNewHeader(trusted, next, rules);
  verifyTrustedThird(trusted.validators, next.commit, rules);
  // Last, because a set that is made up may be very large.
  verifyTwoThirds(next, rules);
}

/** Verifies the header before a trusted one. Throws LIGHT_INVALID. */
export function verifyBackwards(older: ConsensusHeader, trusted: ConsensusHeader): void {
  if (older.blockVersion !== BLOCK_PROTOCOL_VERSION) throw invalid("another block protocol");
  if (older.chainId !== trusted.chainId) throw invalid("the header belongs to another chain");
  if (older.height !== trusted.height - 1) throw invalid("not the header of the height before");
  if (older.timeNs >= trusted.timeNs) throw invalid("the older header is not older");
  if (hashConsensusHeader(older) !== trusted.lastBlockId?.hash) {
    throw invalid("the older header is not the trusted header's last block");
  }
}

/**
 * Verifies a header and its commit without anything to lead there: for the height that an operator
 * trusts by its hash.
 * @throws LIGHT_INVALID
 */
export function verifySelfSigned(block: LightBlock, rules: LightRules): void {
  checkSignedHeader(block, rules.chainId);
  checkValidators(block);
  verifyTwoThirds(block, rules);
}

function verifyNewHeader(trusted: SignedHeader, next: LightBlock, rules: LightRules): void {
  if (isLightExpired(trusted.header, rules)) {
    throw new LightError("LIGHT_EXPIRED", "the trusted header has expired", {
      details: { height: trusted.header.height },
    });
  }
  checkSignedHeader(next, rules.chainId);
  if (next.header.height <= trusted.header.height) {
    throw invalid("the new header's height is not greater than the trusted one's");
  }
  if (next.header.timeNs <= trusted.header.timeNs) {
    throw invalid("the new header's time is not after the trusted one's");
  }
  if (next.header.timeNs >= rules.nowNs + MAX_CLOCK_DRIFT_NS) {
    throw new LightError(
      "LIGHT_FUTURE",
      "header refused: the new header has a time from the future by this machine's clock",
      { details: { height: next.header.height } },
    );
  }
  checkValidators(next);
}

function checkSignedHeader({ header, commit }: SignedHeader, chainId: string): void {
  if (header.blockVersion !== BLOCK_PROTOCOL_VERSION) throw invalid("another block protocol");
  if (header.chainId !== chainId) throw invalid("the header belongs to another chain");
  if (commit.height !== header.height) throw invalid("the commit is for another height");
  if (commit.blockId === undefined) throw invalid("the commit is for nil");
  if (commit.blockId.hash !== hashConsensusHeader(header)) {
    throw invalid("the commit signs another block than the header's");
  }
}

function checkValidators({ header, validators }: LightBlock): void {
  if (validators.hash() !== header.validatorsHash) {
    throw invalid("the header's validators do not match those that were supplied");
  }
}

/** CometBFT's VerifyCommitLight: it stops as soon as there is enough power. */
function verifyTwoThirds({ commit, validators }: LightBlock, rules: LightRules): void {
  if (commit.signatures.length !== validators.size) {
    throw invalid("the commit has another number of validators");
  }
  let power = 0n;
  for (const [index, validator] of validators.validators.entries()) {
    if (!checkedVote({ commit, index, validator, rules })) continue;
    power += validator.power;
    if (validators.isQuorum(power)) return;
  }
  throw invalid(`only ${power} of ${validators.totalPower} signed, two thirds are needed`);
}

/** CometBFT's VerifyCommitLightTrusting: validators are looked up by address. */
function verifyTrustedThird(trusted: ValidatorSet, commit: Commit, rules: LightRules): void {
  const seen = new Set<number>();
  let power = 0n;
  for (const [index, entry] of commit.signatures.entries()) {
    if (entry.flag !== COMMIT_FLAG.commit) continue;
    const place = trusted.indexOf(entry.validatorAddress);
    const validator = trusted.at(place);
    if (validator === undefined) continue;
    if (seen.has(place)) throw invalid(`double vote from ${validator.address}`);
    seen.add(place);
    checkedVote({ commit, index, validator, rules });
    power += validator.power;
    if (trusted.isMoreThanThird(power)) return;
  }
  throw new LightError(
    "LIGHT_UNTRUSTED",
    `only ${power} of ${trusted.totalPower} of the trusted power signed`,
    { details: { height: commit.height } },
  );
}

/** Whether the entry is a vote for the block. Throws LIGHT_INVALID for a false signature. */
function checkedVote(of: {
  readonly commit: Commit;
  readonly index: number;
  readonly validator: Validator;
  readonly rules: LightRules;
}): boolean {
  const { commit, index, validator, rules } = of;
  const vote = voteOfCommit(commit, index);
  if (vote === undefined || !isSameBlockId(vote.blockId, commit.blockId)) return false;
  const message = voteSignBytes(rules.chainId, vote);
  if (rules.verifySignature(validator.publicKey, message, vote.signature)) return true;
  throw invalid(`wrong signature (#${index})`);
}

function invalid(reason: string): LightError {
  return new LightError("LIGHT_INVALID", `header refused: ${reason}`);
}
