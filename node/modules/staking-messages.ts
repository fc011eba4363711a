/** Messages of staking, distribution and slashing, each by the function that does it. */
import { validatorAddress } from "../../chain/consensus/validator-set.js";
import { ProtoWriter } from "../../chain/protobuf/wire.js";
import { textOf } from "../../chain/cosmos/cosmos-transaction.js";
import type { ProtoMessage, ProtoValue } from "../../chain/cosmos/field-schema.js";
import { SDK_CODE } from "../../chain/cosmos/sdk-fault.js";
import { BASE_DENOM, type Atoken } from "../../chain/units.js";
import { SDK_REFUSALS_VERSION } from "../settings/app-version.js";
import {
  fundCommunityPool,
  noCommission,
  payCommission,
  setWithdrawAddress,
  withdrawRewards,
} from "./distribution/rewards.js";
import type { MessageContext, MessageHandler } from "./message-context.js";
import {
  addressOf,
  amountIn,
  messageFailure,
  nested,
  NO_RESPONSE,
  operatorOf,
  timestamp,
  wholeNumberIn,
} from "./message-fields.js";
import { assertNotTombstoned, unjail } from "./slashing/signing.js";
import {
  cancelUnbonding,
  delegate,
  redelegate,
  undelegate,
  validatorOf,
} from "./staking/delegating.js";
import {
  assertCommission,
  assertDescribed,
  assertEdit,
  editValidator,
  noRateFailure,
  registerValidator,
  type Registration,
  type ValidatorEdit,
} from "./staking/registration.js";
import { stakedHandler } from "./staked-handler.js";
import {
  assertSelfDelegated,
  runCancel,
  runDelegate,
  runRedelegate,
  runUndelegate,
  selfDelegationIn,
  undelegated,
} from "./staking/stake-messages.js";
import { noLeastStakeFailure, stakingFailure } from "./staking/staking-failure.js";
import { type Description, DESCRIPTION_FIELDS, Validators } from "./staking/validator-record.js";

/** Gas of messages beside bytes and signature: by the slots that they write. */
const GAS = {
  register: 300_000n,
  edit: 100_000n,
  delegate: 150_000n,
  undelegate: 200_000n,
  redelegate: 250_000n,
  cancel: 200_000n,
  withdraw: 80_000n,
  setAddress: 30_000n,
  unjail: 60_000n,
} as const;

type Run = MessageHandler["run"];

/** A handler of a module. */
function of(module: string, name: string, gas: bigint, run: Run): [string, MessageHandler] {
  return [`cosmos.${module}.v1beta1.${name}`, stakedHandler({ module, name, gas }, run)];
}

/** A run of each side of the version from which on messages fail as the SDK's do. */
function byVersion(first: Run, now: Run): Run {
  return (message, context) =>
    (context.appVersion < SDK_REFUSALS_VERSION ? first : now)(message, context);
}

const delegateFirst: Run = (message, context) => {
  const validator = validatorOf(context, operatorOf(message, "validator_address"));
  delegate(context, delegatorOf(message), validator, amountIn(message, "amount"));
  return NO_RESPONSE;
};

const undelegateFirst: Run = (message, context) => {
  const amountAtoken = amountIn(message, "amount");
  const validator = validatorOf(context, operatorOf(message, "validator_address"));
  const { endMs } = undelegate(context, delegatorOf(message), validator, amountAtoken);
  return undelegated(endMs, amountAtoken);
};

const redelegateFirst: Run = (message, context) => {
  const source = validatorOf(context, operatorOf(message, "validator_src_address"));
  const destination = validatorOf(context, operatorOf(message, "validator_dst_address"));
  const amountAtoken = amountIn(message, "amount");
  const route = { source, destination };
  const { endMs } = redelegate(context, delegatorOf(message), route, amountAtoken);
  return new ProtoWriter().message(1, timestamp(endMs)).finish();
};

const cancelFirst: Run = (message, context) => {
  const validator = validatorOf(context, operatorOf(message, "validator_address"));
  const height = Number(message["creation_height"] ?? 0n);
  const amountAtoken = amountIn(message, "amount");
  cancelUnbonding(context, delegatorOf(message), validator, { amountAtoken, height });
  return NO_RESPONSE;
};

/** Handlers by message. */
export const STAKING_HANDLERS: readonly (readonly [string, MessageHandler])[] = [
  of("staking", "MsgCreateValidator", GAS.register, register),
  of("staking", "MsgEditValidator", GAS.edit, edit),
  of("staking", "MsgDelegate", GAS.delegate, byVersion(delegateFirst, runDelegate)),
  of("staking", "MsgUndelegate", GAS.undelegate, byVersion(undelegateFirst, runUndelegate)),
  of("staking", "MsgBeginRedelegate", GAS.redelegate, byVersion(redelegateFirst, runRedelegate)),
  of("staking", "MsgCancelUnbondingDelegation", GAS.cancel, byVersion(cancelFirst, runCancel)),
  of("distribution", "MsgSetWithdrawAddress", GAS.setAddress, (message, context) => {
    const toText = textOf(message, "withdraw_address");
    const to = addressOf(toText, "withdraw");
    if (context.isBlocked(to)) {
      const text = `${toText} is not allowed to receive external funds`;
      throw messageFailure(SDK_CODE.unauthorized, text);
    }
    setWithdrawAddress(context, delegatorOf(message), to);
    return NO_RESPONSE;
  }),
  of("distribution", "MsgWithdrawDelegatorReward", GAS.withdraw, (message, context) => {
    const validator = validatorOf(context, operatorOf(message, "validator_address"));
    return coinResponse(withdrawRewards(context, validator, delegatorOf(message)));
  }),
  of("distribution", "MsgWithdrawValidatorCommission", GAS.withdraw, (message, context) => {
    const operator = operatorOf(message, "validator_address");
    const isUnknown = !new Validators(context.state).of(operator).exists;
    if (isUnknown && context.appVersion >= SDK_REFUSALS_VERSION) throw noCommission();
    return coinResponse(payCommission(context, validatorOf(context, operator)));
  }),
  of("distribution", "MsgFundCommunityPool", GAS.setAddress, (message, context) => {
    const from = addressOf(textOf(message, "depositor"), "depositor");
    fundCommunityPool(context, from, amountIn(message, "amount"));
    return NO_RESPONSE;
  }),
  of("slashing", "MsgUnjail", GAS.unjail, (message, context) => {
    unjail(context, validatorOf(context, operatorOf(message, "validator_addr")));
    return NO_RESPONSE;
  }),
];

