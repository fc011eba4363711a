/**
 * Private keys of deposit addresses, from the seed that their extended public key is made of. Whoever
 * holds this can spend from every deposit address: only what sweeps them reads the seed.
 */
import { HDKey } from "@scure/bip32";
import { mnemonicToSeed, validateMnemonic } from "@scure/bip39";
import { wordlist } from "@scure/bip39/wordlists/english.js";
import { ChainError } from "../errors.js";

/** Where deposit addresses hang: address i is this path's child i, derivable from the xpub. */
export const DEPOSIT_PATH = "m/44'/60'/0'/0";

/** Keys of deposit addresses. */
export interface DepositKeys {
  /** Extended public key at `DEPOSIT_PATH`: it derives every address and can spend from none. */
  readonly xpub: string;
  /**
   * Private key of the address of an index, 0 <= index < 2^31.
   * @throws INVALID_XPUB for the one index in 2^127 that has no key
   */
  privateKeyAt(index: number): Uint8Array;
}

/** Text of a seed file, BIP-39 words or the seed itself as hex, to keys; undefined for neither. */
export async function readDepositSeed(text: string): Promise<DepositKeys | undefined> {
  const trimmed = text.trim();
  const isHex = /^(0x)?[0-9a-fA-F]{32,128}$/.test(trimmed) && trimmed.length % 2 === 0;
  if (!isHex && !validateMnemonic(trimmed, wordlist)) return undefined;
  const seed = isHex
    ? new Uint8Array(Buffer.from(trimmed.replace(/^0x/, ""), "hex"))
    : await mnemonicToSeed(trimmed);
  const account = HDKey.fromMasterSeed(seed).derive(DEPOSIT_PATH);
  return {
    xpub: account.publicExtendedKey,
    privateKeyAt(index) {
      const { privateKey } = account.deriveChild(index);
      if (privateKey === null) throw new ChainError("INVALID_XPUB", "this child index has no key");
      return new Uint8Array(privateKey);
    },
  };
}
