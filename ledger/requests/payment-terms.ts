/** What the transaction that pays a withdrawal says: coins to the destination, or a token's transfer. */
import type { Address } from "../../chain/address.js";
import { encodeTransfer, type TokenTransfer } from "../../chain/evm/erc20.js";
import type { Hex } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";

/** A withdrawal's terms, as far as its payment says them. */
export interface PaidTerms {
  readonly destination: Address;
  /** In the asset's smallest unit. */
  readonly amountUnits: bigint;
  /** Contract of the token; undefined for coins. */
  readonly contract?: Address | undefined;
}

/** Recipient, value and call of the transaction. */
export interface PaymentTerms {
  readonly to: Address;
  readonly valueAtoken: Atoken;
  /** The one call that is ever made; undefined for coins, which carry no data. */
  readonly transfer?: TokenTransfer | undefined;
}

/** What a payment takes of the wallet's coins beside its fee. */
export function valueOf({ amountUnits, contract }: Omit<PaidTerms, "destination">): bigint {
  return contract === undefined ? amountUnits : 0n;
}

/** Pure: how terms are paid. */
export function paymentTerms({ destination, amountUnits, contract }: PaidTerms): PaymentTerms {
  const valueAtoken = valueOf({ amountUnits, contract });
  return contract === undefined
    ? { to: destination, valueAtoken, transfer: undefined }
    : { to: contract, valueAtoken, transfer: { to: destination, amountUnits } };
}

/** Calldata of a payment. */
export function calldataOf({ transfer }: Pick<PaymentTerms, "transfer">): Hex {
  return transfer === undefined ? "0x" : encodeTransfer(transfer);
}

/**
 * What a mined transaction of the wallet paid, by its own bytes: a token's transfer, or its value.
 * Undefined for one that creates a contract.
 */
export function termsOf(mined: {
  readonly to: Address | undefined;
  readonly valueAtoken: Atoken;
  readonly transfer: TokenTransfer | undefined;
}): PaidTerms | undefined {
  const { to, valueAtoken, transfer } = mined;
  if (to === undefined) return undefined;
  if (transfer === undefined) {
    return { destination: to, amountUnits: valueAtoken, contract: undefined };
  }
  return { destination: transfer.to, amountUnits: transfer.amountUnits, contract: to };
}

/** True for the same amount of the same asset to the same address. */
export function isSamePayment(one: PaidTerms, other: PaidTerms | undefined): boolean {
  return (
    one.destination === other?.destination &&
    one.amountUnits === other.amountUnits &&
    one.contract === other.contract
  );
}

/** A transfer as a contract logged it. */
export interface LoggedTransfer {
  readonly contract: Address;
  /** Undefined for a mint. */
  readonly from: Address | undefined;
  /** Undefined for a burn. */
  readonly to: Address | undefined;
  readonly units: bigint;
}

/**
 * Pure: whether a mined payment of a token did what it was to do, and took nothing else of it: one
 * transfer of the contract from the wallet, and that is the withdrawal's. One of nothing takes nothing, and
 * takes no allowance: a recipient that is called may have any number of them logged.
 */
export function isTransferLogged(
  { wallet, contract, destination, amountUnits }: PaidTerms & { readonly wallet: Address },
  transfers: readonly LoggedTransfer[],
): boolean {
  const taken = transfers.filter(
    (one) => one.contract === contract && one.from === wallet && one.units > 0n,
  );
  const [only] = taken;
  return taken.length === 1 && only?.to === destination && only.units === amountUnits;
}
