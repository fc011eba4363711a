/** Fields of messages as modules take them; what is not one is refused in the SDK's words. */
import { type Address, parseBech32, VALIDATOR_PREFIX } from "../../chain/address.js";
import { coinsText } from "../../chain/cosmos/ante.js";
import { parseUnsigned } from "../../chain/encoding/decimal.js";
import { ProtoWriter } from "../../chain/protobuf/wire.js";
import { amountOf, type Coin, coinsOf, textOf } from "../../chain/cosmos/cosmos-transaction.js";
import type { ProtoMessage, ProtoValue } from "../../chain/cosmos/field-schema.js";
import { SDK_CODE, sdkFault } from "../../chain/cosmos/sdk-fault.js";
import { MessageFailure } from "./module-context.js";

/** The answer of messages that answer nothing. */
export const NO_RESPONSE = new Uint8Array(0);

/** Failure of a message with a code of the root codespace. */
export function messageFailure(code: number, text: string): MessageFailure {
  return new MessageFailure(sdkFault(code, text));
}

/** An account's bech32 text. Throws `MessageFailure`. */
export function addressOf(value: string, role: string): Address {
  return read(value, role, (text) => parseBech32(text));
}

/** The operator's bech32 text in a field. Throws `MessageFailure`. */
export function operatorOf(message: ProtoMessage, field: string): Address {
  return read(textOf(message, field), "validator", (text) => parseBech32(text, VALIDATOR_PREFIX));
}

function read(value: string, role: string, parse: (text: string) => Address): Address {
  try {
    return parse(value);
  } catch {
    const text = `invalid ${role} address: ${value.slice(0, 100)}`;
    throw messageFailure(SDK_CODE.invalidAddress, text);
  }
}

/** Some coins of whatever denomination. */
export interface PositiveCoin {
  readonly denom: string;
  /** Smallest units, above zero. */
  readonly amountUnits: bigint;
}

/** The only coin of a list, where there is one as the SDK takes it; its amount has 78 digits at most. */
export function positiveCoin(coins: readonly Coin[]): PositiveCoin | undefined {
  const [coin, ...others] = coins;
  if (coin === undefined || others.length > 0 || !isPositive(coin)) return undefined;
  return { denom: coin.denom, amountUnits: BigInt(coin.amount) };
}

/** Whether coins have a denomination each and are above zero. */
export function isPositive({ denom, amount }: Coin): boolean {
  return /^[a-zA-Z][a-zA-Z0-9/:._-]{2,127}$/.test(denom) && /^[1-9][0-9]{0,77}$/.test(amount);
}

/** The amount of a message's coins: exactly one coin, above zero. Throws `MessageFailure`. */
export function amountOfCoins(coins: readonly Coin[]): bigint {
  const [coin, ...others] = coins;
  if (coin === undefined || others.length > 0 || !isPositive(coin)) {
    throw messageFailure(SDK_CODE.invalidCoins, coinsText(coins).slice(0, 200));
  }
  const amountAtoken = amountOf(coin);
  if (amountAtoken === undefined) {
    const text = `spendable balance 0${coin.denom} is smaller than ${coinsText([coin])}`;
    throw messageFailure(SDK_CODE.insufficientFunds, text.slice(0, 400));
  }
  return amountAtoken;
}

/** The amount of a field with coins. Throws `MessageFailure`. */
export function amountIn(message: ProtoMessage, field: string): bigint {
  return amountOfCoins(coinsOf(message[field]));
}

/** A whole number in a text. Throws `MessageFailure`. */
export function wholeNumberIn(message: ProtoMessage, field: string): bigint {
  const text = textOf(message, field);
  if (/^[0-9]{1,70}$/.test(text)) return BigInt(text);
  throw messageFailure(SDK_CODE.invalidRequest, `${field} is no whole number`);
}

/** A nested message; an empty one where there is none. */
export function nested(value: ProtoValue): ProtoMessage {
  const isMessage =
    typeof value === "object" && !Array.isArray(value) && !(value instanceof Uint8Array);
  return isMessage ? (value as ProtoMessage) : {};
}

/**
 * A fraction as people write it, "0.334", in 10^-18.
 * @param what named in the `MessageFailure` that is thrown for any other text
 */
export function fractionOfText(text: string, what: string): bigint {
  const fraction = parseUnsigned(text, 20);
  if (fraction !== undefined) return fraction;
  throw messageFailure(SDK_CODE.invalidRequest, `${what} is no decimal: ${text.slice(0, 60)}`);
}

/** `google.protobuf.Timestamp`. */
export function timestamp(timeMs: number): ProtoWriter {
  const seconds = Math.floor(timeMs / 1_000);
  return new ProtoWriter().integer(1, seconds).integer(2, (timeMs % 1_000) * 1_000_000);
}
