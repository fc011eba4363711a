/**
 * Signatures: secp256k1 and the rule of Ed25519 that Node lacks. Hot paths use the fastest secp256k1
 * back-end that works on this machine; @noble stays the reference that tests compare with. The
 * choice may load wasm, so this module completes its own top-level await before anyone can call it.
 */
import { present, ChainError } from "./errors.js";
import { bytesToBigint } from "./hex.js";
import { createRequire } from "node:module";
import { ed25519 } from "@noble/curves/ed25519.js";
import { p256 } from "@noble/curves/nist.js";
import { secp256k1 as noble } from "@noble/curves/secp256k1.js";

/** Which secp256k1 implementation is in use, fastest first. */
export type Secp256k1Backend = "native" | "wasm" | "noble";

/** A recoverable signature over a 32-byte digest; `s` is in the lower half. */
export interface RecoverableSignature {
  /** 32 bytes. */
  readonly r: Uint8Array;
  /** 32 bytes. */
  readonly s: Uint8Array;
  /** 0 or 1. */
  readonly recoveryId: number;
}

/** One secp256k1 implementation behind the operations that the chain needs. */
export interface Secp256k1 {
  readonly backend: Secp256k1Backend;
  /** 64-byte compact signature + recovery id -> 64-byte public key (x, y); undefined if invalid. */
  recover(digest: Uint8Array, compact: Uint8Array, recoveryId: number): Uint8Array | undefined;
  /** Whether a key of 64 bytes (x, y) made a 64-byte compact signature; never where s is above the half. */
  verify(digest: Uint8Array, compact: Uint8Array, publicKey: Uint8Array): boolean;
  sign(digest: Uint8Array, privateKey: Uint8Array): RecoverableSignature;
  /** A key of 33 bytes, 2 or 3 and x -> x and y; undefined where there is no such point. */
  expand(compressed: Uint8Array): Uint8Array | undefined;
  /**
   * A key of 64 bytes (x, y) plus a number of 32 bytes times the generator (x, y); undefined for a number
   * that is not below the group's order, and where there is no such point.
   */
  addTweak(publicKey: Uint8Array, tweak: Uint8Array): Uint8Array | undefined;
}

/** Order of the secp256k1 group. */
export const SECP256K1_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

