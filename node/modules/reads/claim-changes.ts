/**
 * Pure: how a block changed the claims, out of the state before and after it. What its transactions
 * tell by events is subtracted, and the rest is the block's own, so that the operations of a block are
 * exactly the difference of every claim. Two sums prove that no claim was missed: of the coins that
 * came to and left the staking account, and of each validator's shares.
 */
import type { Address } from "../../../chain/address.js";
import {
  type Claim,
  claimName,
  type ClaimMove,
  type ClaimReason,
} from "../../../chain/staking/claims.js";
import type { Atoken } from "../../../chain/units.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { bookedCommission, communityPool } from "../distribution/rewards.js";
import { Delegations } from "../staking/delegation-record.js";
import { Validators } from "../staking/validator-record.js";
import {
  commissionOf,
  communityOf,
  restOf,
  stakedOf,
  stakeOf,
  type Touched,
  unbondingOf,
} from "./claim-events.js";
import { readClaim } from "./claims.js";

/** A validator's part of the state. */
interface MeasuredValidator {
  readonly stakeAtoken: Atoken;
  /** Shares of all its delegators together, in 10^-18. */
  readonly shares: bigint;
  readonly commissionAtoken: Atoken;
}

/** The pools as one state has them. */
export interface MeasuredPools {
  readonly communityAtoken: Atoken;
  /** Balance of the validators' pool. */
  readonly poolAtoken: Atoken;
}

/** All validators as one state has them, by operator. */
export type MeasuredValidators = ReadonlyMap<Address, MeasuredValidator>;

/** Claims of accounts as one state has them, by `claimName`. */
export type MeasuredClaims = ReadonlyMap<string, bigint>;

/** Claims before genesis. */
export const NOTHING_MEASURED: Measured = {
  pools: { communityAtoken: 0n, poolAtoken: 0n },
  validators: new Map(),
  claims: new Map(),
};

/** One state, as far as a block may have changed it. */
export interface Measured {
  readonly pools: MeasuredPools;
  /** Empty where neither stake nor commission can have changed. */
  readonly validators: MeasuredValidators;
  readonly claims: MeasuredClaims;
}

/** Reads the pools. */
export function measurePools(state: JournaledState, validatorsPool: Address): MeasuredPools {
  return {
    communityAtoken: communityPool(state),
    poolAtoken: state.accountNow(validatorsPool)?.balanceAtoken ?? 0n,
  };
}

/** Reads all validators; each is a few words. */
export function measureValidators(state: JournaledState): MeasuredValidators {
  const all = new Validators(state).all();
  return new Map(
    all.map((validator) => [
      validator.operator,
      {
        stakeAtoken: validator.tokens,
        shares: validator.shares,
        commissionAtoken: bookedCommission(state, validator.operator),
      },
    ]),
  );
}

/** Reads claims of accounts. */
export function measureClaims(
  state: JournaledState,
  claims: readonly Claim[],
  validatorsPool: Address,
): [string, bigint][] {
  return claims.map((claim) => [claimName(claim), readClaim(state, claim, validatorsPool)]);
}

/** The claims of accounts that a block may have changed, in an order of their own. */
export function touchedClaims({ leaving, delegators }: Touched): Claim[] {
  const staked = [...delegators]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([operator, all]) => [...all].toSorted().map((each) => stakedOf(each, operator)));
  return [...staked, ...[...leaving].toSorted().map(unbondingOf)];
}

/** Every validator's own delegation: what there is after genesis. */
export function genesisTouched(state: JournaledState): Touched {
  const delegations = new Delegations(state);
  const operators = new Validators(state).all().map(({ operator }) => operator);
  const delegators = operators.map((operator) => {
    return [operator, new Set(delegations.delegatorsOf(operator))] as const;
  });
  return {
    leaving: new Set(delegators.flatMap(([, all]) => [...all])),
    delegators: new Map(delegators),
  };
}

/** What a block is held against. */
export interface BlockFacts {
  readonly isGenesis: boolean;
  /** What the journal moved to and from the staking account for stake; not asked at genesis. */
  readonly stakeJournalAtoken: Atoken;
  readonly validatorsPool: Address;
}

/**
 * The block's own changes of claims: the difference less what is told.
 * @throws RangeError where the sums do not agree: a claim would be missing
 */
