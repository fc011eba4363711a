/** Accounts that are nobody's, as a chain's genesis names them (D14, D22). */
import { type Address, BURN_ADDRESS, parseAddress } from "./address.js";
import { SYSTEM_ADDRESSES, type SystemAccount } from "./networks.js";

/** Each by its role. */
export type ChainAccounts = Readonly<Record<SystemAccount | "burnAddress", Address>>;

/** Those of a genesis that names no others. */
export const USUAL_ACCOUNTS: ChainAccounts = Object.freeze({
  feeCollector: parseAddress(SYSTEM_ADDRESSES.feeCollector),
  treasury: parseAddress(SYSTEM_ADDRESSES.treasury),
  validatorsPool: parseAddress(SYSTEM_ADDRESSES.validatorsPool),
  developmentFund: parseAddress(SYSTEM_ADDRESSES.developmentFund),
  burnAddress: BURN_ADDRESS,
});
