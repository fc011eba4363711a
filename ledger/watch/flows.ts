/** What blocks show of coins of our addresses, before anything is booked. */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";

/** One operation that raised a hot wallet's balance. */
export interface WalletInflow {
  readonly asset: string;
  readonly wallet: Address;
  /** In the asset's smallest unit, greater than zero. */
  readonly amountUnits: bigint;
  /** 0 means the local genesis: opening capital instead of suspense. */
  readonly height: Height;
  readonly txHash: Hash32;
  readonly txIndex: number;
  readonly opIndex: number;
  /** Who sent it, as far as the chain says. */
  readonly sender?: Address | undefined;
}

/** What one transaction took from one of our addresses. */
export interface Outflow {
  readonly asset: string;
  readonly wallet: Address;
  readonly role: "hot-wallet" | "deposit-address";
  readonly txHash: Hash32;
  readonly height: Height;
  /** Sent, without the fee, in the asset's smallest unit; zero for a failed transaction. */
  readonly amountUnits: bigint;
  /** Zero for tokens: the fee stands with the coins of the transaction. */
  readonly feeAtoken: Atoken;
}

/** A transaction that has taken of one of our addresses, or is said to have. */
export interface Payer {
  readonly wallet: Address;
  readonly hash: Hash32;
}

/** Key of one transaction at one of our addresses: it may take of several, each for another reason. */
export function payerPlace(payer: { readonly wallet: string; readonly hash: string }): string {
  return `${payer.wallet} ${payer.hash}`;
}