export function restOfChanges(
  told: readonly ClaimMove[],
  touched: Touched,
  { before, after }: { readonly before: Measured; readonly after: Measured },
  facts: BlockFacts,
): ClaimMove[] {
  const { isGenesis, validatorsPool } = facts;
  const toldSums = new Map<string, bigint>();
  for (const { claim, delta } of told) {
    const name = claimName(claim);
    toldSums.set(name, (toldSums.get(name) ?? 0n) + delta);
  }
  const rests: { readonly claim: Claim; readonly delta: bigint; readonly rest: bigint }[] = [];
  const note = (claim: Claim, delta: bigint) => {
    rests.push({ claim, delta, rest: delta - (toldSums.get(claimName(claim)) ?? 0n) });
    toldSums.delete(claimName(claim));
  };
  // One that came and was forgotten within the block is in neither state, and may have been slashed.
  const known = [before.validators, after.validators, touched.delegators];
  const operators = new Set(known.flatMap((byOperator) => [...byOperator.keys()]));
  for (const operator of [...operators].toSorted()) {
    const [was, is] = [before.validators.get(operator), after.validators.get(operator)];
    note(stakeOf(operator), (is?.stakeAtoken ?? 0n) - (was?.stakeAtoken ?? 0n));
    note(commissionOf(operator), (is?.commissionAtoken ?? 0n) - (was?.commissionAtoken ?? 0n));
  }
  for (const claim of touchedClaims(touched)) {
    const name = claimName(claim);
    note(claim, (after.claims.get(name) ?? 0n) - (before.claims.get(name) ?? 0n));
  }
  const communityAtoken = after.pools.communityAtoken - before.pools.communityAtoken;
  const commissionAtoken = sumOf(rests, "commission");
  const poolAtoken = after.pools.poolAtoken - before.pools.poolAtoken;
  note(communityOf(validatorsPool), communityAtoken);
  note(restOf(validatorsPool), poolAtoken - communityAtoken - commissionAtoken);
  assertComplete(rests, toldSums, { before, after }, facts);
  return rests.flatMap(({ claim, rest }) => {
    if (rest === 0n) return [];
    const reason = isGenesis ? "GENESIS" : reasonOf(claim, rest);
    return [{ reason, claim, delta: rest, relatedIndex: undefined, details: undefined }];
  });
}

/** Stake and what leaves get less by slashes alone, and never more than events tell. */
function reasonOf({ kind }: Claim, rest: bigint): ClaimReason {
  if (kind === "staked") return "SHARES";
  if (kind !== "stake" && kind !== "unbonding") return "REWARD";
  if (rest > 0n) throw new RangeError(`a claim of ${kind} grew by ${rest} atoken without an event`);
  return "SLASH";
}

function sumOf(
  rests: readonly { readonly claim: Claim; readonly delta: bigint }[],
  kind: Claim["kind"],
): bigint {
  return rests.reduce((sum, one) => (one.claim.kind === kind ? sum + one.delta : sum), 0n);
}

function assertComplete(
  rests: readonly { readonly claim: Claim; readonly delta: bigint }[],
  unknown: ReadonlyMap<string, bigint>,
  { before, after }: { readonly before: Measured; readonly after: Measured },
  { isGenesis, stakeJournalAtoken }: BlockFacts,
): void {
  for (const [name, delta] of unknown) {
    if (delta !== 0n)
      throw new RangeError(`an event tells of the claim ${name}, the state does not`);
  }
  const stakeAtoken = sumOf(rests, "stake") + sumOf(rests, "unbonding");
  if (!isGenesis && stakeAtoken !== stakeJournalAtoken) {
    const text = `claims on stake changed by ${stakeAtoken}, its coins by ${stakeJournalAtoken}`;
    throw new RangeError(text);
  }
  const shares = new Map<Address, bigint>();
  for (const { claim, delta } of rests) {
    if (claim.kind !== "staked" || claim.validator === undefined) continue;
    shares.set(claim.validator, (shares.get(claim.validator) ?? 0n) + delta);
  }
  for (const operator of new Set([...before.validators.keys(), ...after.validators.keys()])) {
    const was = before.validators.get(operator)?.shares ?? 0n;
    const is = after.validators.get(operator)?.shares ?? 0n;
    if (is - was === (shares.get(operator) ?? 0n)) continue;
    throw new RangeError(`shares of ${operator} changed by ${is - was}, those of delegators not`);
  }
}
