/** Pure: gas limits and prices of payments, and how a refused attempt is corrected. */

/** Settings of gas. */
export interface GasSettings {
  /** Added to every estimate, percent. */
  readonly marginPercent: number;
  /** Most gas that a payment may be given. */
  readonly limitMax: bigint;
  /** Lowest price, atoken per gas. */
  readonly priceFloorAtoken: bigint;
  /** Highest price that is ever signed, atoken per gas. */
  readonly priceCapAtoken: bigint;
}

/** Gas limit and price of one attempt. */
export interface AttemptGas {
  readonly gasLimit: bigint;
  readonly gasPriceAtoken: bigint;
}

/** Estimate plus margin, rounded up. May exceed the settings' limit: the caller decides. */
export function withMargin(estimate: bigint, settings: GasSettings): bigint {
  const percent = 100n + BigInt(settings.marginPercent);
  return (estimate * percent + 99n) / 100n;
}

/** Largest estimate that may still be paid: with the margin it just fits the limit. */
export function estimateCeiling(settings: GasSettings): bigint {
  return (settings.limitMax * 100n) / (100n + BigInt(settings.marginPercent));
}

/** The node's suggestion, not below the floor and never above the cap. */
export function choosePrice(suggestedAtoken: bigint, settings: GasSettings): bigint {
  const { priceFloorAtoken, priceCapAtoken } = settings;
  const price = suggestedAtoken > priceFloorAtoken ? suggestedAtoken : priceFloorAtoken;
  return price < priceCapAtoken ? price : priceCapAtoken;
}

/** Price of an attempt that follows one refused as too cheap; undefined when the cap forbids it. */
export function raisePrice(
  former: bigint,
  wanted: { readonly suggestedAtoken: bigint; readonly neededAtoken?: bigint },
  settings: GasSettings,
): bigint | undefined {
  // A replacement must pay at least a tenth more, so every correction does.
  const tenthMore = (former * 11n + 9n) / 10n;
  const candidates = [tenthMore, wanted.suggestedAtoken, wanted.neededAtoken ?? 0n];
  const price = candidates.reduce((highest, next) => (next > highest ? next : highest));
  return price <= settings.priceCapAtoken ? price : undefined;
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
