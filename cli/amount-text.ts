/** Amounts for people. */
import { atokenToToken } from "../chain/units.js";
import { NATIVE_ASSET } from "../ledger/journal/accounts.js";

/** "1.5 TOKEN"; of a token its whole units, because only its contract knows what they are worth. */
export function amountText(asset: string, amountUnits: bigint): string {
  return asset === NATIVE_ASSET
    ? `${atokenToToken(amountUnits)} ${asset}`
    : `${amountUnits} units of ${asset}`;
}
