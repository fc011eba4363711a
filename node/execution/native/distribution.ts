/** 0x801: rewards, commission, the community pool. */
import { type Address, operatorText } from "../../../chain/address.js";
import { accountText } from "../../../chain/abci-event.js";
import { SDK_CODE } from "../../../chain/cosmos/sdk-fault.js";
import type { AbiValue } from "../../../chain/evm/abi/abi-values.js";
import { BASE_DENOM, type Atoken } from "../../../chain/units.js";
import {
  communityPool,
  delegationRewards,
  depositRewards,
  fundCommunityPool,
  payCommission,
  payRewards,
  setWithdrawAddress,
  validatorRewards,
  withdrawAddress,
  withdrawRewards,
} from "../../modules/distribution/rewards.js";
import { addressOf, messageFailure } from "../../modules/message-fields.js";
import { moduleParam } from "../../modules/module-params.js";
import { validatorOf } from "../../modules/staking/delegating.js";
import { Delegations } from "../../modules/staking/delegation-record.js";
import { Validators } from "../../modules/staking/validator-record.js";
import { listOf } from "../../modules/system-storage.js";
import type { JournaledState } from "../../state/journaled-state.js";
import {
  abiNative,
  actorOf,
  assertCaller,
  type NativeFunction,
  refusal,
  SUCCESS,
} from "./abi-native.js";
import type { Arguments } from "./arguments.js";
import { DISTRIBUTION as ABI, logOf } from "./native-abis.js";
import type { NativeCall } from "./native-call.js";
import { pageOf } from "./pages.js";

/** Decimals of `Dec` and `DecCoin`. */
const PRECISION = 18n;
const ONE_COIN = 10n ** PRECISION;

