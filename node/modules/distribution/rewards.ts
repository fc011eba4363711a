/**
 * Rewards of validators and delegators (F1: nothing is paid out until somebody asks). One running
 * sum says what an atoken of bonded stake has earned since the start, so that a block's reward is
 * one write however many validators there are; each validator has the same sum for its shares.
 * Coins lie in the validators' pool; everything here is a claim on it, rounded down. Layout of the
 * distribution account's storage:
 *
 *  0 sum by bonded atoken, times 2^128 | 1 what is left over of its last division
 *  2 community pool (atoken) | 3 mapping operator -> rewards of a validator
 *  4 mapping operator -> mapping delegator -> sum by share that was paid up to
 *  5 mapping delegator -> account that rewards go to
 *
 * Rewards of a validator: 0 sum by atoken that was booked up to, 1 sum by share (10^-18), times
 * 2^128, 2 what its delegators can still claim, 3 its commission (atoken).
 *
 * A slash takes tokens and leaves shares, so that a sum by share needs no record of slashes.
 */
import { accountText, amountText } from "../../../chain/abci-event.js";
import { type Address, operatorText } from "../../../chain/address.js";
import { DECIMAL_ONE } from "../../../chain/encoding/decimal.js";
import type { Atoken } from "../../../chain/units.js";
import { SDK_REFUSALS_VERSION } from "../../settings/app-version.js";
import { Delegations } from "../staking/delegation-record.js";
import { stakingFailure } from "../staking/staking-failure.js";
import { type ValidatorRecord, Validators } from "../staking/validator-record.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { type MessageFailure, moduleFailure, type ModuleContext } from "../module-context.js";
import { moduleParam } from "../module-params.js";
import { addressWord, mapSlot, SystemStorage, wordAddress } from "../system-storage.js";

const SUM = 0n;
const LEFT_OVER = 1n;
const COMMUNITY_POOL = 2n;
const VALIDATORS = 3n;
const PAID_UP_TO = 4n;
const WITHDRAW_ADDRESSES = 5n;

const SCALE = 1n << 128n;

/** What a validator and its delegators can claim, atoken. */
export interface ValidatorRewards {
  /** Of all delegators together; each one's claim is rounded down. */
  readonly delegatorsAtoken: Atoken;
  readonly commissionAtoken: Atoken;
}

/** Books a block's mint for the validators: by their bonded stake, the community's tax first. */
export function allocateRewards(state: JournaledState, amountAtoken: Atoken): void {
  const storage = new SystemStorage(state, "distribution");
  const tax = moduleParam(state, "distribution", "community_tax");
  const taxAtoken = (amountAtoken * tax) / DECIMAL_ONE;
  const bonded = new Validators(state).bondedTokens;
  if (bonded === 0n) {
    addCommunityPool(storage, amountAtoken);
    return;
  }
  if (taxAtoken > 0n) addCommunityPool(storage, taxAtoken);
  const dividend = (amountAtoken - taxAtoken) * SCALE + storage.word(LEFT_OVER);
  storage.setWord(SUM, storage.word(SUM) + dividend / bonded);
  storage.setWord(LEFT_OVER, dividend % bonded);
}

/** What can be claimed now, bookings that nobody asked for yet included. */
export function validatorRewards(
  state: JournaledState,
  validator: ValidatorRecord,
): ValidatorRewards {
  const { delegators, commission } = due(state, validator);
  const { storage, base } = rewardsOf(state, validator.operator);
  return {
    delegatorsAtoken: storage.word(base + 2n) + delegators,
    commissionAtoken: storage.word(base + 3n) + commission,
  };
}

/** Commission of a validator that is booked and not withdrawn, atoken; 0 where there is no validator. */
export function bookedCommission(state: JournaledState, operator: Address): bigint {
  const { storage, base } = rewardsOf(state, operator);
  return storage.word(base + 3n);
}

/** What one delegation has earned and not withdrawn, atoken. */
export function delegationRewards(
  state: JournaledState,
  validator: ValidatorRecord,
  delegator: Address,
): bigint {
  const shares = new Delegations(state).shares(validator.operator, delegator);
  if (shares === 0n) return 0n;
  const { storage, base } = rewardsOf(state, validator.operator);
  const { delegators } = due(state, validator);
  const sum = storage.word(base + 1n) + perShare(delegators, validator.shares);
  return earned(shares, sum - storage.word(paidSlot(validator.operator, delegator)));
}