interface NativeBinding {
  ecdsaRecover(
    signature: Uint8Array,
    recoveryId: number,
    message: Uint8Array,
    compressed: boolean,
  ): Uint8Array;
  ecdsaVerify(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean;
  ecdsaSign(message: Uint8Array, key: Uint8Array): { signature: Uint8Array; recid: number };
  publicKeyConvert(key: Uint8Array, compressed: boolean): Uint8Array;
  publicKeyTweakAdd(key: Uint8Array, tweak: Uint8Array, compressed: boolean): Uint8Array;
}

/**
 * RFC 6979 over secp256k1, the vector that Trezor's and Bitcoin Core's tests share: SHA-256 of
 * "Satoshi Nakamoto" signed by the key 1, whose public key is the generator (SEC 2).
 */
const KNOWN_SIGNATURE = {
  privateKey: Buffer.from(`${"00".repeat(31)}01`, "hex"),
  digest: Buffer.from("a0dc65ffca799873cbea0ac274015b9526505daaaed385155425f7337704883e", "hex"),
  compact: Buffer.from(
    "934b1ea10a4b3c1757e2b0c017d0b6143ce3c9a7e6a4a49860d7a6ab210ee3d8" +
      "2442ce9d2b916064108014783e923ec36b49743e2ffa1c4496f01a512aafd9e5",
    "hex",
  ),
  publicKey: Buffer.from(
    "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798" +
      "483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8",
    "hex",
  ),
  /** The generator twice. */
  twice: Buffer.from(
    "c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5" +
      "1ae168fea63dc339a3c58419466ceaeef7f632653266d0e1236431a950cfe52a",
    "hex",
  ),
};

/**
 * Whether an Ed25519 signature counts by ZIP-215: points of small order and encodings beyond the
 * field count, the equation is the cofactored one, `s` must be below the group's order. A key or
 * signature of another length counts for nothing.
 */
export function verifyEd25519Zip215(
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
): boolean {
  if (publicKey.length !== 32 || signature.length !== 64) return false;
  return ed25519.verify(signature, message, publicKey, { zip215: true });
}

/**
 * Whether an Ed25519 key is a point of small order, in any encoding that ZIP-215 takes. What is no key at
 * all is none.
 */
export function isSmallOrderEd25519(publicKey: Uint8Array): boolean {
  if (publicKey.length !== 32) return false;
  try {
    return ed25519.Point.fromBytes(publicKey, true).isSmallOrder();
  } catch {
    return false; // No point of the curve.
  }
}

/**
 * Whether an ECDSA signature over secp256r1 is right (RIP-7212): s may be high, the key must be on
 * the curve.
 * @param signed.signature r and s, 32 bytes each
 * @param signed.publicKey x and y, 32 bytes each
 */
export function verifyP256({
  digest,
  signature,
  publicKey,
}: {
  readonly digest: Uint8Array;
  readonly signature: Uint8Array;
  readonly publicKey: Uint8Array;
}): boolean {
  try {
    return p256.verify(signature, digest, uncompressed(publicKey), { prehash: false, lowS: false });
  } catch {
    return false; // The library throws for numbers out of range and points off the curve.
  }
}

/** A key's x and y as SEC 1 writes both coordinates: behind a 4. */
function uncompressed(publicKey: Uint8Array): Uint8Array {
  const key = new Uint8Array(publicKey.length + 1);
  key[0] = 4;
  key.set(publicKey, 1);
  return key;
}

function createNative(): Secp256k1 | undefined {
  try {
    // The package's main entry falls back to slow JavaScript silently; its binding does not.
    const binding: NativeBinding = createRequire(import.meta.url)("secp256k1/bindings.js");
    const self: Secp256k1 = {
      backend: "native",
      recover(digest, compact, recoveryId) {
        try {
          return binding.ecdsaRecover(compact, recoveryId, digest, false).subarray(1);
        } catch {
          return undefined; // The binding throws for a signature that recovers no point.
        }
      },
      verify(digest, compact, publicKey) {
        try {
          return binding.ecdsaVerify(compact, digest, uncompressed(publicKey));
        } catch {
          return false; // The binding throws for numbers out of range and points off the curve.
        }
      },
      sign(digest, privateKey) {
        const { signature, recid } = binding.ecdsaSign(digest, privateKey);
        return { r: signature.slice(0, 32), s: signature.slice(32, 64), recoveryId: recid };
      },
      expand(compressed) {
        try {
          return binding.publicKeyConvert(compressed, false).subarray(1);
        } catch {
          return undefined; // The binding throws for what is no point.
        }
      },
      addTweak(publicKey, tweak) {
        try {
          return binding.publicKeyTweakAdd(uncompressed(publicKey), tweak, false).subarray(1);
        } catch {
          return undefined; // The binding throws for numbers out of range and points off the curve.
        }
      },
    };
    return isSound(self) ? self : undefined;
  } catch {
    return undefined; // No prebuilt binary for this platform: the next back-end is tried.
  }
}

/** The back-end in WebAssembly; undefined where the host refuses it. */
export async function createWasm(): Promise<Secp256k1 | undefined> {
  try {
    // Loaded where the binding does not work only: it takes longer than most commands.
    const { instantiateSecp256k1 } = await import("@bitauth/libauth");
    const wasm = await instantiateSecp256k1();
    const self: Secp256k1 = {
      backend: "wasm",
      recover(digest, compact, recoveryId) {
        const id = recoveryId === 0 ? 0 : 1;
        const key = wasm.recoverPublicKeyUncompressed(compact, id, digest);
        return typeof key === "string" ? undefined : key.subarray(1);
      },
      verify(digest, compact, publicKey) {
        return wasm.verifySignatureCompactLowS(compact, uncompressed(publicKey), digest);
      },
      sign(digest, privateKey) {
        const signed = wasm.signMessageHashRecoverableCompact(privateKey, digest);
        if (typeof signed === "string") throw new ChainError("INVALID_KEY", "cannot sign");
        const { signature, recoveryId } = signed;
        return { r: signature.slice(0, 32), s: signature.slice(32, 64), recoveryId };
      },
      expand(compressed) {
        const key = wasm.uncompressPublicKey(compressed);
        return typeof key === "string" ? undefined : key.subarray(1);
      },
      addTweak(publicKey, tweak) {
        const key = wasm.addTweakPublicKeyUncompressed(uncompressed(publicKey), tweak);
        return typeof key === "string" ? undefined : key.subarray(1);
      },
    };
    return isSound(self) ? self : undefined;
  } catch {
    return undefined; // WebAssembly refused by the host: the reference still works.
  }
}

/** The reference implementation, also used where speed does not matter. */
export const nobleSecp256k1: Secp256k1 = {
  backend: "noble",
  recover(digest, compact, recoveryId) {
    try {
      const signature = noble.Signature.fromBytes(compact, "compact").addRecoveryBit(recoveryId);
      return signature.recoverPublicKey(digest).toBytes(false).subarray(1);
    } catch {
      return undefined; // Not a point on the curve.
    }
  },
  verify(digest, compact, publicKey) {
    try {
      const key = uncompressed(publicKey);
      return noble.verify(compact, digest, key, { prehash: false, lowS: true });
    } catch {
      return false; // The library throws for numbers out of range and points off the curve.
    }
  },
  sign(digest, privateKey) {
    const bytes = noble.sign(digest, privateKey, { prehash: false, format: "recovered" });
    return {
      r: bytes.slice(1, 33),
      s: bytes.slice(33, 65),
      recoveryId: present(bytes[0], "recovery id"),
    };
  },
  expand(compressed) {
    try {
      return noble.Point.fromBytes(compressed).toBytes(false).subarray(1);
    } catch {
      return undefined; // Not a point on the curve.
    }
  },
  addTweak(publicKey, tweak) {
    try {
      const key = noble.Point.fromBytes(uncompressed(publicKey));
      return key
        .add(noble.Point.BASE.multiply(bytesToBigint(tweak)))
        .toBytes(false)
        .subarray(1);
    } catch {
      return undefined; // A number out of range, a point off the curve, or the one at infinity.
    }
  },
};

/** A back-end is used only if it does with a published vector what it is for, on this machine. */
function isSound(candidate: Secp256k1): boolean {
  const { privateKey, digest, publicKey, twice } = KNOWN_SIGNATURE;
  const { r, s, recoveryId } = candidate.sign(digest, privateKey);
  const compact = Buffer.concat([r, s]);
  const recovered = candidate.recover(digest, compact, recoveryId);
  const isOdd = ((publicKey.at(-1) ?? 0) & 1) === 1;
  const expanded = candidate.expand(Buffer.of(isOdd ? 3 : 2, ...publicKey.subarray(0, 32)));
  return (
    recovered !== undefined &&
    expanded !== undefined &&
    compact.equals(KNOWN_SIGNATURE.compact) &&
    candidate.verify(digest, compact, publicKey) &&
    !candidate.verify(compact.subarray(0, 32), compact, publicKey) &&
    publicKey.equals(recovered) &&
    publicKey.equals(expanded) &&
    twice.equals(candidate.addTweak(publicKey, privateKey) ?? privateKey)
  );
}

/** The back-end chosen at start: native, else wasm, else noble. Shown by a metric. */
export const secp256k1: Secp256k1 = createNative() ?? (await createWasm()) ?? nobleSecp256k1;

/** Uncompressed public key (64 bytes, x then y) of a 32-byte private key. Throws INVALID_KEY. */
export function publicKeyOf(privateKey: Uint8Array): Uint8Array {
  try {
    return noble.getPublicKey(privateKey, false).subarray(1);
  } catch (cause) {
    throw new ChainError("INVALID_KEY", "not a secp256k1 private key", { cause });
  }
}

/** Compressed (33) or uncompressed (65) public key bytes to x, y (64 bytes). Throws INVALID_KEY. */
export function parsePublicKey(bytes: Uint8Array): Uint8Array {
  if (bytes.length !== 33 && bytes.length !== 65) {
    throw new ChainError("INVALID_KEY", "a public key has 33 or 65 bytes");
  }
  // Back-ends differ in what else they read: hybrid keys, whole points beside the curve.
  const isCompressed = bytes.length === 33 && (bytes[0] === 2 || bytes[0] === 3);
  const point = isCompressed ? secp256k1.expand(bytes) : nobleSecp256k1.expand(bytes);
  if (point === undefined) throw new ChainError("INVALID_KEY", "not a point on secp256k1");
  return point;
}
