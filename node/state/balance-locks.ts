/** Coins that may not leave their account yet, as the state asks for them. */
import type { Address } from "../../chain/address.js";
import type { Atoken } from "../../chain/units.js";

/** Rules of locked coins. Stake is the one thing that locked coins may become. */
export interface BalanceLocks {
  /** Whether anything of an account's can be locked, now or when its stake comes back. */
  isLocking(address: Address): boolean;
  /** What has to stay on an account, atoken; 0 for most. */
  lockedAtoken(address: Address): Atoken;
  /** Coins of an account became stake: locked ones first. */
  delegated(address: Address, amountAtoken: Atoken): void;
  /** Stake of an account became coins again: free ones first. */
  returned(address: Address, amountAtoken: Atoken): void;
}
