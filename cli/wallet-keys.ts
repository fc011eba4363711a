/** Keys of coins that init makes: the faucet, the hot wallet's passphrase, the deposit seed. */
import { randomBytes } from "node:crypto";
import { HDKey } from "@scure/bip32";
import { generateMnemonic, mnemonicToSeed, validateMnemonic } from "@scure/bip39";
import { wordlist } from "@scure/bip39/wordlists/english.js";
import { type Address, parseAddress, privateKeyToAddress } from "../chain/address.js";
import { bytesToHex, hexToBytes } from "../chain/hex.js";
import { CliError } from "./errors.js";

/** Where deposit addresses hang: address i is this path's child i, derivable from the xpub. */
export const DEPOSIT_PATH = "m/44'/60'/0'/0";

/** Bits of entropy of a new deposit seed: 24 words. */
const SEED_ENTROPY_BITS = 256;

/** Random 32 bytes that are a private key: zero and values above the order are drawn again. */
export function createPrivateKey(): Uint8Array {
  for (;;) {
    const candidate = new Uint8Array(randomBytes(32));
    try {
      privateKeyToAddress(candidate);
      return candidate;
    } catch {
      // About one draw in 2^128: draw again.
    }
  }
}

/** Text of a key file: `0x` hex on one line. */
export function encodeKeyFile(privateKey: Uint8Array): string {
  return `${bytesToHex(privateKey)}\n`;
}

/**
 * Key file to a private key.
 * @param path named in the fault; the content never is
 * @throws HOME_INCOMPLETE
 */
export function parseKeyFile(text: string, path: string): Uint8Array {
  const trimmed = text.trim();
  if (!/^0x[0-9a-fA-F]{64}$/.test(trimmed)) {
    throw new CliError("HOME_INCOMPLETE", `${path} does not hold a private key as 0x hex.`);
  }
  return hexToBytes(trimmed);
}

/** A new secret for one line of a file: 32 random bytes as hex. */
export function createSecretLine(): string {
  return `${randomBytes(32).toString("hex")}\n`;
}

/** A new deposit seed: 24 English words of BIP-39, one line. */
export function createSeedLine(): string {
  return `${generateMnemonic(wordlist, SEED_ENTROPY_BITS)}\n`;
}

/**
 * Extended public key at `DEPOSIT_PATH` of a seed file: BIP-39 words, or the seed itself as hex.
 * It derives every deposit address and can spend from none.
 * @throws HOME_INCOMPLETE
 */
export async function seedToXpub(text: string, path: string): Promise<string> {
  const trimmed = text.trim();
  const isHex = /^(0x)?[0-9a-fA-F]{32,128}$/.test(trimmed) && trimmed.length % 2 === 0;
  if (!isHex && !validateMnemonic(trimmed, wordlist)) {
    throw new CliError("HOME_INCOMPLETE", `${path} holds neither BIP-39 words nor a seed as hex.`);
  }
  const seed = isHex
    ? new Uint8Array(Buffer.from(trimmed.replace(/^0x/, ""), "hex"))
    : await mnemonicToSeed(trimmed);
  return HDKey.fromMasterSeed(seed).derive(DEPOSIT_PATH).publicExtendedKey;
}

/**
 * Address of a keystore file, read without its passphrase.
 * @throws HOME_INCOMPLETE
 */
export function parseKeystoreAddress(text: string, path: string): Address {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && "address" in value) {
      const written = String(value.address);
      return parseAddress(written.startsWith("0x") ? written : `0x${written}`);
    }
  } catch {
    // Not JSON or not an address: the one fault below says what to do about either.
  }
  throw new CliError("HOME_INCOMPLETE", `${path} is not a keystore with an address.`);
}
