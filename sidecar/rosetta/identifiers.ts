/** Rosetta's names for this chain: network, currency, vocabulary, accounts and blocks. */
import {
  type Address,
  type ChecksumAddress,
  operatorText,
  parseBech32,
  parseStrictAddress,
  toChecksumAddress,
  VALIDATOR_PREFIX,
} from "../../chain/address.js";
import { BALANCE_REASONS } from "../../chain/balance-change.js";
import { type Hash32, type Height, parseHash32 } from "../../chain/hex.js";
import { BLOCKCHAIN_NAME, type Network } from "../../chain/networks.js";
import { TOKEN_DECIMALS, TOKEN_SYMBOL, type Atoken } from "../../chain/units.js";
import { LRUCache } from "lru-cache";
import { SidecarError } from "./errors.js";
import { fault, inside, type Place, readFields, readIndex, readMaybe } from "./request-fields.js";
import { readText } from "./request-fields.js";

/** Version of the Rosetta/Mesh API that is served. */
export const ROSETTA_VERSION = "1.5.1";

/** Rosetta's `Currency`. */
export interface Currency {
  readonly symbol: string;
  readonly decimals: number;
  /**
   * Part of the currency's identity: a token's contract, the validator of shares, what is claimed.
   * Only TOKEN has none.
   */
  readonly metadata?: {
    readonly contractAddress?: ChecksumAddress;
    readonly validator?: string;
    readonly claim?: string;
  };
}

/** A currency of a request, its shape checked; the token registry tells whether it is known. */
export interface CurrencyKey {
  readonly symbol: string;
  readonly decimals: number;
  /** Undefined for a native one. */
  readonly contractAddress: Address | undefined;
  /** Operator, of shares alone. */
  readonly validator?: Address | undefined;
  /** Symbol of what is claimed, of claims alone. */
  readonly claim?: string | undefined;
}

/** The native token, the same bytes everywhere: identity is a hash of this whole object. */
export const TOKEN_CURRENCY: Currency = Object.freeze({
  symbol: TOKEN_SYMBOL,
  decimals: TOKEN_DECIMALS,
});

/**
 * Operation types, fixed at launch: those of the balance journal, then those that modules and
 * tokens use. Integrators snapshot the list, so types are named before they first appear.
 */
export const OPERATION_TYPES: readonly string[] = Object.freeze([
  ...BALANCE_REASONS,
  "REWARD",
  "UNDELEGATE",
  "REDELEGATE",
  "ERC20_TRANSFER",
  "ERC20_MINT",
  "ERC20_BURN",
  "CANCEL_UNBONDING",
  "VOTE",
  "SHARES",
]);

/** Rosetta's `NetworkIdentifier`. */
export interface NetworkIdentifier {
  readonly blockchain: string;
  readonly network: string;
}

/** Rosetta's `BlockIdentifier`. */
export interface BlockIdentifier {
  readonly index: Height;
  readonly hash: Hash32;
}

/** A block as a request names it; without either part, the tip. */
export interface BlockReference {
  readonly index: Height | undefined;
  readonly hash: Hash32 | undefined;
}

/** Identifier of a network (D12). */
export function networkIdentifier(network: Network): NetworkIdentifier {
  return { blockchain: BLOCKCHAIN_NAME, network: network.name };
}

/**
 * Checks `network_identifier`.
 * @throws INVALID_REQUEST, UNKNOWN_NETWORK
 */
export function checkNetwork(value: unknown, network: Network): void {
  const place = { at: "network_identifier" };
  const fields = readFields(value, place, ["blockchain", "network", "sub_network_identifier"]);
  const blockchain = readText(fields["blockchain"], inside(place, "blockchain"));
  const name = readText(fields["network"], inside(place, "network"));
  const isOurs = blockchain === BLOCKCHAIN_NAME && name === network.name;
  if (!isOurs || fields["sub_network_identifier"] !== undefined) {
    throw new SidecarError("UNKNOWN_NETWORK", { supported: networkIdentifier(network) });
  }
}

/** Checksummed forms of recent addresses: the checksum costs a hash, and few accounts are busy. */
const checksums = new LRUCache<Address, ChecksumAddress>({ max: 65_536 });

/** An account's identity: its EIP-55 address and nothing else, so that it is byte-stable. */
export function accountIdentifier(address: Address): { readonly address: ChecksumAddress } {
  let checksum = checksums.get(address);
  if (checksum === undefined) {
    checksum = toChecksumAddress(address);
    checksums.set(address, checksum);
  }
  return { address: checksum };
}

/**
 * `account_identifier` of a request: all lower case, or a right checksum.
 * @throws INVALID_REQUEST, INVALID_ACCOUNT, SUB_ACCOUNT_NOT_SUPPORTED
 */
