/** Money: bigint atoken inside, decimal strings at edges, TOKEN only for people. */
import { ChainError } from "./errors.js";

/** An amount of the coin in its smallest unit; below 0 where a difference can be. */
export type Atoken = bigint;

/** 1 TOKEN = 10^18 atoken (spec: Native token). */
export const ATOKEN_PER_TOKEN = 10n ** 18n;

/** Decimals of the native token. */
export const TOKEN_DECIMALS = 18;

/** Symbol of the native token. */
export const TOKEN_SYMBOL = "TOKEN";

/** Base denomination of the native token. */
export const BASE_DENOM = "atoken";

/** Largest amount that any interface takes: 2^256 - 1 atoken. */
export const MAX_ATOKEN = 2n ** 256n - 1n;

const AMOUNT_PATTERN = /^[1-9][0-9]{0,77}$/;

/**
 * Untrusted decimal string to a positive amount of atoken, as the deposit and withdrawal APIs
 * write it: `^[1-9][0-9]{0,77}$`, below 2^256.
 * @throws INVALID_AMOUNT
 */
export function parseAtoken(text: unknown): Atoken {
  if (typeof text !== "string" || !AMOUNT_PATTERN.test(text)) {
    throw new ChainError("INVALID_AMOUNT", "expected a positive decimal string of atoken");
  }
  const amountAtoken = BigInt(text);
  if (amountAtoken > MAX_ATOKEN) {
    throw new ChainError("INVALID_AMOUNT", "amount is not below 2^256 atoken");
  }
  return amountAtoken;
}

/**
 * TOKEN text of a person ("1", "0.25") to atoken, exactly; at most 18 decimals.
 * @throws INVALID_AMOUNT
 */
export function tokenToAtoken(text: string): Atoken {
  const match = /^([0-9]{1,60})(?:\.([0-9]{1,18}))?$/.exec(text);
  if (match === null) {
    throw new ChainError("INVALID_AMOUNT", "expected TOKEN with at most 18 decimals");
  }
  const fraction = (match[2] ?? "").padEnd(TOKEN_DECIMALS, "0");
  return BigInt(match[1] ?? "0") * ATOKEN_PER_TOKEN + BigInt(fraction);
}

/** Atoken to TOKEN text for people, without trailing zeros: 250000000000000000n -> "0.25". */
export function atokenToToken(amountAtoken: Atoken): string {
  const sign = amountAtoken < 0n ? "-" : "";
  const absolute = amountAtoken < 0n ? -amountAtoken : amountAtoken;
  const whole = absolute / ATOKEN_PER_TOKEN;
  const fraction = (absolute % ATOKEN_PER_TOKEN).toString().padStart(TOKEN_DECIMALS, "0");
  const trimmed = fraction.replace(/0+$/, "");
  return `${sign}${whole}${trimmed === "" ? "" : `.${trimmed}`}`;
}

/** An exact price per gas unit as written in `minimum-gas-prices`: numerator / denominator atoken. */
export interface GasPriceRational {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

/**
 * Parses `minimum-gas-prices` ("0.025atoken") as an exact rational.
 * Source: spec, "Limits"; decision D1.
 * @throws INVALID_AMOUNT
 */
export function parseMinimumGasPrices(text: string): GasPriceRational {
  const match = /^([0-9]{1,30})(?:\.([0-9]{1,18}))?atoken$/.exec(text);
  if (match === null) {
    throw new ChainError("INVALID_AMOUNT", 'expected a decimal number followed by "atoken"');
  }
  const fraction = match[2] ?? "";
  return {
    numerator: BigInt(`${match[1] ?? "0"}${fraction}`),
    denominator: 10n ** BigInt(fraction.length),
  };
}

/** Lowest whole gas price that satisfies the rational, in atoken; at least 1 (D1). */
export function minimumGasPriceAtoken(price: GasPriceRational): Atoken {
  const ceiling = (price.numerator + price.denominator - 1n) / price.denominator;
  return ceiling > 1n ? ceiling : 1n;
}
