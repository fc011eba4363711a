/** End of a block: fees are split (D3, D22), inflation is minted (D13). */
import type { BalanceChange } from "../../chain/balance-change.js";
import type { Height } from "../../chain/hex.js";
import {
  BLOCKS_PER_YEAR,
  FIRST_PHASE_LAST_HEIGHT,
  INFLATION_PERCENT,
} from "../../chain/networks.js";
import type { Atoken } from "../../chain/units.js";
import type { ChainParams } from "../settings/genesis.js";

/** Inflation of a block, in whole percent a year. */
export function inflationPercent(height: Height): bigint {
  return height <= FIRST_PHASE_LAST_HEIGHT ? INFLATION_PERCENT.first : INFLATION_PERCENT.later;
}

/** Coins minted in a block: floor(parent supply x rate / blocks per year). */
function mintedAtoken(height: Height, parentSupplyAtoken: Atoken): Atoken {
  return (parentSupplyAtoken * inflationPercent(height)) / (100n * BLOCKS_PER_YEAR);
}

/** A change that no transaction makes; none for nothing. */
export function blockChange(
  reason: BalanceChange["reason"],
  from: BalanceChange["from"],
  to: BalanceChange["to"],
  amountAtoken: Atoken,
): BalanceChange[] {
  if (amountAtoken === 0n) return [];
  return [{ reason, from, to, amountAtoken, effective: true, tracePath: undefined }];
}

/**
 * The block-level changes: of the fees ceil(half) is burned and the rest goes to the treasury; of
 * the mint floor(tenth) goes to the development fund and the rest to the validators' pool.
 */
export function endOfBlockChanges(
  height: Height,
  feesAtoken: Atoken,
  parentSupplyAtoken: Atoken,
  params: ChainParams,
): readonly BalanceChange[] {
  const treasuryAtoken = feesAtoken / 2n;
  const mintAtoken = mintedAtoken(height, parentSupplyAtoken);
  const fundAtoken = mintAtoken / 10n;
  const { feeCollector, treasury, validatorsPool, developmentFund } = params;
  return [
    ...blockChange("FEE_BURN", feeCollector, undefined, feesAtoken - treasuryAtoken),
    ...blockChange("TREASURY", feeCollector, treasury, treasuryAtoken),
    ...blockChange("MINT", undefined, validatorsPool, mintAtoken - fundAtoken),
    ...blockChange("MINT", undefined, developmentFund, fundAtoken),
  ];
}
