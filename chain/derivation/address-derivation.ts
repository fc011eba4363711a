/** Deposit addresses from the account's extended public key; no private key is ever here. */
import { type Address, publicKeyToAddress } from "../address.js";
import { derivationByIntegers, derivationByLibrary, parseExtendedPublicKey } from "./child-key.js";
import { ChainError } from "../errors.js";

/** Derives the address of an index. */
export interface AddressDerivation {
  /**
   * Address at `<account key>/<index>`, 0 <= index < 2^31, derived twice on independent paths.
   * @throws DERIVATION_MISMATCH, INVALID_XPUB
   */
  addressAt(index: number): Address;
}

/** Depth of m/44'/60'/0'/0 (BIP-44): the key whose children are deposit addresses. */
const ACCOUNT_CHAIN_DEPTH = 4;

/**
 * Takes the xpub of m/44'/60'/0'/0.
 * @throws INVALID_XPUB also for a key of another depth, whose addresses nobody could sweep
 */
export function createAddressDerivation(xpub: string): AddressDerivation {
  const parent = parseExtendedPublicKey(xpub);
  if (parent.depth !== ACCOUNT_CHAIN_DEPTH) {
    throw new ChainError(
      "INVALID_XPUB",
      `expected the extended key of m/44'/60'/0'/0 (depth 4), got depth ${parent.depth}`,
    );
  }
  const first = derivationByLibrary(xpub);
  const second = derivationByIntegers(parent);
  return {
    addressAt(index) {
      const address = publicKeyToAddress(first.childAt(index));
      if (publicKeyToAddress(second.childAt(index)) !== address) {
        throw new ChainError("DERIVATION_MISMATCH", "two derivations of an address disagree", {
          details: { index },
        });
      }
      return address;
    },
  };
}
