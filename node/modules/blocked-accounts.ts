/** Accounts that take no coins by messages: what lies there is counted by rules of its own, or nobody's. */
import type { Address } from "../../chain/address.js";
import { PRECOMPILE_ADDRESSES } from "../../chain/evm/precompiles.js";
import { SDK_REFUSALS_VERSION } from "../settings/app-version.js";

/** Addresses of modules: they take coins by their own rules only. */
const SYSTEM_ADDRESS = /^0x0{37}8[0-9a-f]{2}$/;

/** Whose chain asks. */
export interface BlockedOf {
  /** Version of the chain's rules; by the first ones precompiled contracts take what nobody gets back. */
  readonly appVersion: number;
  readonly feeCollector: Address;
  readonly validatorsPool: Address;
}

/** True for accounts of the system, and for precompiled contracts (cosmos/evm blocks them, too). */
export function isBlockedAccount(
  address: Address,
  { appVersion, feeCollector, validatorsPool }: BlockedOf,
): boolean {
  if (address === feeCollector || address === validatorsPool) return true;
  if (SYSTEM_ADDRESS.test(address)) return true;
  return appVersion >= SDK_REFUSALS_VERSION && PRECOMPILE_ADDRESSES.has(address);
}
