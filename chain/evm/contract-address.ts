/** Addresses of contracts that transactions create. */
import { type Address, addressToBytes, bytesToAddress } from "../address.js";
import { keccak256 } from "../hashes.js";
import { bigintToWord } from "../hex.js";
import { encodeRlp } from "../encoding/rlp-writer.js";

/** Address of a contract made by an account's transaction: keccak256(rlp([sender, nonce]))[12:]. */
export function contractAddressOf(from: Address, nonce: bigint): Address {
  const encoded = encodeRlp([from, nonce]);
  return bytesToAddress(keccak256(encoded).subarray(12));
}

/** Address of a CREATE2: keccak256(0xff, creator, salt, keccak256(code))[12:] (EIP-1014). */
export function contractAddress2Of(from: Address, salt: bigint, code: Uint8Array): Address {
  const encoded = new Uint8Array(85);
  encoded[0] = 0xff;
  encoded.set(addressToBytes(from), 1);
  encoded.set(bigintToWord(salt), 21);
  encoded.set(keccak256(code), 53);
  return bytesToAddress(keccak256(encoded).subarray(12));
}
