/**
 * Claims on the coins that the chain's own accounts hold for others: what an account has staked, what
 * is leaving, a validator's commission, and what of a pool nobody has asked for yet. Coins are counted
 * once, on the account that holds them; a claim says whose they are.
 */
import type { Address } from "../address.js";

/**
 * What is claimed. On the staking account: `stake` (atoken that a validator stands for), `unbonding`
 * (atoken that leave, of one account), and `staked`, an account's part of a validator's stake in
 * shares of 10^-18. On the validators' pool: `community`, `commission` (booked, of one operator) and
 * `rewards`, which is the rest of it. `own` is the account itself: it only marks who acted.
 */
export const CLAIM_KINDS = [
  "own",
  "staked",
  "unbonding",
  "commission",
  "stake",
  "rewards",
  "community",
] as const;

/** One of `CLAIM_KINDS`. */
export type ClaimKind = (typeof CLAIM_KINDS)[number];

/** Names a claim. */
export interface Claim {
  readonly kind: ClaimKind;
  /** Whose it is: an account, or the chain's account that holds the coins. */
  readonly account: Address;
  /** Operator of the validator, of `staked` and `stake`. */
  readonly validator: Address | undefined;
}

/** Why a claim changed; also the Rosetta operation type. New ones are added at the end. */
export const CLAIM_REASONS = [
  "GENESIS",
  "DELEGATE",
  "UNDELEGATE",
  "REDELEGATE",
  "CANCEL_UNBONDING",
  "UNBOND_COMPLETE",
  "CLAIM",
  "REWARD",
  "SLASH",
  "VOTE",
  "SHARES",
] as const;

/** One of `CLAIM_REASONS`. */
export type ClaimReason = (typeof CLAIM_REASONS)[number];

/** A change of a claim. */
export interface ClaimMove {
  readonly reason: ClaimReason;
  readonly claim: Claim;
  /** Atoken, or shares of 10^-18 of a `staked` one; zero where an action is only marked. */
  readonly delta: bigint;
  /** Which of the moves of the same transaction it belongs to, an earlier one. */
  readonly relatedIndex: number | undefined;
  /** What the amounts do not say: a creation height, a vote. */
  readonly details: Readonly<Record<string, string>> | undefined;
}

/** A change of a claim with its place. */
export interface PlacedClaimMove extends ClaimMove {
  /** Place of its transaction in the block's journal; undefined for the block's own. */
  readonly transactionIndex: number | undefined;
}

/** Equal names mean the same claim. */
export function claimName({ kind, account, validator }: Claim): string {
  return `${kind} ${account} ${validator ?? ""}`;
}
