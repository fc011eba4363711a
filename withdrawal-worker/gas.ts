/** Pure: gas limits and prices of payments, and how a refused attempt is corrected. */
import { EMPTY_RECEIVER_GAS } from "../chain/evm/erc20.js";
import { TRANSFER_GAS } from "../chain/networks.js";
import { replacementPriceAtoken } from "../chain/transaction-rules.js";
import type { Atoken } from "../chain/units.js";
import { feeOf } from "../ledger/withdrawals/slot-choice.js";

/** Settings of gas. */
export interface GasSettings {
  /** Added to every estimate, percent. */
  readonly marginPercent: number;
  /** Most gas that a payment may be given. */
  readonly limitMax: bigint;
  /** Lowest price, atoken per gas. */
  readonly priceFloorAtoken: Atoken;
  /** Highest price that is ever signed for a payment, atoken per gas. */
  readonly priceCapAtoken: Atoken;
  /** Most that the fee of one payment may come to; a request beyond it waits. */
  readonly feePerPayoutAtoken: Atoken;
  /** Most that the payments of a UTC day may cost in fees, those on their way at their dearest. */
  readonly feePerDayAtoken: Atoken;
  /** Gas limits of payments to code that are on their way, summed; one alone may be above it. */
  readonly codeGasInFlight: bigint;
}

/**
 * Most gas that a transfer of nothing is given where a node wants more than a transfer needs: what is signed
 * for it comes to a fee that no budget bounds.
 */
export const CANCEL_GAS_MAX = 10n * TRANSFER_GAS;

/** Gas limit and price of one attempt. */
export interface AttemptGas {
  readonly gasLimit: bigint;
  readonly gasPriceAtoken: Atoken;
}

/**
 * Whether a payment with this gas may cost more in fees than is allowed of one. What costs no more than
 * was signed for its nonce may go on: that may be mined already, and the settings were lowered since.
 * @param signedAtoken most that what was signed for its nonce costs in fees
 */
export function isTooDear(
  gas: AttemptGas,
  { feePerPayoutAtoken }: Pick<GasSettings, "feePerPayoutAtoken">,
  signedAtoken: Atoken = 0n,
): boolean {
  const feeAtoken = feeOf(gas);
  return feeAtoken > feePerPayoutAtoken && feeAtoken > signedAtoken;
}

/** Estimate plus margin, rounded up. May exceed the settings' limit: the caller decides. */
export function withMargin(estimate: bigint, settings: Pick<GasSettings, "marginPercent">): bigint {
  const percent = 100n + BigInt(settings.marginPercent);
  return (estimate * percent + 99n) / 100n;
}

/** The same of a token's transfer, with room for a receiver that has nothing by then, as far as there is. */
export function withTokenMargin(
  estimate: bigint,
  settings: Pick<GasSettings, "marginPercent" | "limitMax">,
): bigint {
  const gas = withMargin(estimate, settings);
  return gas > settings.limitMax ? gas : lower(gas + EMPTY_RECEIVER_GAS, settings.limitMax);
}

/** Largest estimate that may still be paid: with the margin it just fits the limit. */
export function estimateCeiling(settings: GasSettings): bigint {
  return (settings.limitMax * 100n) / (100n + BigInt(settings.marginPercent));
}

/**
 * Gas that a balance pays for at a price behind the payment's value, at most the ceiling; below zero where it
 * does not cover the value. A call that names more gas is refused, however little it would use.
 */
export function affordableGas(leftAtoken: Atoken, price: Atoken, ceiling: bigint): bigint {
  if (leftAtoken < 0n) return -1n;
  return price === 0n ? ceiling : lower(leftAtoken / price, ceiling);
}

/** The node's suggestion, not below the floor and never above the cap. */
export function choosePrice(
  suggestedAtoken: Atoken,
  settings: Pick<GasSettings, "priceFloorAtoken" | "priceCapAtoken">,
): bigint {
  const { priceFloorAtoken, priceCapAtoken } = settings;
  const price = suggestedAtoken > priceFloorAtoken ? suggestedAtoken : priceFloorAtoken;
  return lower(price, priceCapAtoken);
}

/** The lower of two: a price and its cap, a gas limit and its limit. */
export function lower(wanted: bigint, limit: bigint): bigint {
  return wanted < limit ? wanted : limit;
}

/**
 * Cap of a transfer that cancels: a tenth above that of payments, so that one at the cap can still
 * be replaced.
 */
export function cancelPriceCap(priceCapAtoken: Atoken): bigint {
  return replacementPriceAtoken(priceCapAtoken);
}

/** Most gas of such a transfer, within the settings' limit. */
export function cancelGasMax(limitMax: bigint): bigint {
  return lower(limitMax, CANCEL_GAS_MAX);
}

/** Price of an attempt that replaces or follows others; undefined when the cap forbids it. */
export function raisePrice(
  former: bigint,
  wanted: { readonly suggestedAtoken: Atoken; readonly neededAtoken?: Atoken | undefined },
  priceCapAtoken: Atoken,
): bigint | undefined {
  const candidates = [
    replacementPriceAtoken(former),
    wanted.suggestedAtoken,
    wanted.neededAtoken ?? 0n,
  ];
  const price = candidates.reduce((highest, next) => (next > highest ? next : highest));
  if (price <= priceCapAtoken) return price;
  // What was only suggested is no reason to stand still: a tenth more may be enough.
  const least = [candidates[0] ?? 0n, wanted.neededAtoken ?? 0n];
  const needed = least.reduce((highest, next) => (next > highest ? next : highest));
  return needed <= priceCapAtoken ? priceCapAtoken : undefined;
}

/** Gas limit after a refusal as too little gas; undefined when the settings forbid it. */
export function raiseGasLimit(
  former: bigint,
  wanted: { readonly estimate: bigint; readonly needed?: bigint },
  settings: GasSettings,
): bigint | undefined {
  const candidates = [wanted.estimate, wanted.needed ?? 0n].map((gas) => withMargin(gas, settings));
  const gas = candidates.reduce((highest, next) => (next > highest ? next : highest), former + 1n);
  return gas <= settings.limitMax ? gas : undefined;
}
