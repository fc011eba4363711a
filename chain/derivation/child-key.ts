/**
 * BIP-32's public children on two paths. Each reads the extended key, makes the child's number and adds the
 * points by itself, once with libraries and once with OpenSSL and plain integers; base58 and the bounds of an
 * index are all they share. A fault in either shows as a disagreement before an address is given to anybody.
 */
import { createECDH, createHmac, ECDH } from "node:crypto";
import { hmac } from "@noble/hashes/hmac.js";
import { sha512 } from "@noble/hashes/sha2.js";
import { createBase58check } from "@scure/base";
import { HDKey } from "@scure/bip32";
import { parsePublicKey, secp256k1 } from "../crypto.js";
import { sha256 } from "../hashes.js";
import { bytesToBigint } from "../hex.js";
import { ChainError } from "../errors.js";

/** A parsed extended public key: what a child needs of its parent. */
export interface ExtendedPublicKey {
  /** Compressed point, 33 bytes. */
  readonly publicKey: Uint8Array;
  /** 32 bytes. */
  readonly chainCode: Uint8Array;
  /** Levels below the master key. */
  readonly depth: number;
}

/** Largest index of a child that a public key alone can derive. */
const MAX_CHILD_INDEX = 2 ** 31 - 1;

/** Prime of the field of secp256k1 (SEC 2, 2.4.1). */
const FIELD_PRIME = 2n ** 256n - 2n ** 32n - 977n;

/** Version bytes of a public key on the main network, which shows as "xpub" (BIP-32). */
const XPUB_VERSION = 0x0488b21e;

/**
 * Reads base58check text "xpub…" (78 bytes: version, depth, fingerprint, index, chain code, key).
 * @throws INVALID_XPUB
 */
export function parseExtendedPublicKey(text: string): ExtendedPublicKey {
  let bytes: Uint8Array;
  try {
    bytes = createBase58check((data: Uint8Array) => new Uint8Array(sha256(data))).decode(text);
  } catch (cause) {
    throw new ChainError("INVALID_XPUB", "the extended public key is not base58check", { cause });
  }
  const view = Buffer.from(bytes);
  if (view.length !== 78 || view.readUInt32BE(0) !== XPUB_VERSION) {
    throw new ChainError("INVALID_XPUB", "expected an extended public key that starts with xpub");
  }
  const publicKey = new Uint8Array(view.subarray(45));
  uncompress(publicKey);
  return { publicKey, chainCode: new Uint8Array(view.subarray(13, 45)), depth: view.readUInt8(4) };
}

/** Derives the public keys of non-hardened children, 64 bytes each (x, y). Source: BIP-32, CKDpub. */
export interface ChildDerivation {
  /** @throws INVALID_XPUB for an index out of range, or the one in 2^127 that has no key */
  childAt(index: number): Uint8Array;
}

/**
 * The path by libraries: one reads the key, and the fastest that works on this machine adds to its point.
 * @throws INVALID_XPUB
 */
export function derivationByLibrary(xpub: string): ChildDerivation {
  const { publicKey, chainCode } = readByLibrary(xpub);
  const point = parsePublicKey(publicKey);
  return {
    childAt(index) {
      requireIndex(index);
      const data = new Uint8Array(37);
      data.set(publicKey);
      new DataView(data.buffer).setUint32(33, index);
      const digest = hmac(sha512, chainCode, data);
      const child = secp256k1.addTweak(point, digest.subarray(0, 32));
      if (child === undefined) throw new ChainError("INVALID_XPUB", "this child index has no key");
      return child;
    },
  };
}

function readByLibrary(xpub: string): Pick<ExtendedPublicKey, "publicKey" | "chainCode"> {
  try {
    const { publicKey, chainCode } = HDKey.fromExtendedKey(xpub);
    if (publicKey === null || chainCode === null) throw new TypeError("no parent of public keys");
    return { publicKey, chainCode };
  } catch (cause) {
    throw new ChainError("INVALID_XPUB", "not an extended public key", { cause });
  }
}

/** The path by OpenSSL and plain integers. */
export function derivationByIntegers(parent: ExtendedPublicKey): ChildDerivation {
  const point = uncompress(parent.publicKey);
  return {
    childAt(index) {
      requireIndex(index);
      const data = Buffer.alloc(37);
      data.set(parent.publicKey, 0);
      data.writeUInt32BE(index, 33);
      const digest = createHmac("sha512", parent.chainCode).update(data).digest();
      return addPoints(multiplyGenerator(digest.subarray(0, 32)), point);
    },
  };
}

function requireIndex(index: number): void {
  if (Number.isInteger(index) && index >= 0 && index <= MAX_CHILD_INDEX) return;
  throw new ChainError("INVALID_XPUB", "the child index is out of range", { details: { index } });
}

/** A point in affine coordinates. */
interface Point {
  readonly x: bigint;
  readonly y: bigint;
}

function multiplyGenerator(scalar: Uint8Array): Point {
  try {
    const pair = createECDH("secp256k1");
    pair.setPrivateKey(scalar);
    return readPoint(pair.getPublicKey());
  } catch (cause) {
    throw new ChainError("INVALID_XPUB", "this child index has no key", { cause });
  }
}

function uncompress(publicKey: Uint8Array): Point {
  try {
    const converted = ECDH.convertKey(publicKey, "secp256k1", undefined, undefined, "uncompressed");
    if (typeof converted === "string") throw new Error("expected bytes");
    return readPoint(converted);
  } catch (cause) {
    throw new ChainError("INVALID_XPUB", "the extended key holds no point", { cause });
  }
}

function readPoint(uncompressed: Uint8Array): Point {
  return {
    x: bytesToBigint(uncompressed.subarray(1, 33)),
    y: bytesToBigint(uncompressed.subarray(33, 65)),
  };
}

/** Affine addition of two different points (SEC 1, 2.2.1); equal or opposite ones are refused. */
function addPoints(left: Point, right: Point): Uint8Array {
  const run = modulo(right.x - left.x);
  if (run === 0n) throw new ChainError("INVALID_XPUB", "this child index has no key");
  const slope = modulo((right.y - left.y) * invert(run));
  const x = modulo(slope * slope - left.x - right.x);
  const y = modulo(slope * (left.x - x) - left.y);
  const digits = x.toString(16).padStart(64, "0") + y.toString(16).padStart(64, "0");
  return new Uint8Array(Buffer.from(digits, "hex"));
}

function modulo(value: bigint): bigint {
  const rest = value % FIELD_PRIME;
  return rest < 0n ? rest + FIELD_PRIME : rest;
}

/** Inverse by the extended Euclidean algorithm; the value is not zero modulo the prime. */
function invert(value: bigint): bigint {
  let [low, high] = [modulo(value), FIELD_PRIME];
  let [lowFactor, highFactor] = [1n, 0n];
  while (low > 1n) {
    const quotient = high / low;
    [low, high] = [high - quotient * low, low];
    [lowFactor, highFactor] = [highFactor - quotient * lowFactor, lowFactor];
  }
  return modulo(lowFactor);
}
