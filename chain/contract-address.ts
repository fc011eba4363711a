/** Addresses of contracts that transactions create. */
import { type Address, addressToBytes, bytesToAddress } from "./address.js";
import { keccak256 } from "./hashes.js";
import { bigintToBytes } from "./hex.js";
import { encodeRlp } from "./rlp.js";

/** Address of a contract made by an account's transaction: keccak256(rlp([sender, nonce]))[12:]. */
export function contractAddressOf(from: Address, nonce: bigint): Address {
  const encoded = encodeRlp([addressToBytes(from), bigintToBytes(nonce)]);
  return bytesToAddress(keccak256(encoded).subarray(12));
}
