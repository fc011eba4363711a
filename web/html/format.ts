/**
 * Numbers, times and amounts as people read them; the same in every language, so that no point is
 * taken for a comma.
 */
import { atokenToToken, TOKEN_SYMBOL, type Atoken } from "../../chain/units.js";
import { cleanForeignText } from "../../chain/evm/foreign-text.js";

/** Characters of a stranger's name that are shown. */
const MAX_NAME = 40;

/** Characters of a stranger's longer text that are shown. */
const MAX_TEXT = 400;

/** Decimals beyond which a token's amount is shown in its smallest unit. */
const MAX_DECIMALS = 77;

/** Invisible characters, which make one text look like another: formats, fillers, selectors. */
export const INVISIBLE = /[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;

/** More marks over one letter than any script has: they would reach into other lines. */
const PILED_MARKS = /(\p{M}{2})\p{M}+/gu;

/** Unix seconds as "2026-11-21 07:50:59 UTC". */
export function utcTime(timestampSeconds: number): string {
  const date = new Date(timestampSeconds * 1_000);
  if (Number.isNaN(date.getTime())) return "—";
  return `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** Unix seconds as RFC 3339, for `datetime`. */
export function machineTime(timestampSeconds: number): string | undefined {
  const date = new Date(timestampSeconds * 1_000);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

/** Exact amount with its symbol: "1.5 TOKEN". */
export function tokenAmount(amountAtoken: Atoken): string {
  return `${atokenToToken(amountAtoken)} ${TOKEN_SYMBOL}`;
}

/** A change with its sign. */
export function signedTokenAmount(amountAtoken: Atoken): string {
  return amountAtoken < 0n ? `−${tokenAmount(-amountAtoken)}` : `+${tokenAmount(amountAtoken)}`;
}

/** Whether there are whole tokens by these decimals: contracts may tell none, or any number. */
export function hasWholeTokens(decimals: number | undefined): decimals is number {
  return decimals !== undefined && decimals <= MAX_DECIMALS;
}

/** Units of a token as a decimal number, exactly; in units where the decimals make no sense. */
export function unitsAmount(units: bigint, decimals: number | undefined): string {
  if (!hasWholeTokens(decimals) || decimals === 0) return units.toString();
  const digits = (units < 0n ? -units : units).toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, -decimals);
  const fraction = digits.slice(-decimals).replace(/0+$/, "");
  const sign = units < 0n ? "−" : "";
  return fraction === "" ? `${sign}${whole}` : `${sign}${whole}.${fraction}`;
}

/** A name that a stranger chose, short and without characters that deceive; "" for nothing. */
export function foreignName(text: string): string {
  return cleanForeignText(shownText(text), MAX_NAME).trim();
}

/** A longer text of a stranger. */
export function foreignText(text: string): string {
  return cleanForeignText(shownText(text), MAX_TEXT);
}

/** Cut before it is looked at: the work is bounded by what is kept. */
function shownText(text: string): string {
  return text
    .slice(0, 4 * MAX_TEXT)
    .replace(INVISIBLE, "")
    .replace(PILED_MARKS, "$1");
}

/** The ends of a long hex text. */
export function shortHex(hex: string): string {
  return hex.length <= 20 ? hex : `${hex.slice(0, 10)}…${hex.slice(-8)}`;
}

/** Part of a whole in per cent with two decimals, rounded down, exactly. */
export function percent(part: bigint, whole: bigint): string {
  if (whole === 0n) return "—";
  const hundredths = (part * 10_000n) / whole;
  return `${hundredths / 100n}.${(hundredths % 100n).toString().padStart(2, "0")} %`;
}
