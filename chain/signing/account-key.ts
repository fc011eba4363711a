/** From a private key to the account it signs for. */
import { type Address, publicKeyToAddress } from "../address.js";
import { publicKeyOf } from "../crypto.js";

/** 32-byte private key to its address. Throws INVALID_KEY. */
export function privateKeyToAddress(privateKey: Uint8Array): Address {
  return publicKeyToAddress(publicKeyOf(privateKey));
}
