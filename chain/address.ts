/** Account addresses: one 20-byte value, written as 0x hex, EIP-55 checksummed hex, or bech32. */
import { bech32 } from "@scure/base";
import { keccak256 } from "./hashes.js";
import { ChainError } from "./errors.js";
import { bytesToHex, hexToBytes, type Hex } from "./hex.js";

/** 20 bytes as `0x` + 40 lower-case hex digits; the internal form everywhere. */
export type Address = Hex & { readonly __brand: "Address" };

/** `0x` + 40 hex digits with the EIP-55 checksum: the form shown to people. */
export type ChecksumAddress = Hex & { readonly __brand: "ChecksumAddress" };

/** Bech32 prefix of accounts (spec: Account addresses). */
export const ACCOUNT_PREFIX = "addr";

/** Bech32 prefix of validator operators. */
export const VALIDATOR_PREFIX = "addrvaloper";

/** Human-readable part of keys of consensus. */
export const CONSENSUS_PREFIX = "addrvalcons";

/** 20 zero bytes. */
export const ZERO_ADDRESS = `0x${"00".repeat(20)}` as Address;

/** Default burn address (D14); configurable in genesis. */
export const BURN_ADDRESS = "0x000000000000000000000000000000000000dead" as Address;

/** Trusted 20 bytes to the internal form. */
export function bytesToAddress(bytes: Uint8Array): Address {
  if (bytes.length !== 20) {
    throw new ChainError("INVALID_ADDRESS", `expected 20 bytes, got ${bytes.length}`);
  }
  return bytesToHex(bytes) as Address;
}

/** Internal form to 20 bytes. */
export function addressToBytes(address: Address): Uint8Array {
  return hexToBytes(address);
}

/** 64-byte public key (x, y) to its address: the last 20 bytes of its keccak256. */
export function publicKeyToAddress(publicKey: Uint8Array): Address {
  return bytesToAddress(keccak256(publicKey).subarray(12));
}

/** EIP-55 checksummed form. */
export function toChecksumAddress(address: Address): ChecksumAddress {
  const digits = address.slice(2);
  const hash = bytesToHex(keccak256(Buffer.from(digits, "ascii"))).slice(2);
  let text = "0x";
  for (let index = 0; index < digits.length; index++) {
    const digit = digits.charAt(index);
    text += Number.parseInt(hash.charAt(index), 16) >= 8 ? digit.toUpperCase() : digit;
  }
  return text as ChecksumAddress;
}

/**
 * Untrusted hex to an address; any case, as JSON-RPC accepts it.
 * @throws INVALID_ADDRESS
 */
export function parseAddress(text: unknown): Address {
  if (typeof text !== "string" || !/^0x[0-9a-fA-F]{40}$/.test(text)) {
    throw new ChainError("INVALID_ADDRESS", "expected 0x followed by 40 hex digits");
  }
  return text.toLowerCase() as Address;
}

/**
 * Untrusted hex to an address where money depends on it: all lower case, or a right EIP-55
 * checksum; anything else is refused.
 * @throws INVALID_ADDRESS
 */
export function parseStrictAddress(text: unknown): Address {
  const address = parseAddress(text);
  if (text !== address && text !== toChecksumAddress(address)) {
    throw new ChainError("INVALID_ADDRESS", "the EIP-55 checksum is wrong");
  }
  return address;
}

/** Address to bech32, for example `addr1…`. */
export function toBech32(address: Address, prefix: string = ACCOUNT_PREFIX): string {
  return bech32.encode(prefix, bech32.toWords(addressToBytes(address)));
}

/** Bech32 of a validator's operator, for example `addrvaloper1…`. */
export function operatorText(operator: Address): string {
  return toBech32(operator, VALIDATOR_PREFIX);
}

/** Bech32 of the address of a key of consensus, for example `addrvalcons1…`. */
export function consensusText(address: Address): string {
  return toBech32(address, CONSENSUS_PREFIX);
}

/** Bech32 with any prefix. Throws INVALID_ADDRESS for a prefix that cannot be one. */
export function bytesToBech32(address: Address, prefix: string): string {
  try {
    return toBech32(address, prefix);
  } catch (cause) {
    throw new ChainError("INVALID_ADDRESS", "the prefix cannot be one of bech32", { cause });
  }
}

/** Prefix and bytes of a bech32 text. Throws INVALID_ADDRESS. */
export function readBech32(text: string): { readonly prefix: string; readonly bytes: Uint8Array } {
  try {
    return bech32.decodeToBytes(text);
  } catch (cause) {
    throw new ChainError("INVALID_ADDRESS", "the text is no bech32", { cause });
  }
}

/** Bech32 to address. Throws INVALID_ADDRESS for another prefix, length or checksum. */
export function parseBech32(text: string, prefix: string = ACCOUNT_PREFIX): Address {
  try {
    const decoded = bech32.decodeToBytes(text);
    if (decoded.prefix !== prefix) throw new Error(`prefix is ${decoded.prefix}`);
    return bytesToAddress(decoded.bytes);
  } catch (cause) {
    throw new ChainError("INVALID_ADDRESS", `expected bech32 with prefix ${prefix}`, { cause });
  }
}

/** Which spellings a place takes. */
export interface AddressSpellings {
  /** Prefixes of bech32; that of accounts where none are named. */
  readonly prefixes?: readonly string[];
  /** What reads a text that is not of bech32; hex of any case where nothing is named. */
  readonly parseHex?: (text: string) => Address;
}

/**
 * An address in whichever of its two spellings: bech32 with one of the prefixes, else hex.
 * @throws INVALID_ADDRESS
 */
export function parseAnyAddress(
  text: string,
  { prefixes = [ACCOUNT_PREFIX], parseHex = parseAddress }: AddressSpellings = {},
): Address {
  const prefix = bech32PrefixOf(text, prefixes);
  return prefix === undefined ? parseHex(text) : parseBech32(text, prefix);
}

/**
 * An address as people paste it: hex in any case, with or without `0x`, or bech32 of an account or of a
 * validator's operator, with blanks around it.
 * @throws INVALID_ADDRESS
 */
export function parsePastedAddress(text: string): Address {
  return parseAnyAddress(text.trim(), {
    prefixes: [ACCOUNT_PREFIX, VALIDATOR_PREFIX],
    parseHex: (hex) => parseAddress(`0x${hex.replace(/^0x/i, "")}`),
  });
}

/**
 * Which of the prefixes a text of bech32 begins with; undefined where it begins with none of them. The text
 * may be of upper case: bech32 is of one case, whichever (BIP-173).
 */
export function bech32PrefixOf(text: string, prefixes: readonly string[]): string | undefined {
  const lower = text.toLowerCase();
  return prefixes.find((prefix) => lower.startsWith(`${prefix}1`));
}
