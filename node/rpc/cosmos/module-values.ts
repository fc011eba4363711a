/** Values of the modules as the SDK's messages have them. */
import {
  ACCOUNT_PREFIX,
  type Address,
  CONSENSUS_PREFIX,
  parseAnyAddress,
  VALIDATOR_PREFIX,
} from "../../../chain/address.js";
import { DECIMAL_ONE } from "../../../chain/encoding/decimal.js";
import type { MessageReader, ProtoMessage } from "../../../chain/protobuf/values.js";
import { BASE_DENOM, type Atoken } from "../../../chain/units.js";
import { invalidArgument } from "./errors.js";

const MS_PER_SECOND = 1_000;
const NS_PER_MS = 1_000_000;

/** `cosmos.base.v1beta1.Coin`. */
export function coinOf(amountAtoken: Atoken): ProtoMessage {
  return { denom: BASE_DENOM, amount: amountAtoken };
}

/** A list of coins, which never has one of nothing. */
export function coinsOf(amountAtoken: Atoken): readonly ProtoMessage[] {
  return amountAtoken === 0n ? [] : [coinOf(amountAtoken)];
}

/** A list of `DecCoin`, whose amounts have 18 decimals. */
export function decCoinsOf(amountAtoken: Atoken): readonly ProtoMessage[] {
  return coinsOf(amountAtoken * DECIMAL_ONE);
}

/** `google.protobuf.Timestamp`, or a `Duration`. */
export function secondsOf(timeMs: number): ProtoMessage {
  const seconds = Math.floor(timeMs / MS_PER_SECOND);
  return {
    seconds: BigInt(seconds),
    nanos: (timeMs - seconds * MS_PER_SECOND) * NS_PER_MS,
  };
}

/**
 * A validator's operator in a field of a request: bech32, or 0x hex.
 * @throws INVALID_ARGUMENT
 */
export function operatorIn(request: MessageReader, field: string): Address {
  return addressIn(request, field, VALIDATOR_PREFIX, "validator address cannot be empty");
}

/**
 * An account in a field of a request: bech32, or 0x hex.
 * @throws INVALID_ARGUMENT
 */
export function delegatorIn(request: MessageReader, field: string): Address {
  return addressIn(request, field, ACCOUNT_PREFIX, "delegator address cannot be empty");
}

/**
 * The address of a consensus key in a field of a request: bech32, or 0x hex.
 * @throws INVALID_ARGUMENT
 */
export function consensusAddressIn(request: MessageReader, field: string): Address {
  return addressIn(request, field, CONSENSUS_PREFIX, "invalid request");
}

function addressIn(
  request: MessageReader,
  field: string,
  prefix: string,
  whenEmpty: string,
): Address {
  const text = request.text(field);
  if (text === "") throw invalidArgument(whenEmpty);
  try {
    return parseAnyAddress(text, { prefixes: [prefix] });
  } catch {
    const form = `${prefix}1... or 0x hex`;
    throw invalidArgument(`${field}: expected ${form}, got "${text.slice(0, 100)}"`);
  }
}
