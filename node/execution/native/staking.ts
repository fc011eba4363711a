/** 0x800: validators and delegations. */
import type { Address } from "../../../chain/address.js";
import { validatorAddress as addressOfKey } from "../../../chain/consensus/validator-set.js";
import type { AbiValue } from "../../../chain/evm/abi/abi-values.js";
import { assertNotTombstoned } from "../../modules/slashing/signing.js";
import {
  cancelUnbonding,
  delegate,
  redelegate,
  undelegate,
  validatorOf,
} from "../../modules/staking/delegating.js";
import {
  assertEdit,
  editValidator,
  registerValidator,
} from "../../modules/staking/registration.js";
import { stakingFailure } from "../../modules/staking/staking-failure.js";
import type { Description } from "../../modules/staking/validator-record.js";
import { SDK_REFUSALS_VERSION } from "../../settings/app-version.js";
import {
  abiNative,
  actorOf,
  assertCaller,
  assertNoContract,
  type NativeFunction,
  SUCCESS,
} from "./abi-native.js";
import type { Arguments } from "./arguments.js";
import { logOf, STAKING as ABI } from "./native-abis.js";
import type { NativeCall } from "./native-call.js";
import { STAKING_VIEWS } from "./staking-views.js";

/** Stands for "as it is" in numbers of `editValidator`. */
const DO_NOT_MODIFY = -1n;

/** Bytes of an ed25519 key. */
const KEY_BYTES = 32;

const functions: Readonly<Record<string, NativeFunction>> = {
  createValidator(args, call) {
    const operator = args.address("validatorAddress");
    const selfDelegationAtoken = args.amount("value");
    const publicKey = consensusKey(args.text("pubkey"));
    assertNoContract(call);
    assertCaller(operator, call);
    assertNotTombstoned(call.host.state, addressOfKey(publicKey));
    const rates = args.struct("commissionRates");
    registerValidator(call.context(), {
      operator,
      publicKey,
      description: descriptionOf(args),
      commission: {
        rate: rates.integer("rate"),
        maxRate: rates.integer("maxRate"),
        maxChangeRate: rates.integer("maxChangeRate"),
      },
      minSelfDelegation: args.integer("minSelfDelegation"),
      selfDelegationAtoken,
    });
    log(call, "CreateValidator", { validatorAddress: operator, value: selfDelegationAtoken });
    return SUCCESS;
  },
  editValidator(args, call) {
    const operator = args.address("validatorAddress");
    assertNoContract(call);
    assertCaller(operator, call);
    const rate = args.integer("commissionRate");
    const least = args.integer("minSelfDelegation");
    const context = call.context();
    const edit = {
      description: descriptionOf(args),
      rate: rate === DO_NOT_MODIFY ? undefined : rate,
      minSelfDelegation: least === DO_NOT_MODIFY ? undefined : least,
    };
    if (context.appVersion >= SDK_REFUSALS_VERSION) assertEdit(context, edit);
    const validator = validatorOf(context, operator);
    if (rate < DO_NOT_MODIFY) throw stakingFailure("commissionRange");
    if (least < DO_NOT_MODIFY) throw stakingFailure("selfDelegationLess");
    editValidator(context, validator, edit);
    log(call, "EditValidator", {
      validatorAddress: operator,
      commissionRate: validator.commission.rate,
      minSelfDelegation: validator.minSelfDelegation,
    });
    return SUCCESS;
  },
  delegate(args, call) {
    const { delegator, context } = actor(args, call);
    const amount = args.amount("amount");
    const operator = args.operator("validatorAddress");
    const newShares = delegate(context, delegator, validatorOf(context, operator), amount);
    log(call, "Delegate", { ...pair(delegator, operator), amount, newShares });
    return SUCCESS;
  },
  undelegate(args, call) {
    const { delegator, context } = actor(args, call);
    const asked = args.amount("amount");
    const operator = args.operator("validatorAddress");
    const validator = validatorOf(context, operator);
    const { endMs, amountAtoken: amount } = undelegate(context, delegator, validator, asked);
    const completionTime = secondsOf(endMs);
    log(call, "Unbond", { ...pair(delegator, operator), amount, completionTime });
    return [completionTime];
  },
  redelegate(args, call) {
    const { delegator: delegatorAddress, context } = actor(args, call);
    const asked = args.amount("amount");
    const validatorSrcAddress = args.operator("validatorSrcAddress");
    const validatorDstAddress = args.operator("validatorDstAddress");
    const route = {
      source: validatorOf(context, validatorSrcAddress),
      destination: validatorOf(context, validatorDstAddress),
    };
    const { endMs, amountAtoken } = redelegate(context, delegatorAddress, route, asked);
    const completionTime = secondsOf(endMs);
    const parties = { delegatorAddress, validatorSrcAddress, validatorDstAddress };
    log(call, "Redelegate", { ...parties, amount: amountAtoken, completionTime });
    return [completionTime];
  },
  cancelUnbondingDelegation(args, call) {
    const { delegator, context } = actor(args, call);
    const amountAtoken = args.amount("amount");
    const operator = args.operator("validatorAddress");
    const creationHeight = args.integer("creationHeight");
    const validator = validatorOf(context, operator);
    const height = Number(creationHeight);
    cancelUnbonding(context, delegator, validator, { amountAtoken, height });
    const of = pair(delegator, operator);
    log(call, "CancelUnbondingDelegation", { ...of, amount: amountAtoken, creationHeight });
    return SUCCESS;
  },
  ...STAKING_VIEWS,
};

/** The contract. */
export const STAKING = abiNative({ abi: ABI, module: "staking", functions });

/** Who acts: the sender, and nobody else. */
function actor(args: Arguments, call: NativeCall) {
  const delegator = actorOf(args, "delegatorAddress", call);
  return { delegator, context: call.context() };
}

function pair(delegatorAddress: Address, validatorAddress: Address) {
  return { delegatorAddress, validatorAddress };
}

function log(call: NativeCall, name: string, values: { readonly [name: string]: AbiValue }): void {
  call.log(logOf(ABI, name, values));
}

function secondsOf(timeMs: number): bigint {
  return BigInt(Math.floor(timeMs / 1_000));
}

/** A key in base64 as `priv_validator_key.json` has it. Throws `MessageFailure`. */
function consensusKey(text: string): Uint8Array {
  const key = Buffer.from(text, "base64");
  const isWhole = key.length === KEY_BYTES && key.toString("base64") === text;
  if (!isWhole) throw stakingFailure("keyKind");
  return new Uint8Array(key);
}

function descriptionOf(args: Arguments): Description {
  const description = args.struct("description");
  return {
    moniker: description.text("moniker"),
    identity: description.text("identity"),
    website: description.text("website"),
    security_contact: description.text("securityContact"),
    details: description.text("details"),
  };
}
