/** The chart of accounts. Codes are checked again by the database, which also knows asset:break. */
import type { Address } from "../../chain/address.js";
import { LedgerError } from "../errors.js";

/** The chain's own coin, counted in atoken. */
export const NATIVE_ASSET = "TOKEN";

/**
 * Coins of the only hot wallet that a ledger had before each got an account of its own. Its entries
 * count as the first wallet's; nothing is posted to it any more.
 */
export const HOT_WALLET = "asset:hot_wallet" as AccountCode;

/** Coins of one hot wallet on the chain. */
export function walletAccount(wallet: Address): AccountCode {
  return `asset:wallet:${wallet}` as AccountCode;
}

/** Coins on all deposit addresses together. */
export const DEPOSIT_ADDRESSES = "asset:deposit_addresses" as AccountCode;

/** Coins that arrived without anybody to owe them to. */
export const SUSPENSE = "liability:suspense" as AccountCode;

/** What the exchange's hot wallets held at genesis, or where a ledger begins behind it. */
export const OPENING_CAPITAL = "equity:opening_capital" as AccountCode;

/** Fees paid to the network, the exchange's expense. */
export const NETWORK_FEE = "expense:network_fee" as AccountCode;

/** What customers are charged for payouts that failed on the chain. */
export const FAILED_PAYOUTS = "revenue:failed_payouts" as AccountCode;

/** Service fees of withdrawals that were paid. */
export const WITHDRAWAL_FEES = "revenue:withdrawal_fees" as AccountCode;

/** Payments that only the chain remembered, until a person says whose they were. */
export const RECOVERED_PAYMENTS = "asset:recovered_payments" as AccountCode;

/** Coins that the exchange keeps elsewhere. */
export const COLD_STORAGE = "asset:cold_storage" as AccountCode;

/** Coins on their way between two addresses of the exchange. */
export const IN_TRANSIT = "asset:in_transit" as AccountCode;

/** What is gone and has been accepted as a break that somebody may still explain. */
export const BREAK = "asset:break" as AccountCode;

/** The other side of operators' corrections. */
export const ADJUSTMENT = "equity:adjustment" as AccountCode;

/** Losses that were given up. */
export const WRITE_OFF = "expense:write_off" as AccountCode;

/** The code of an account, checked again by the database. */
export type AccountCode = string & { readonly __brand: "AccountCode" };

/** An exchange customer's identifier: 1-64 of `[A-Za-z0-9_.:-]`. */
export type CustomerId = string & { readonly __brand: "CustomerId" };

const CUSTOMER_ID_PATTERN = /^[A-Za-z0-9_.:-]{1,64}$/;

/**
 * Untrusted text to a customer's identifier.
 * @throws INVALID_CUSTOMER_ID
 */
export function parseCustomerId(text: unknown): CustomerId {
  if (typeof text !== "string" || !CUSTOMER_ID_PATTERN.test(text)) {
    throw new LedgerError("INVALID_CUSTOMER_ID", "customerId must be 1-64 of [A-Za-z0-9_.:-]");
  }
  return text as CustomerId;
}

/**
 * Stands for a customer whom only a person can name: of addresses that a recovery found on the
 * chain. What they receive goes to suspense; nothing is ever owed to this identifier.
 */
export const UNASSIGNED = "causeway:unassigned" as CustomerId;

/** Stands for the exchange itself where a hot wallet pays for it; it has no deposit address. */
export const TREASURY = "causeway:treasury" as CustomerId;

/** Stands in the tree of liabilities for coins in suspense; no customer is called so. */
export const SUSPENSE_HOLDER = "causeway:suspense" as CustomerId;

/** Identifiers that are the exchange's own words: no customer can be called so, or be given anything. */
const STANDS_FOR_NOBODY: ReadonlySet<CustomerId> = new Set([UNASSIGNED, SUSPENSE_HOLDER, TREASURY]);

/** Whether an identifier is none of a customer. */
export function standsForNobody(customerId: CustomerId): boolean {
  return STANDS_FOR_NOBODY.has(customerId);
}

/** What the customer may withdraw. */
export function customerAccount(customerId: CustomerId): AccountCode {
  return `liability:customer:${customerId}` as AccountCode;
}

/** Whose account it is, as `customerAccount` names it; undefined for every other account. */
export function customerOf(account: AccountCode): CustomerId | undefined {
  const prefix = customerAccount("" as CustomerId);
  return account.startsWith(prefix) ? parseCustomerId(account.slice(prefix.length)) : undefined;
}

/** What is reserved for the customer's withdrawals on their way. */
export function heldAccount(customerId: CustomerId): AccountCode {
  return `liability:held:${customerId}` as AccountCode;
}