const functions: Readonly<Record<string, NativeFunction>> = {
  claimRewards(args, call) {
    const delegator = actorOf(args, "delegatorAddress", call);
    const context = call.context();
    const { state } = context;
    const most = moduleParam(state, "staking", "max_validators");
    const wanted = args.integer("maxRetrieve");
    if (wanted > most) {
      const rest = `exceeds the maximum number of validators (${most})`;
      throw refusal(`maxRetrieve (${wanted}) parameter ${rest}`);
    }
    const validators = new Validators(state);
    let amount = 0n;
    for (const operator of new Delegations(state).operatorsOf(delegator, Number(wanted))) {
      amount += payRewards(context, validators.of(operator), delegator);
    }
    log(call, "ClaimRewards", { delegatorAddress: delegator, amount });
    return SUCCESS;
  },
  setWithdrawAddress(args, call) {
    const caller = actorOf(args, "delegatorAddress", call);
    const context = call.context();
    const withdrawerAddress = args.text("withdrawerAddress");
    const to = addressOf(withdrawerAddress, "withdraw");
    if (context.isBlocked(to)) {
      const text = `${withdrawerAddress} is not allowed to receive external funds`;
      throw messageFailure(SDK_CODE.unauthorized, text);
    }
    setWithdrawAddress(context, caller, to);
    log(call, "SetWithdrawerAddress", { caller, withdrawerAddress });
    return SUCCESS;
  },
  withdrawDelegatorRewards(args, call) {
    const delegator = actorOf(args, "delegatorAddress", call);
    const context = call.context();
    const validator = validatorOf(context, args.operator("validatorAddress"));
    return [coinsOf(withdrawRewards(context, validator, delegator))];
  },
  withdrawValidatorCommission(args, call) {
    const operator = args.operator("validatorAddress");
    assertCaller(operator, call);
    const context = call.context();
    const commission = payCommission(context, validatorOf(context, operator));
    const validatorAddress = operatorText(operator);
    log(call, "WithdrawValidatorCommission", { validatorAddress, commission });
    return [coinsOf(commission)];
  },
  fundCommunityPool(args, call) {
    const depositor = actorOf(args, "depositor", call);
    const amount = args.coins("amount");
    fundCommunityPool(call.context(), depositor, amount);
    log(call, "FundCommunityPool", { depositor, denom: BASE_DENOM, amount });
    return SUCCESS;
  },
  depositValidatorRewardsPool(args, call) {
    const depositor = actorOf(args, "depositor", call);
    const context = call.context();
    const amount = args.coins("amount");
    const validatorAddress = args.operator("validatorAddress");
    depositRewards(context, validatorOf(context, validatorAddress), depositor, amount);
    const what = { validatorAddress, denom: BASE_DENOM, amount };
    log(call, "DepositValidatorRewardsPool", { depositor, ...what });
    return SUCCESS;
  },
  validatorDistributionInfo(args, call) {
    const { state } = call.host;
    const validator = validatorOf(call.context(), args.operator("validatorAddress"));
    const { operator } = validator;
    return [
      {
        operatorAddress: accountText(operator),
        selfBondRewards: decimalCoins(delegationRewards(state, validator, operator)),
        commission: decimalCoins(validatorRewards(state, validator).commissionAtoken),
      },
    ];
  },
  validatorOutstandingRewards(args, call) {
    const { delegatorsAtoken, commissionAtoken } = rewardsOf(args, call);
    return [decimalCoins(delegatorsAtoken + commissionAtoken)];
  },
  validatorCommission: (args, call) => [decimalCoins(rewardsOf(args, call).commissionAtoken)],
  validatorSlashes(args, call) {
    const validator = validatorOf(call.context(), args.operator("validatorAddress"));
    const [from, to] = [args.integer("startingHeight"), args.integer("endingHeight")];
    const slashes = listOf(validator.slashCount, (index) => ({
      ...validator.slashAt(index),
      place: BigInt(index + 1),
    })).filter(({ height }) => BigInt(height) >= from && BigInt(height) <= to);
    const { items, response } = pageOf(slashes, args.struct("pageRequest"));
    const values = items.map(({ place, fraction }) => ({
      validatorPeriod: place,
      fraction: { value: fraction, precision: PRECISION },
    }));
    return [values, response];
  },
  delegationRewards(args, call) {
    const { state } = call.host;
    const validator = validatorOf(call.context(), args.operator("validatorAddress"));
    const delegator = args.address("delegatorAddress");
    return [decimalCoins(delegationRewards(state, validator, delegator))];
  },
  delegationTotalRewards(args, call) {
    const { state } = call.host;
    const rewards = allRewards(state, args.address("delegatorAddress"));
    const total = rewards.reduce((sum, { amountAtoken }) => sum + amountAtoken, 0n);
    const values = rewards.map(({ operator, amountAtoken }) => ({
      validatorAddress: operatorText(operator),
      reward: decimalCoins(amountAtoken),
    }));
    return [values, decimalCoins(total)];
  },
  delegatorValidators(args, call) {
    const operators = new Delegations(call.host.state).operatorsOf(
      args.address("delegatorAddress"),
    );
    return [operators.map(operatorText)];
  },
  delegatorWithdrawAddress(args, call) {
    return [accountText(withdrawAddress(call.host.state, args.address("delegatorAddress")))];
  },
  communityPool: (_args, call) => [decimalCoins(communityPool(call.host.state))],
};

/** The contract. */
export const DISTRIBUTION = abiNative({ abi: ABI, module: "distribution", functions });

function log(call: NativeCall, name: string, values: { readonly [name: string]: AbiValue }): void {
  call.log(logOf(ABI, name, values));
}

function rewardsOf(args: Arguments, call: NativeCall) {
  const validator = validatorOf(call.context(), args.operator("validatorAddress"));
  return validatorRewards(call.host.state, validator);
}

function allRewards(state: JournaledState, delegator: Address) {
  const validators = new Validators(state);
  return new Delegations(state).operatorsOf(delegator).map((operator) => ({
    operator,
    amountAtoken: delegationRewards(state, validators.of(operator), delegator),
  }));
}

function coinsOf(amountAtoken: Atoken): AbiValue {
  return amountAtoken === 0n ? [] : [{ denom: BASE_DENOM, amount: amountAtoken }];
}

function decimalCoins(amountAtoken: Atoken): AbiValue {
  if (amountAtoken === 0n) return [];
  return [{ denom: BASE_DENOM, amount: amountAtoken * ONE_COIN, precision: PRECISION }];
}
