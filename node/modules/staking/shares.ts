/**
 * A validator's stake in shares: a delegation is a number of them, which tokens make and which are worth
 * tokens, each the rounded value that leaves the others no worse off.
 */
import type { Address } from "../../../chain/address.js";
import { SDK_CODE, sdkFault } from "../../../chain/cosmos/sdk-fault.js";
import type { Atoken } from "../../../chain/units.js";
import { closeRewards, payRewards } from "../distribution/rewards.js";
import { noteMovedShares } from "../gov/counting.js";
import { MessageFailure, type ModuleContext } from "../module-context.js";
import { Delegations } from "./delegation-record.js";
import { stakingFailure } from "./staking-failure.js";
import { BOND_STATUS, SHARES_PER_ATOKEN, type ValidatorRecord } from "./validator-record.js";

/** Value of shares, rounded down, atoken. */
export function tokensOf(validator: ValidatorRecord, shares: bigint): bigint {
  const all = validator.shares;
  return all === 0n ? 0n : (shares * validator.tokens) / all;
}

/**
 * Tokens without coins become an account's: whoever calls this has moved them. Throws `MessageFailure`
 * @returns the shares that they give, 10^-18
 */
export function addShares(
  context: ModuleContext,
  validator: ValidatorRecord,
  delegator: Address,
  amountAtoken: Atoken,
): bigint {
  const { tokens, shares } = validator;
  if (shares > 0n && tokens === 0n) throw stakingFailure("exchangeRate");
  payRewards(context, validator, delegator);
  const added = shares === 0n ? amountAtoken * SHARES_PER_ATOKEN : (amountAtoken * shares) / tokens;
  if (added === 0n) throw stakingFailure("tooFewShares");
  validator.setStake(tokens + amountAtoken, shares + added);
  const delegations = new Delegations(context.state);
  const { operator } = validator;
  delegations.setShares(operator, delegator, delegations.shares(operator, delegator) + added);
  noteMovedShares(context.state, { operator, delegator }, added);
  return added;
}

/** A delegation is worth an amount, atoken. @returns its shares. Throws `MessageFailure` */
export function assertStake(
  context: ModuleContext,
  validator: ValidatorRecord,
  delegator: Address,
  amountAtoken: Atoken,
): bigint {
  const owned = new Delegations(context.state).shares(validator.operator, delegator);
  if (owned === 0n) throw stakingFailure("noDelegation");
  if (validator.tokens === 0n) throw stakingFailure("tooFewShares");
  if (amountAtoken > tokensOf(validator, owned) + 1n) {
    throw new MessageFailure(sdkFault(SDK_CODE.invalidRequest, "invalid shares amount"));
  }
  return owned;
}

/**
 * Takes an amount off a delegation. Throws `MessageFailure`
 * @returns atoken: the amount, or less by what rounding keeps
 */
export function takeStake(
  context: ModuleContext,
  validator: ValidatorRecord,
  delegator: Address,
  amountAtoken: Atoken,
): bigint {
  const owned = assertStake(context, validator, delegator, amountAtoken);
  const { tokens, shares } = validator;
  // Rounded up, so that what stays is never worth more than it was.
  const asked = (amountAtoken * shares + tokens - 1n) / tokens;
  return takeShares(context, validator, delegator, asked > owned ? owned : asked);
}

/** Takes shares off a delegation, its rewards paid first. @returns what they were worth, atoken */
export function takeShares(
  context: ModuleContext,
  validator: ValidatorRecord,
  delegator: Address,
  taken: bigint,
): bigint {
  payRewards(context, validator, delegator);
  const { tokens, shares, operator } = validator;
  const worthAtoken = taken === shares ? tokens : (taken * tokens) / shares;
  const delegations = new Delegations(context.state);
  const left = delegations.shares(operator, delegator) - taken;
  delegations.setShares(operator, delegator, left);
  noteMovedShares(context.state, { operator, delegator }, -taken);
  validator.setStake(tokens - worthAtoken, shares - taken);
  const isBelowOwn = delegator === operator && !validator.isJailed;
  if (isBelowOwn && tokensOf(validator, left) < validator.minSelfDelegation) {
    validator.setJailed(true);
  }
  return worthAtoken;
}

/**
 * A validator outside of the set to whom nobody delegates is forgotten, once nothing is on its way
 * out that has to bear its slashes.
 */
export function removeIfEmpty(context: ModuleContext, validator: ValidatorRecord): void {
  if (!validator.exists || validator.shares > 0n) return;
  if (validator.status !== BOND_STATUS.unbonded) return;
  if (new Delegations(context.state).hasEntriesFrom(validator.operator)) return;
  closeRewards(context, validator);
  validator.remove();
}