export function parseAccount(value: unknown, place: Place): Address {
  const fields = readFields(value, place, ["address", "sub_account", "metadata"]);
  if (fields["sub_account"] !== undefined) throw new SidecarError("SUB_ACCOUNT_NOT_SUPPORTED");
  const metadata = readMaybe(fields["metadata"], inside(place, "metadata"), readFields);
  if (metadata !== undefined && Object.keys(metadata).length > 0) {
    // Identity is a hash of the whole object: metadata would make it another account.
    throw new SidecarError("INVALID_ACCOUNT", { field: inside(place, "metadata").at });
  }
  return parseAccountAddress(fields["address"], inside(place, "address"));
}

/** An address where money depends on it. Throws INVALID_ACCOUNT. */
export function parseAccountAddress(value: unknown, place: Place): Address {
  try {
    return parseStrictAddress(value);
  } catch (cause) {
    throw new SidecarError("INVALID_ACCOUNT", { field: place.at }, cause);
  }
}

/** `block_identifier` of a request that may leave parts out. Hashes are taken in any case. */
export function parseBlockReference(value: unknown, place: Place): BlockReference {
  const fields = readFields(value, place, ["index", "hash"]);
  return {
    index: readMaybe(fields["index"], inside(place, "index"), readIndex),
    hash: readMaybe(fields["hash"], inside(place, "hash"), parseHash),
  };
}

/** `block_identifier` of a request that has to name both parts. */
export function parseBlockIdentifier(value: unknown, place: Place): BlockIdentifier {
  const { index, hash } = parseBlockReference(value, place);
  if (index === undefined) throw fault(inside(place, "index"), "an index");
  if (hash === undefined) throw fault(inside(place, "hash"), "a hash");
  return { index, hash };
}

/** A 32-byte hash in any case. Throws the place's error. */
export function parseHash(value: unknown, place: Place): Hash32 {
  try {
    return parseHash32(value);
  } catch {
    throw fault(place, "0x followed by 64 hex digits");
  }
}

/**
 * `Currency` of a request. Metadata may only hold one of `contractAddress`, `validator` and `claim`.
 * @throws INVALID_REQUEST (or the place's code) on another shape, UNKNOWN_CURRENCY
 */
export function parseCurrency(value: unknown, place: Place): CurrencyKey {
  const fields = readFields(value, place, ["symbol", "decimals", "metadata"]);
  const symbol = readText(fields["symbol"], inside(place, "symbol"));
  const decimals = readIndex(fields["decimals"], inside(place, "decimals"));
  const metadata = readMaybe(fields["metadata"], inside(place, "metadata"), readFields) ?? {};
  const { contractAddress, validator, claim, ...others } = metadata;
  if (Object.keys(metadata).length > 1 || Object.keys(others).length > 0) {
    // Identity is a hash of the whole object: anything more makes it another currency.
    throw new SidecarError("UNKNOWN_CURRENCY", { field: inside(place, "metadata").at });
  }
  const inMetadata = (key: string) => inside(inside(place, "metadata"), key);
  return {
    symbol,
    decimals,
    contractAddress: readMaybe(contractAddress, inMetadata("contractAddress"), parseAccountAddress),
    validator: readMaybe(validator, inMetadata("validator"), parseValidator),
    claim: readMaybe(claim, inMetadata("claim"), readText),
  };
}

/** An operator in the form of identities: bech32 in lower case. Throws INVALID_ACCOUNT. */
export function parseValidator(value: unknown, place: Place): Address {
  const text = readText(value, place);
  const expected = `${VALIDATOR_PREFIX}1... in lower case`;
  try {
    const operator = parseBech32(text, VALIDATOR_PREFIX);
    if (operatorText(operator) === text) return operator;
  } catch (cause) {
    throw new SidecarError("INVALID_ACCOUNT", { field: place.at, expected }, cause);
  }
  throw new SidecarError("INVALID_ACCOUNT", { field: place.at, expected });
}

/** Whether a currency is the native token, exactly. @throws as `parseCurrency` */
export function isTokenCurrency(value: unknown, place: Place): boolean {
  const { symbol, decimals, ...named } = parseCurrency(value, place);
  const isOurs = symbol === TOKEN_CURRENCY.symbol && decimals === TOKEN_CURRENCY.decimals;
  return isOurs && Object.values(named).every((name) => name === undefined);
}

/** Rosetta's `Amount`. */
export interface Amount {
  readonly value: string;
  readonly currency: Currency;
}

/** An amount of the native token as Rosetta writes it. */
export function tokenAmount(amountAtoken: Atoken): Amount {
  return { value: amountAtoken.toString(), currency: TOKEN_CURRENCY };
}

/** An amount of an ERC-20, in its smallest unit. */
export function currencyAmount(units: bigint, currency: Currency): Amount {
  return { value: units.toString(), currency };
}
