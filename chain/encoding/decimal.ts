/**
 * Numbers with 18 decimals, as the SDK's `LegacyDec` has them: a whole number of 10^-18. Shares, fractions
 * of parameters, weights of votes, coins that are not whole.
 */

const DECIMALS = 18;

/** 1 as such a number. */
export const DECIMAL_ONE = 10n ** BigInt(DECIMALS);

/** A number of 10^-18 with all its decimals: "0.500000000000000000". */
export function decimalText(scaled: bigint): string {
  return withPoint(scaled.toString());
}

/** The same of an integer's text, which may have zeros in front. */
export function withPoint(units: string): string {
  const isNegative = units.startsWith("-");
  const digits = (isNegative ? units.slice(1) : units).padStart(DECIMALS + 1, "0");
  return `${isNegative ? "-" : ""}${digits.slice(0, -DECIMALS)}.${digits.slice(-DECIMALS)}`;
}

/** Digits in front of the point, at most, where nothing else is said: more than any amount has. */
const MOST_DIGITS = 60;

/** A decimal number in 10^-18; undefined where the text is none. */
export function parseDecimal(text: string): bigint | undefined {
  if (!text.startsWith("-")) return parseUnsigned(text);
  const size = parseUnsigned(text.slice(1));
  return size === undefined ? undefined : -size;
}

/** The same without a sign. @param mostDigits in front of the point */
export function parseUnsigned(text: string, mostDigits = MOST_DIGITS): bigint | undefined {
  const [, whole, part = ""] = /^([0-9]+)(?:\.([0-9]{1,18}))?$/.exec(text) ?? [];
  if (whole === undefined || whole.length > mostDigits) return undefined;
  return BigInt(whole + part.padEnd(DECIMALS, "0"));
}
