/**
 * Ed25519: signatures of validators, peers and nodes. Verification follows ZIP-215, the rule of
 * CometBFT: which signatures count must not depend on the library, or validators would disagree
 * about a commit.
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { isSmallOrderEd25519, verifyEd25519Zip215 } from "../crypto.js";

/** Parsed keys by the bytes that a validator set holds; they go when the set goes. */
const publicKeys = new WeakMap<Uint8Array, KeyObject>();

/**
 * Whether the signature of 64 bytes is the key's over the message, by ZIP-215. Node's own
 * implementation accepts a part of what ZIP-215 does, and is 30 times faster: only what it refuses
 * is looked at a second time.
 */
export function verifySignature(
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
): boolean {
  const key = publicKeys.get(publicKey) ?? parsePublicKey(publicKey);
  if (verify(null, message, key, signature)) return true;
  return verifyEd25519Zip215(publicKey, message, signature);
}

/**
 * Whether anybody can sign for a public key, without a private one: it is a point of small order, as 32
 * zeros are, for which ZIP-215 counts the neutral element and 0 as a signature over any message.
 */
export function isAnybodysKey(publicKey: Uint8Array): boolean {
  return isSmallOrderEd25519(publicKey);
}

function parsePublicKey(publicKey: Uint8Array): KeyObject {
  const x = Buffer.from(publicKey).toString("base64url");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  publicKeys.set(publicKey, key);
  return key;
}

/** A private key that signs. */
export interface SigningKey {
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  sign(message: Uint8Array): Uint8Array;
}

/** The key of a 32-byte seed. */
export function signingKeyOf(seed: Uint8Array): SigningKey {
  // RFC 8410's PKCS #8 wrapping of a seed: Node reads raw seeds in no other form.
  const der = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed]);
  const key = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  const spki = createPublicKey(key).export({ format: "der", type: "spki" });
  const publicKey = Uint8Array.from(spki.subarray(-32));
  return { publicKey, sign: (message) => sign(null, message, key) };
}