function earned(shares: bigint, sum: bigint): bigint {
  return (shares * sum) / SCALE;
}

function perShare(amountAtoken: Atoken, shares: bigint): bigint {
  return shares === 0n ? 0n : (amountAtoken * SCALE) / shares;
}

/** What a bonded validator has earned since it was last booked. */
function due(state: JournaledState, validator: ValidatorRecord) {
  const { storage, base } = rewardsOf(state, validator.operator);
  if (!validator.isBonded) return { delegators: 0n, commission: 0n };
  const earnedAtoken = (validator.tokens * (storage.word(SUM) - storage.word(base))) / SCALE;
  const commission = (earnedAtoken * validator.commission.rate) / DECIMAL_ONE;
  return { delegators: earnedAtoken - commission, commission };
}

/** Books what a validator has earned: before its tokens, shares, status or commission change. */
export function bookRewards(state: JournaledState, validator: ValidatorRecord): void {
  const { storage, base } = rewardsOf(state, validator.operator);
  const { delegators, commission } = due(state, validator);
  storage.setWord(base, storage.word(SUM));
  if (delegators > 0n) {
    storage.setWord(base + 1n, storage.word(base + 1n) + perShare(delegators, validator.shares));
    storage.setWord(base + 2n, storage.word(base + 2n) + delegators);
  }
  if (commission > 0n) storage.setWord(base + 3n, storage.word(base + 3n) + commission);
}

/**
 * Pays a delegation's rewards; every change of its shares begins with this.
 * @returns what was paid, atoken
 */
export function payRewards(
  context: ModuleContext,
  validator: ValidatorRecord,
  delegator: Address,
): bigint {
  const { state } = context;
  const { operator } = validator;
  bookRewards(state, validator);
  const { storage, base } = rewardsOf(state, operator);
  const paidSlotOf = paidSlot(operator, delegator);
  const sum = storage.word(base + 1n);
  const shares = new Delegations(state).shares(operator, delegator);
  const amountAtoken = earned(shares, sum - storage.word(paidSlotOf));
  storage.setWord(paidSlotOf, sum);
  if (shares === 0n) return 0n;
  storage.setWord(base + 2n, storage.word(base + 2n) - amountAtoken);
  payFromPool(context, withdrawAddress(state, delegator), amountAtoken);
  context.emit("withdraw_rewards", {
    delegator: accountText(delegator),
    validator: operatorText(operator),
    amount: amountText(amountAtoken),
  });
  return amountAtoken;
}

/**
 * Pays the rewards of a delegation because its delegator asks.
 * @returns what was paid, atoken. Throws `MessageFailure` where there is no delegation
 */
export function withdrawRewards(
  context: ModuleContext,
  validator: ValidatorRecord,
  delegator: Address,
): bigint {
  if (new Delegations(context.state).shares(validator.operator, delegator) === 0n) {
    throw context.appVersion < SDK_REFUSALS_VERSION
      ? moduleFailure("distribution", 13, "delegation does not exist")
      : stakingFailure("noDelegation");
  }
  return payRewards(context, validator, delegator);
}

/** Gives an account's coins to a validator and its delegators, as a block's rewards are shared. */
export function depositRewards(
  context: ModuleContext,
  validator: ValidatorRecord,
  from: Address,
  amountAtoken: Atoken,
): void {
  const { state } = context;
  const { shares, operator } = validator;
  if (shares === 0n) throw moduleFailure("distribution", 12, "validator has no delegators");
  context.moveCoins("CALL", from, context.validatorsPool, amountAtoken);
  bookRewards(state, validator);
  const { storage, base } = rewardsOf(state, operator);
  const commission = (amountAtoken * validator.commission.rate) / DECIMAL_ONE;
  const delegators = amountAtoken - commission;
  storage.setWord(base + 1n, storage.word(base + 1n) + perShare(delegators, shares));
  storage.setWord(base + 2n, storage.word(base + 2n) + delegators);
  storage.setWord(base + 3n, storage.word(base + 3n) + commission);
}

