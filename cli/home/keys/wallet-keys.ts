/** Keys of coins that init makes: the faucet, the hot wallet's passphrase, the deposit seed. */
import { randomBytes } from "node:crypto";
import { HDKey } from "@scure/bip32";
import { generateMnemonic } from "@scure/bip39";
import { wordlist } from "@scure/bip39/wordlists/english.js";
import { type Address } from "../../../chain/address.js";
import { DEPOSIT_PATH, readDepositSeed } from "../../../chain/derivation/deposit-keys.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { bytesToHex, hexToBytes } from "../../../chain/hex.js";
import { keystoreAddress } from "../../../chain/signing/keystore.js";
import { CliError } from "../../errors.js";

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

/**
 * Text of `deposit.xpub` to the extended public key at `DEPOSIT_PATH`.
 * @param path named in the fault
 * @throws HOME_INCOMPLETE also for a key of another depth, whose addresses nobody could sweep
 */
export function parseAccountXpub(text: string, path: string): string {
  const xpub = text.trim();
  try {
    const { depth, privateKey } = HDKey.fromExtendedKey(xpub);
    if (depth === DEPOSIT_PATH.split("/").length - 1 && privateKey === null) return xpub;
  } catch {
    // Not an extended key: the one fault below says so, without the text.
  }
  const message = `${path} does not hold the extended public key of ${DEPOSIT_PATH}.`;
  throw new CliError("HOME_INCOMPLETE", message);
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
  const keys = await readDepositSeed(text);
  if (keys !== undefined) return keys.xpub;
  throw new CliError("HOME_INCOMPLETE", `${path} holds neither BIP-39 words nor a seed as hex.`);
}

/**
 * Address of a keystore file, read without its passphrase.
 * @throws HOME_INCOMPLETE
 */
export function parseKeystoreAddress(text: string, path: string): Address {
  try {
    return keystoreAddress(text);
  } catch {
    // Whatever is wrong with it, the one sentence says what to do; a cause could quote the file.
    throw new CliError("HOME_INCOMPLETE", `${path} is not a keystore with an address.`);
  }
}
