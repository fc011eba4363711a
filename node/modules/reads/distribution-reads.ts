/** What is asked of distribution: rewards, commission, the community pool. Amounts are atoken. */
import type { Address } from "../../../chain/address.js";
import type { Atoken } from "../../../chain/units.js";
import type { JournaledState } from "../../state/journaled-state.js";
import {
  communityPool,
  delegationRewards,
  validatorRewards,
  type ValidatorRewards,
  withdrawAddress,
} from "../distribution/rewards.js";
import { moduleParam } from "../module-params.js";
import { Validators } from "../staking/validator-record.js";
import { operatorsOf } from "./staking-reads.js";

export { communityPool, withdrawAddress };

/** What can be claimed of a validator; undefined where there is none. */
export function readRewards(
  state: JournaledState,
  operator: Address,
): ValidatorRewards | undefined {
  const validator = new Validators(state).of(operator);
  return validator.exists ? validatorRewards(state, validator) : undefined;
}

/** What a delegation has earned and not withdrawn. */
export function rewardsOf(state: JournaledState, operator: Address, delegator: Address): bigint {
  return delegationRewards(state, new Validators(state).of(operator), delegator);
}

/** What every delegation of an account has earned, by operator. */
export function allRewardsOf(
  state: JournaledState,
  delegator: Address,
): { readonly operator: Address; readonly amountAtoken: Atoken }[] {
  return operatorsOf(state, delegator).map((operator) => {
    return { operator, amountAtoken: rewardsOf(state, operator, delegator) };
  });
}

/** Share of the validators' mint that the community gets, 10^-18. */
export function communityTax(state: JournaledState): bigint {
  return moduleParam(state, "distribution", "community_tax");
}