/**
 * Pays a validator's commission to its operator's account.
 * @returns what was paid, atoken. Throws `MessageFailure` where there is none
 */
export function payCommission(context: ModuleContext, validator: ValidatorRecord): bigint {
  const { state } = context;
  bookRewards(state, validator);
  const { storage, base } = rewardsOf(state, validator.operator);
  const amountAtoken = storage.word(base + 3n);
  if (amountAtoken === 0n) throw noCommission();
  storage.setWord(base + 3n, 0n);
  payFromPool(context, withdrawAddress(state, validator.operator), amountAtoken);
  context.emit("withdraw_commission", {
    amount: amountText(amountAtoken),
    validator: operatorText(validator.operator),
  });
  return amountAtoken;
}

/** There is nothing that a validator could withdraw, or no validator. */
export function noCommission(): MessageFailure {
  return moduleFailure("distribution", 7, "no validator commission to withdraw");
}

/** Before a validator is forgotten: its commission is paid, what rounding left is the community's. */
export function closeRewards(context: ModuleContext, validator: ValidatorRecord): void {
  const { state } = context;
  bookRewards(state, validator);
  const { storage, base } = rewardsOf(state, validator.operator);
  if (storage.word(base + 3n) > 0n) payCommission(context, validator);
  addCommunityPool(storage, storage.word(base + 2n));
  for (let place = 0n; place < 4n; place++) storage.setWord(base + place, 0n);
}

function payFromPool(context: ModuleContext, to: Address, amountAtoken: Atoken): void {
  if (amountAtoken > 0n) context.moveCoins("CLAIM", context.validatorsPool, to, amountAtoken);
}

/** What governance may spend, atoken. */
export function communityPool(state: JournaledState): bigint {
  return new SystemStorage(state, "distribution").word(COMMUNITY_POOL);
}

/** Gives an account's coins to the community pool. */
export function fundCommunityPool(
  context: ModuleContext,
  from: Address,
  amountAtoken: Atoken,
): void {
  context.moveCoins("CALL", from, context.validatorsPool, amountAtoken);
  addCommunityPool(new SystemStorage(context.state, "distribution"), amountAtoken);
}

/** Throws `MessageFailure` where the community pool holds less. */
export function assertPoolHolds({ state }: ModuleContext, amountAtoken: Atoken): void {
  if (amountAtoken <= communityPool(state)) return;
  const text = "community pool does not have sufficient coins to distribute";
  throw moduleFailure("distribution", 9, text);
}

/** Pays out of the community pool. Throws `MessageFailure` where it holds less. */
export function spendCommunityPool(
  context: ModuleContext,
  to: Address,
  amountAtoken: Atoken,
): void {
  assertPoolHolds(context, amountAtoken);
  addCommunityPool(new SystemStorage(context.state, "distribution"), -amountAtoken);
  payFromPool(context, to, amountAtoken);
}

function addCommunityPool(storage: SystemStorage, amountAtoken: Atoken): void {
  storage.setWord(COMMUNITY_POOL, storage.word(COMMUNITY_POOL) + amountAtoken);
}

/** Where an account's rewards and commission go: itself unless it chose another. */
export function withdrawAddress(state: JournaledState, delegator: Address): Address {
  const slot = mapSlot(WITHDRAW_ADDRESSES, addressWord(delegator));
  const chosen = new SystemStorage(state, "distribution").word(slot);
  return chosen === 0n ? delegator : wordAddress(chosen);
}

/** Chooses where an account's rewards go. */
export function setWithdrawAddress(context: ModuleContext, delegator: Address, to: Address): void {
  const slot = mapSlot(WITHDRAW_ADDRESSES, addressWord(delegator));
  new SystemStorage(context.state, "distribution").setWord(slot, addressWord(to));
  context.emit("set_withdraw_address", { withdraw_address: accountText(to) });
}

function rewardsOf(state: JournaledState, operator: Address) {
  const storage = new SystemStorage(state, "distribution");
  return { storage, base: mapSlot(VALIDATORS, addressWord(operator)) };
}

function paidSlot(operator: Address, delegator: Address): bigint {
  return mapSlot(mapSlot(PAID_UP_TO, addressWord(operator)), addressWord(delegator));
}
