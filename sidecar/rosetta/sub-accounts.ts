/**
 * Sub-accounts: claims on coins that the chain's own accounts hold. Coins are in TOKEN, once, on the
 * account that holds them; claims have currencies of their own, so that no sum counts a coin twice.
 */
import { type Address, type ChecksumAddress, operatorText } from "../../chain/address.js";
import { CLAIM_KINDS, type Claim, type ClaimKind } from "../../chain/staking/claims.js";
import { TOKEN_DECIMALS, TOKEN_SYMBOL } from "../../chain/units.js";
import { SidecarError } from "./errors.js";
import {
  accountIdentifier,
  type Amount,
  type Currency,
  currencyAmount,
  type CurrencyKey,
  parseAccount,
  parseValidator,
  tokenAmount,
} from "./identifiers.js";
import { inside, type Place, readFields, readMaybe, readText } from "./request-fields.js";

/** Names of sub-accounts, in Rosetta's `sub_account.address`. */
const SUB_ACCOUNTS = CLAIM_KINDS.filter((kind) => kind !== "own");

/** Rosetta's `AccountIdentifier`: the same bytes for the same account, wherever it appears. */
export interface AccountIdentifier {
  readonly address: ChecksumAddress;
  readonly sub_account?: {
    readonly address: string;
    /** Of `stake` alone. */
    readonly metadata?: { readonly validator: string };
  };
}

/** An account of a request: an address, or one of its claims. */
export interface AccountKey {
  readonly address: Address;
  readonly sub: SubAccount | undefined;
}

/** A claim by its name. */
export interface SubAccount {
  readonly kind: Exclude<ClaimKind, "own">;
  /** Operator, of `stake` alone. */
  readonly validator: Address | undefined;
}

/** Atoken that are claimed, not held; metadata, for programs that take TOKEN for all without. */
export const CLAIM_CURRENCY: Currency = Object.freeze({
  symbol: `${TOKEN_SYMBOL}_CLAIM`,
  decimals: TOKEN_DECIMALS,
  metadata: Object.freeze({ claim: TOKEN_SYMBOL }),
});

const SHARE_SYMBOL = `${TOKEN_SYMBOL}_SHARE`;

/** A share has 18 decimals, and one of them began as an atoken. */
const SHARE_DECIMALS = 2 * TOKEN_DECIMALS;

/** Shares of one validator's stake; those of another one are worth something else. */
export function shareCurrency(validator: Address): Currency {
  const metadata = { validator: operatorText(validator) };
  return { symbol: SHARE_SYMBOL, decimals: SHARE_DECIMALS, metadata };
}

/** The account of a claim; the validator of shares is in their currency. */
export function claimAccount({ kind, account, validator }: Claim): AccountIdentifier {
  const owner = accountIdentifier(account);
  if (kind === "own") return owner;
  const isOfValidator = kind === "stake" && validator !== undefined;
  const metadata = isOfValidator ? { validator: operatorText(validator) } : undefined;
  return {
    ...owner,
    sub_account: metadata === undefined ? { address: kind } : { address: kind, metadata },
  };
}

/** An amount of a claim in its currency. */
export function claimAmount({ kind, validator }: Claim, units: bigint): Amount {
  if (kind === "own") return tokenAmount(units);
  if (kind !== "staked" || validator === undefined) return currencyAmount(units, CLAIM_CURRENCY);
  return currencyAmount(units, shareCurrency(validator));
}

/** What a currency of a request means for a sub-account. */
export type ClaimCurrency =
  | { readonly kind: "claim" }
  | { readonly kind: "share"; readonly validator: Address };

/** The currency that is meant, if every part of it is as it is written here. */
export function resolveClaimCurrency(key: CurrencyKey): ClaimCurrency | undefined {
  const { symbol, decimals, validator, claim } = key;
  if (validator !== undefined) {
    const isShare = symbol === SHARE_SYMBOL && decimals === SHARE_DECIMALS;
    return isShare ? { kind: "share", validator } : undefined;
  }
  const isClaim = symbol === CLAIM_CURRENCY.symbol && decimals === CLAIM_CURRENCY.decimals;
  return isClaim && claim === TOKEN_SYMBOL ? { kind: "claim" } : undefined;
}

/**
 * `account_identifier` of a request that may name a sub-account.
 * @throws INVALID_REQUEST, INVALID_ACCOUNT, SUB_ACCOUNT_NOT_SUPPORTED
 */
export function parseAccountKey(value: unknown, place: Place): AccountKey {
  const { sub_account, ...account } = readFields(value, place);
  const address = parseAccount(account, place);
  const sub = readMaybe(sub_account, inside(place, "sub_account"), parseSubAccount);
  return { address, sub };
}

function parseSubAccount(value: unknown, place: Place): SubAccount {
  const fields = readFields(value, place, ["address", "metadata"]);
  const name = readText(fields["address"], inside(place, "address"));
  const kind = SUB_ACCOUNTS.find((known) => known === name);
  if (kind === undefined) {
    throw new SidecarError("SUB_ACCOUNT_NOT_SUPPORTED", { known: SUB_ACCOUNTS.join(", ") });
  }
  const at = inside(place, "metadata");
  const metadata = readMaybe(fields["metadata"], at, readFields) ?? {};
  const { validator, ...others } = metadata;
  const isWhole = (kind === "stake") === (validator !== undefined);
  // Identity is a hash of the whole object: metadata more or less makes it another account.
  if (!isWhole || Object.keys(others).length > 0) {
    const expected = kind === "stake" ? "a validator and nothing else" : "nothing here";
    throw new SidecarError("SUB_ACCOUNT_NOT_SUPPORTED", { field: at.at, expected });
  }
  if (validator === undefined) return { kind, validator };
  return { kind, validator: parseValidator(validator, inside(at, "validator")) };
}
