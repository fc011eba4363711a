/**
 * Hashes. Apart from the signatures: a command that only shows addresses loads no curve.
 * hash-wasm needs its module first, so this one completes its own top-level await.
 */
import { hash } from "node:crypto";
import { createKeccak, createRIPEMD160 } from "hash-wasm";
import type { Hash32 } from "./hex.js";

const keccakHasher = await createKeccak(256);
const ripemd160Hasher = await createRIPEMD160();

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

/** RIPEMD-160 of the bytes, 20 bytes; Node's own may be switched off with OpenSSL's old hashes. */
export function ripemd160(bytes: Uint8Array): Uint8Array {
  ripemd160Hasher.init();
  ripemd160Hasher.update(bytes);
  return ripemd160Hasher.digest("binary");
}

/** SHA-256 of the bytes, 32 bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  return hash("sha256", bytes, "buffer");
}

/** SHA-256 of the bytes as `0x` hex. */
export function sha256Hex(bytes: Uint8Array): Hash32 {
  return `0x${hash("sha256", bytes, "hex")}` as Hash32;
}