function register(message: ProtoMessage, context: MessageContext): Uint8Array {
  const operator = operatorOf(message, "validator_address");
  const isFirst = context.appVersion < SDK_REFUSALS_VERSION;
  if (!isFirst && nested(message["pubkey"])["typeUrl"] === undefined) throw stakingFailure("noKey");
  const { publicKey, address } = consensusKey(message["pubkey"]);
  assertNotTombstoned(context.state, address);
  const delegator = textOf(message, "delegator_address");
  if (delegator !== "" && addressOf(delegator, "delegator") !== operator) {
    throw messageFailure(SDK_CODE.invalidRequest, "validator address is invalid");
  }
  const description = descriptionOf(message["description"]);
  if (!isFirst) assertOffered(message, description);
  registerValidator(context, {
    operator,
    publicKey,
    description,
    commission: commissionIn(nested(message["commission"]), isFirst ? FRACTION : SIGNED_FRACTION),
    minSelfDelegation: wholeNumberIn(message, "min_self_delegation"),
    selfDelegationAtoken: isFirst ? amountIn(message, "value") : selfDelegationIn(message, "value"),
  });
  return NO_RESPONSE;
}

/**
 * What a validator offers, in the order of x/staking's `MsgCreateValidator.Validate`: a message can say what
 * no call of a contract can, coins of any kind and rates below zero.
 */
function assertOffered(message: ProtoMessage, description: Description): void {
  assertSelfDelegated(message, "value");
  assertDescribed(description);
  const rates = nested(message["commission"]);
  if (["rate", "max_rate", "max_change_rate"].every((field) => textOf(rates, field) === "")) {
    throw messageFailure(SDK_CODE.invalidRequest, "empty commission");
  }
  assertCommission(commissionIn(rates, SIGNED_FRACTION));
}

function commissionIn(rates: ProtoMessage, pattern: RegExp): Registration["commission"] {
  return {
    rate: fractionIn(rates, "rate", pattern),
    maxRate: fractionIn(rates, "max_rate", pattern),
    maxChangeRate: fractionIn(rates, "max_change_rate", pattern),
  };
}

function edit(message: ProtoMessage, context: MessageContext): Uint8Array {
  const operator = operatorOf(message, "validator_address");
  const hasRate = textOf(message, "commission_rate") !== "";
  const hasLeast = textOf(message, "min_self_delegation") !== "";
  const isFirst = context.appVersion < SDK_REFUSALS_VERSION;
  const changed = (): ValidatorEdit => ({
    description: descriptionOf(message["description"]),
    rate: hasRate ? fractionIn(message, "commission_rate", FRACTION) : undefined,
    minSelfDelegation: hasLeast ? wholeNumberIn(message, "min_self_delegation") : undefined,
  });
  if (!isFirst) {
    if (textOf(message, "min_self_delegation").startsWith("-")) throw noLeastStakeFailure();
    if (hasRate && !FRACTION.test(textOf(message, "commission_rate"))) throw noRateFailure();
    assertEdit(context, changed());
  }
  const validator = validatorOf(context, operator);
  editValidator(context, validator, changed());
  return NO_RESPONSE;
}

/** An ed25519 key in an Any, and its address. */
function consensusKey(value: ProtoValue) {
  const any = nested(value);
  const key = nested(any["message"])["key"];
  const isEd25519 = any["typeUrl"] === "/cosmos.crypto.ed25519.PubKey";
  if (!isEd25519 || !(key instanceof Uint8Array) || key.length !== 32) {
    throw stakingFailure("keyKind");
  }
  return { publicKey: key, address: validatorAddress(key) };
}

function delegatorOf(message: ProtoMessage) {
  return addressOf(textOf(message, "delegator_address"), "delegator");
}

function descriptionOf(value: ProtoValue): Description {
  const message = nested(value);
  const texts = DESCRIPTION_FIELDS.map((name) => [name, textOf(message, name)] as const);
  return Object.fromEntries(texts) as Description;
}

const FRACTION = /^[0-9]{1,70}$/;
const SIGNED_FRACTION = /^-?[0-9]{1,70}$/;

/** A decimal: protobuf has it as an integer text of 10^-18. */
function fractionIn(message: ProtoMessage, field: string, pattern: RegExp): bigint {
  const text = textOf(message, field);
  if (text === "") return 0n;
  if (pattern.test(text)) return BigInt(text);
  throw stakingFailure("commissionRange");
}

/** A response with coins: none for nothing. */
function coinResponse(amountAtoken: Atoken): Uint8Array {
  if (amountAtoken === 0n) return NO_RESPONSE;
  const coin = new ProtoWriter().bytes(1, BASE_DENOM).bytes(2, amountAtoken.toString());
  return new ProtoWriter().message(1, coin).finish();
}
