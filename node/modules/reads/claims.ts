/** What a claim is worth after a block: each is a value of the modules' state, and none is an estimate. */
import type { Address } from "../../../chain/address.js";
import type { Claim } from "../../../chain/staking/claims.js";
import type { Atoken } from "../../../chain/units.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { bookedCommission, communityPool, validatorRewards } from "../distribution/rewards.js";
import { Delegations, ENTRY_KIND } from "../staking/delegation-record.js";
import { Validators } from "../staking/validator-record.js";
import { rewardsOf } from "./distribution-reads.js";
import { type DelegationRead, type EntryRead, entriesOf, readDelegation } from "./staking-reads.js";

/**
 * A claim, atoken or shares of 10^-18; 0 where there is none.
 * @param validatorsPool account that rewards lie on
 */
export function readClaim(state: JournaledState, claim: Claim, validatorsPool: Address): bigint {
  const { kind, account, validator } = claim;
  switch (kind) {
    case "own":
      return state.accountNow(account)?.balanceAtoken ?? 0n;
    case "staked":
      return validator === undefined ? 0n : new Delegations(state).shares(validator, account);
    case "unbonding":
      return unbondingOf(state, account);
    case "commission":
      return bookedCommission(state, account);
    case "stake":
      return validator === undefined ? 0n : new Validators(state).of(validator).tokens;
    case "community":
      return communityPool(state);
    default:
      return restOfPool(state, validatorsPool);
  }
}

/** What is leaving, as it was last written: slashes that it has not borne yet are still in it. */
function unbondingOf(state: JournaledState, account: Address): bigint {
  return new Delegations(state)
    .entriesOf(account)
    .filter(({ kind }) => kind === ENTRY_KIND.unbonding)
    .reduce((sum, { amountAtoken }) => sum + amountAtoken, 0n);
}

/** What the pool holds beside the community's part and the booked commission of all validators. */
function restOfPool(state: JournaledState, pool: Address): bigint {
  const held = state.accountNow(pool)?.balanceAtoken ?? 0n;
  return new Validators(state)
    .all()
    .reduce(
      (left, { operator }) => left - bookedCommission(state, operator),
      held - communityPool(state),
    );
}

/** A delegation with what it has earned. */
export interface StakedRead extends DelegationRead {
  /** Earned and not withdrawn, atoken; it grows in every block. */
  readonly rewardsAtoken: Atoken;
}

/** All delegations of an account, by operator, or the one with a validator. */
export function readStaked(
  state: JournaledState,
  account: Address,
  validator: Address | undefined,
): StakedRead[] {
  const operators =
    validator === undefined ? new Delegations(state).operatorsOf(account) : [validator];
  return operators.toSorted().flatMap((operator) => {
    const found = readDelegation(state, operator, account);
    if (found === undefined) return [];
    return [{ ...found, rewardsAtoken: rewardsOf(state, operator, account) }];
  });
}

/** Everything of an account that is leaving, oldest first. */
export function readLeaving(state: JournaledState, account: Address): EntryRead[] {
  return entriesOf(state, account, "unbonding");
}

/** What an operator could withdraw now, atoken: with what is earned and not booked yet. */
export function readWithdrawable(state: JournaledState, operator: Address): bigint {
  const validator = new Validators(state).of(operator);
  return validator.exists ? validatorRewards(state, validator).commissionAtoken : 0n;
}
