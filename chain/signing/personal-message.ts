/** Messages that an account signs for people to see (EIP-191, version 0x45): never transactions. */
import { type Address, publicKeyToAddress } from "../address.js";
import { secp256k1 } from "../crypto.js";
import { keccak256 } from "../hashes.js";

const SIGNATURE = /^0x[0-9a-f]{130}$/i;
const COMPACT_BYTES = 64;

/** Added to the recovery id, as Bitcoin began it. */
const RECOVERY_BASE = 27;

/** Signs a text as `personal_sign` does: 65 bytes r, s, v as 0x hex. */
export function signPersonalMessage(text: string, privateKey: Uint8Array): string {
  const { r, s, recoveryId } = secp256k1.sign(messageDigest(text), privateKey);
  const bytes = Buffer.concat([r, s, Buffer.from([RECOVERY_BASE + recoveryId])]);
  return `0x${bytes.toString("hex")}`;
}

/** The account that signed a text; undefined for what is no signature. */
export function recoverPersonalMessage(text: string, signature: string): Address | undefined {
  if (!SIGNATURE.test(signature)) return undefined;
  const bytes = Buffer.from(signature.slice(2), "hex");
  const recoveryId = (bytes[COMPACT_BYTES] ?? 0) - RECOVERY_BASE;
  if (recoveryId !== 0 && recoveryId !== 1) return undefined;
  const compact = bytes.subarray(0, COMPACT_BYTES);
  const publicKey = secp256k1.recover(messageDigest(text), compact, recoveryId);
  return publicKey === undefined ? undefined : publicKeyToAddress(publicKey);
}

function messageDigest(text: string): Uint8Array {
  const message = Buffer.from(text, "utf8");
  const prefix = Buffer.from(`\u0019Ethereum Signed Message:\n${message.length}`, "utf8");
  return keccak256(Buffer.concat([prefix, message]));
}
