/** Accounts that take no coins by messages: what lies there is counted by rules of its own. */
import type { Address } from "../../chain/address.js";

/** Addresses of modules: they take coins by their own rules only. */
const SYSTEM_ADDRESS = /^0x0{37}8[0-9a-f]{2}$/;

/** True for accounts of the system. */
export function isBlockedAccount(
  address: Address,
  system: { readonly feeCollector: Address; readonly validatorsPool: Address },
): boolean {
  const { feeCollector, validatorsPool } = system;
  return address === feeCollector || address === validatorsPool || SYSTEM_ADDRESS.test(address);
}
