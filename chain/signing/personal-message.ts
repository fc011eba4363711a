/** Messages that an account signs for people to see (EIP-191, version 0x45): never transactions. */
import { type Address, publicKeyToAddress } from "../address.js";
import { type RecoverableSignature, secp256k1 } from "../crypto.js";
import { keccak256 } from "../hashes.js";
import { completeSignature } from "./completed-signature.js";

const SIGNATURE = /^0x[0-9a-f]{130}$/i;

/** The same, or r and s alone, as hardware gives them. */
const GIVEN_SIGNATURE = /^0x[0-9a-f]{128}([0-9a-f]{2})?$/i;
const WORD_BYTES = 32;
const COMPACT_BYTES = 2 * WORD_BYTES;

/** Added to the recovery id, as Bitcoin began it. */
const RECOVERY_BASE = 27;

/** Signs a text as `personal_sign` does: 65 bytes r, s, v as 0x hex. */
export function signPersonalMessage(text: string, privateKey: Uint8Array): string {
  return signatureText(secp256k1.sign(personalDigest(text), privateKey));
}

/**
 * A signature of somebody's program in the form of `signPersonalMessage`, as other programs refuse any other:
 * lower case, `s` in the lower half, v 27 or 28. It may come with either half, with v 0 or 1, or without v.
 * @returns undefined for what is none of this text by the account
 */
export function readPersonalSignature(
  text: string,
  signature: string,
  account: Address,
): string | undefined {
  if (!GIVEN_SIGNATURE.test(signature)) return undefined;
  const bytes = Buffer.from(signature.slice(2), "hex");
  const [r, s] = [bytes.subarray(0, WORD_BYTES), bytes.subarray(WORD_BYTES, COMPACT_BYTES)];
  const found = completeSignature(personalDigest(text), { r, s }, account);
  if (found === undefined) return undefined;
  const v = bytes[COMPACT_BYTES];
  // The other half of `s` is of the other point.
  const ownId = s.equals(found.s) ? found.recoveryId : 1 - found.recoveryId;
  const isOwn = v === undefined || v === ownId || v === RECOVERY_BASE + ownId;
  return isOwn ? signatureText(found) : undefined;
}

/** The account that signed a text; undefined for what is no signature. */
export function recoverPersonalMessage(text: string, signature: string): Address | undefined {
  if (!SIGNATURE.test(signature)) return undefined;
  const bytes = Buffer.from(signature.slice(2), "hex");
  const recoveryId = (bytes[COMPACT_BYTES] ?? 0) - RECOVERY_BASE;
  if (recoveryId !== 0 && recoveryId !== 1) return undefined;
  const compact = bytes.subarray(0, COMPACT_BYTES);
  const publicKey = secp256k1.recover(personalDigest(text), compact, recoveryId);
  return publicKey === undefined ? undefined : publicKeyToAddress(publicKey);
}

/** What is signed of a text: 32 bytes. Hardware that knows no messages signs these. */
export function personalDigest(text: string): Uint8Array {
  const message = Buffer.from(text, "utf8");
  const prefix = Buffer.from(`\u0019Ethereum Signed Message:\n${message.length}`, "utf8");
  return keccak256(Buffer.concat([prefix, message]));
}

function signatureText({ r, s, recoveryId }: RecoverableSignature): string {
  const bytes = Buffer.concat([r, s, Buffer.from([RECOVERY_BASE + recoveryId])]);
  return `0x${bytes.toString("hex")}`;
}
