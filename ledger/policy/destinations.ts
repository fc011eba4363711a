/** Pure: addresses that no withdrawal is ever paid to. */
import { type Address, BURN_ADDRESS, parseAddress, ZERO_ADDRESS } from "../../chain/address.js";
import { PRECOMPILE_ADDRESSES } from "../../chain/evm/precompiles.js";
import { SYSTEM_ADDRESSES } from "../../chain/networks.js";

/** Accounts of the chain itself, and nobody's. */
const NEVER_PAID: ReadonlySet<Address> = new Set([
  ZERO_ADDRESS,
  BURN_ADDRESS,
  ...PRECOMPILE_ADDRESSES,
  ...Object.values(SYSTEM_ADDRESSES).map((address) => parseAddress(address)),
]);

/** Addresses of the exchange and of the chain that nobody may be paid to. */
export interface OwnAddresses {
  /** Hot wallets, all of them. */
  readonly wallets: readonly Address[];
  /** Contracts of the tokens that it serves. */
  readonly tokenContracts: readonly Address[];
  /** Accounts of the chain whose genesis names others than most; the usual ones need not be told. */
  readonly chainAccounts?: readonly Address[];
}

/** Whether nobody may be paid there. Own deposit addresses may: they are paid and credited. */
export function isForbiddenDestination(destination: Address, own: OwnAddresses): boolean {
  return (
    NEVER_PAID.has(destination) ||
    own.wallets.includes(destination) ||
    own.tokenContracts.includes(destination) ||
    own.chainAccounts?.includes(destination) === true
  );
}
