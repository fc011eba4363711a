/**
 * What somebody wants to do with stake, rewards or a vote, as operations: the very ones that the
 * transaction has once it is mined, among others whose amounts nobody knows before (shares, rewards).
 */
import type { Address } from "../../chain/address.js";
import type { Claim, ClaimReason } from "../../chain/staking/claims.js";
import { STAKING_CONTRACTS, type StakingCall } from "../../chain/staking/calls.js";
import { type AccountIdentifier, claimAccount, claimAmount } from "./sub-accounts.js";
import type { Amount } from "./identifiers.js";

/** Types of operations that are constructed of stake. */
export const STAKE_TYPES = [
  "DELEGATE",
  "UNDELEGATE",
  "REDELEGATE",
  "CANCEL_UNBONDING",
  "CLAIM",
  "VOTE",
] as const satisfies readonly ClaimReason[];

/** One of `STAKE_TYPES`. */
export type StakeType = (typeof STAKE_TYPES)[number];

/** Something to do with stake, rewards or a vote. */
export interface StakeIntent {
  readonly type: StakeType;
  readonly from: Address;
  readonly call: StakingCall;
}

/** The type of operations by what a call does. */
export const STAKE_TYPE_OF: Readonly<Record<StakingCall["kind"], StakeType>> = {
  delegate: "DELEGATE",
  undelegate: "UNDELEGATE",
  redelegate: "REDELEGATE",
  cancelUnbonding: "CANCEL_UNBONDING",
  withdrawRewards: "CLAIM",
  withdrawCommission: "CLAIM",
  vote: "VOTE",
};

/** The intent of a call that an account makes. */
export function stakeIntent(from: Address, call: StakingCall): StakeIntent {
  return { type: STAKE_TYPE_OF[call.kind], from, call };
}

/** An operation of an intent, without status. */
export interface StakeOperation {
  readonly operation_identifier: { readonly index: number };
  readonly related_operations?: readonly { readonly index: number }[];
  readonly type: StakeType;
  readonly account: AccountIdentifier;
  readonly amount: Amount;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** The operations of an intent, in their one order. */
export function stakeOperations({ type, from, call }: StakeIntent): StakeOperation[] {
  return effectsOf(from, call).map(({ claim, delta, metadata }, index) => ({
    operation_identifier: { index },
    ...(index === 0 ? {} : { related_operations: [{ index: 0 }] }),
    type,
    account: claimAccount(claim),
    amount: claimAmount(claim, delta),
    ...(metadata === undefined ? {} : { metadata }),
  }));
}

interface Effect {
  readonly claim: Claim;
  readonly delta: bigint;
  readonly metadata?: Readonly<Record<string, string>>;
}

function effectsOf(from: Address, call: StakingCall): Effect[] {
  switch (call.kind) {
    case "delegate":
      return [
        { claim: of("own", from), delta: -call.amountAtoken },
        { claim: stakeOf(call.validator), delta: call.amountAtoken },
      ];
    case "undelegate":
      return [
        { claim: stakeOf(call.validator), delta: -call.amountAtoken },
        { claim: of("unbonding", from), delta: call.amountAtoken },
      ];
    case "redelegate":
      return [
        { claim: of("own", from), delta: 0n },
        { claim: stakeOf(call.source), delta: -call.amountAtoken },
        { claim: stakeOf(call.destination), delta: call.amountAtoken },
      ];
    case "cancelUnbonding":
      return [
        {
          claim: of("unbonding", from),
          delta: -call.amountAtoken,
          metadata: { creation_height: call.creationHeight.toString() },
        },
        { claim: stakeOf(call.validator), delta: call.amountAtoken },
      ];
    case "withdrawRewards":
      return [{ claim: { kind: "staked", account: from, validator: call.validator }, delta: 0n }];
    case "withdrawCommission":
      return [{ claim: of("commission", from), delta: 0n }];
    default: {
      const metadata = { proposal_id: call.proposalId.toString(), option: call.option };
      return [{ claim: of("own", from), delta: 0n, metadata }];
    }
  }
}

function of(kind: Claim["kind"], account: Address): Claim {
  return { kind, account, validator: undefined };
}

function stakeOf(validator: Address): Claim {
  return { kind: "stake", account: STAKING_CONTRACTS.staking, validator };
}
