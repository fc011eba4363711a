/** Amounts as the exchange APIs and the event stream write them. */
import { NATIVE_ASSET } from "./accounts.js";

/** Fields of one amount; decimal strings of the asset's smallest unit. */
export interface AmountFields {
  readonly amountUnits: string;
  /** The same again, on the native asset alone. */
  readonly amountAtoken?: string;
}

/**
 * `amountUnits` on every asset, and `amountAtoken` beside it where the smallest unit is the atoken, so
 * that nobody takes units of a token for atoken.
 */
export function amountFields(asset: string, amountUnits: bigint): AmountFields {
  const units = amountUnits.toString();
  return asset === NATIVE_ASSET
    ? { amountUnits: units, amountAtoken: units }
    : { amountUnits: units };
}

/**
 * What a customer's balance rose or fell by, beside the amount of a deposit: less than that where part of
 * it only fills a break, or was withdrawn before the chain lost it.
 */
export function balanceFields(
  change: "credited" | "debited",
  asset: string,
  units: bigint,
): Readonly<Record<string, string>> {
  const { amountUnits, amountAtoken } = amountFields(asset, units);
  return {
    [`${change}Units`]: amountUnits,
    ...(amountAtoken === undefined ? {} : { [`${change}Atoken`]: amountAtoken }),
  };
}
