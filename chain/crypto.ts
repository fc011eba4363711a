/**
 * Hashes and secp256k1. Hot paths use hash-wasm and the fastest secp256k1 back-end that works on
 * this machine; @noble stays the reference that tests compare with. Loading is asynchronous
 * (wasm), so this module completes its own top-level await before anyone can call it.
 */
import { hash } from "node:crypto";
import { createRequire } from "node:module";
import { instantiateSecp256k1 } from "@bitauth/libauth";
import { secp256k1 as noble } from "@noble/curves/secp256k1.js";
import { createKeccak } from "hash-wasm";
import { ChainError } from "./errors.js";
import type { Hash32 } from "./hex.js";

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
  sign(digest: Uint8Array, privateKey: Uint8Array): RecoverableSignature;
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
  ecdsaSign(message: Uint8Array, key: Uint8Array): { signature: Uint8Array; recid: number };
}

const keccakHasher = await createKeccak(256);

/** keccak256 of the bytes, 32 bytes. */
export function keccak256(bytes: Uint8Array): Uint8Array {
  keccakHasher.init();
  keccakHasher.update(bytes);
  return keccakHasher.digest("binary");
}

/** keccak256 of the bytes as `0x` hex. */
export function keccak256Hex(bytes: Uint8Array): Hash32 {
  keccakHasher.init();
  keccakHasher.update(bytes);
  return `0x${keccakHasher.digest("hex")}` as Hash32;
}

/** SHA-256 of the bytes, 32 bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  return hash("sha256", bytes, "buffer");
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
      sign(digest, privateKey) {
        const { signature, recid } = binding.ecdsaSign(digest, privateKey);
        return { r: signature.slice(0, 32), s: signature.slice(32, 64), recoveryId: recid };
      },
    };
    return worksLikeReference(self) ? self : undefined;
  } catch {
    return undefined; // No prebuilt binary for this platform: the next back-end is tried.
  }
}

async function createWasm(): Promise<Secp256k1 | undefined> {
  try {
    const wasm = await instantiateSecp256k1();
    const self: Secp256k1 = {
      backend: "wasm",
      recover(digest, compact, recoveryId) {
        const id = recoveryId === 0 ? 0 : 1;
        const key = wasm.recoverPublicKeyUncompressed(compact, id, digest);
        return typeof key === "string" ? undefined : key.subarray(1);
      },
      sign(digest, privateKey) {
        const signed = wasm.signMessageHashRecoverableCompact(privateKey, digest);
        if (typeof signed === "string") throw new ChainError("INVALID_KEY", "cannot sign");
        const { signature, recoveryId } = signed;
        return { r: signature.slice(0, 32), s: signature.slice(32, 64), recoveryId };
      },
    };
    return worksLikeReference(self) ? self : undefined;
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
  sign(digest, privateKey) {
    const bytes = noble.sign(digest, privateKey, { prehash: false, format: "recovered" });
    return { r: bytes.slice(1, 33), s: bytes.slice(33, 65), recoveryId: bytes[0] ?? 0 };
  },
};

/** A back-end is used only if it signs and recovers as the reference does on this machine. */
function worksLikeReference(candidate: Secp256k1): boolean {
  const key = new Uint8Array(32).fill(7);
  const digest = new Uint8Array(32).fill(9);
  const expected = nobleSecp256k1.sign(digest, key);
  const got = candidate.sign(digest, key);
  const compact = Buffer.concat([got.r, got.s]);
  const publicKey = candidate.recover(digest, compact, got.recoveryId);
  return (
    publicKey !== undefined &&
    Buffer.compare(got.r, expected.r) === 0 &&
    Buffer.compare(got.s, expected.s) === 0 &&
    Buffer.compare(publicKey, publicKeyOf(key)) === 0
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
  try {
    return noble.Point.fromBytes(bytes).toBytes(false).subarray(1);
  } catch (cause) {
    throw new ChainError("INVALID_KEY", "not a point on secp256k1", { cause });
  }
}
