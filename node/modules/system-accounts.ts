/** Accounts of the chain itself, which take coins by rules of their own only. */
import type { Address } from "../../chain/address.js";

/** Addresses of modules, with state or without. */
const MODULE_ADDRESS = /^0x0{37}8[0-9a-f]{2}$/;

/** True for an account that nobody pays to by a message. */
export function isSystemAccount(
  address: Address,
  chain: { readonly feeCollector: Address; readonly validatorsPool: Address },
): boolean {
  return (
    address === chain.feeCollector ||
    address === chain.validatorsPool ||
    MODULE_ADDRESS.test(address)
  );
}
