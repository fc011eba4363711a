/**
 * Messages that move stake, looked at in the SDK's order (x/staking `keeper/msg_server.go`), so that
 * they fail with its codes. Chains of the first version have the handlers beside
 * (`SDK_REFUSALS_VERSION`).
 */
import { coinsOf, textOf } from "../../../chain/cosmos/cosmos-transaction.js";
import type { ProtoMessage } from "../../../chain/cosmos/field-schema.js";
import { ProtoWriter } from "../../../chain/protobuf/wire.js";
import { SDK_CODE } from "../../../chain/cosmos/sdk-fault.js";
import { BASE_DENOM, type Atoken } from "../../../chain/units.js";
import type { MessageHandler } from "../message-context.js";
import {
  addressOf,
  messageFailure,
  NO_RESPONSE,
  operatorOf,
  type PositiveCoin,
  positiveCoin,
  timestamp,
} from "../message-fields.js";
import { cancelUnbonding, delegate, redelegate, undelegate, validatorOf } from "./delegating.js";
import { stakingFailure } from "./staking-failure.js";
import { Validators } from "./validator-record.js";
import { assertStake } from "./shares.js";

type Run = MessageHandler["run"];

/** Runs `MsgDelegate`. */
export const runDelegate: Run = (message, context) => {
  const { operator, delegator } = parties(message, "validator_address");
  const stake = stakeIn(message, "amount", "invalid delegation amount");
  const validator = validatorOf(context, operator);
  delegate(context, delegator, validator, bondAtoken(stake));
  return NO_RESPONSE;
};

/** Runs `MsgUndelegate`. */
export const runUndelegate: Run = (message, context) => {
  const { operator, delegator } = parties(message, "validator_address");
  const stake = stakeIn(message, "amount", "invalid shares amount");
  const validator = validatorOf(context, operator);
  assertStake(context, validator, delegator, stake.amountUnits);
  const { endMs, amountAtoken } = undelegate(context, delegator, validator, bondAtoken(stake));
  return undelegated(endMs, amountAtoken);
};

/** Runs `MsgBeginRedelegate`. */
export const runRedelegate: Run = (message, context) => {
  const { operator, delegator } = parties(message, "validator_src_address");
  const destinationOperator = operatorOf(message, "validator_dst_address");
  const stake = stakeIn(message, "amount", "invalid shares amount");
  const source = validatorOf(context, operator);
  assertStake(context, source, delegator, stake.amountUnits);
  const amountAtoken = bondAtoken(stake);
  const destination = new Validators(context.state).of(destinationOperator);
  if (!destination.exists) throw stakingFailure("noDestination");
  const { endMs } = redelegate(context, delegator, { source, destination }, amountAtoken);
  return new ProtoWriter().message(1, timestamp(endMs)).finish();
};

/** Runs `MsgCancelUnbondingDelegation`. */
export const runCancel: Run = (message, context) => {
  const { operator, delegator } = parties(message, "validator_address");
  const stake = stakeIn(message, "amount", "invalid amount");
  const height = Number(message["creation_height"] ?? 0n);
  if (height <= 0) throw messageFailure(SDK_CODE.invalidRequest, "invalid height");
  const amountAtoken = bondAtoken(stake);
  const validator = validatorOf(context, operator);
  cancelUnbonding(context, delegator, validator, { amountAtoken, height });
  return NO_RESPONSE;
};

/** Stake of a new validator, atoken. Throws `MessageFailure`. */
export function selfDelegationIn(message: ProtoMessage, field: string): bigint {
  return bondAtoken(assertSelfDelegated(message, field));
}

/** Coins that a new validator stakes, whatever they are. Throws `MessageFailure` for none. */
export function assertSelfDelegated(message: ProtoMessage, field: string): PositiveCoin {
  return stakeIn(message, field, "invalid delegation amount");
}

/** `MsgUndelegateResponse`. */
export function undelegated(endMs: number, amountAtoken: Atoken): Uint8Array {
  const amount = new ProtoWriter().bytes(1, BASE_DENOM).bytes(2, amountAtoken.toString());
  return new ProtoWriter().message(1, timestamp(endMs)).message(2, amount).finish();
}

function parties(message: ProtoMessage, operatorField: string) {
  return {
    operator: operatorOf(message, operatorField),
    delegator: addressOf(textOf(message, "delegator_address"), "delegator"),
  };
}

/** Some coins above zero; of which denomination is looked at later. */
function stakeIn(message: ProtoMessage, field: string, refusal: string): PositiveCoin {
  const coin = positiveCoin(coinsOf(message[field]));
  if (coin === undefined) throw messageFailure(SDK_CODE.invalidRequest, refusal);
  return coin;
}

function bondAtoken({ denom, amountUnits }: PositiveCoin): Atoken {
  if (denom === BASE_DENOM) return amountUnits;
  const text = `invalid coin denomination: got ${denom}, expected ${BASE_DENOM}`;
  throw messageFailure(SDK_CODE.invalidRequest, text);
}
