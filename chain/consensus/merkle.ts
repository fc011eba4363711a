/** RFC 6962 Merkle trees as CometBFT builds them: leaves and inner nodes hashed apart. */
import { sha256 } from "../hashes.js";
import { allAtOnce, mapInSteps, type Steps } from "../steps/steps.js";
import { invalidMessage, ProtoReader, ProtoWriter } from "../protobuf/wire.js";

const LEAF_PREFIX = 0;
const INNER_PREFIX = 1;
const HASH_BYTES = 32;

/** Root of no leaves: SHA-256 of nothing. */
const EMPTY_MERKLE_ROOT: Uint8Array = sha256(new Uint8Array(0));

/** Shows that a leaf is the `index`-th of `total` under a root. */
export interface MerkleProof {
  readonly total: number;
  readonly index: number;
  readonly leafHash: Uint8Array;
  /** Hashes of the siblings, from the leaf's upwards. */
  readonly aunts: readonly Uint8Array[];
}

/** A tree of 2^64 leaves has no more levels. */
const MAX_AUNTS = 64;

/** SHA-256 of a leaf. */
export function leafHash(leaf: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(1 + leaf.length);
  bytes[0] = LEAF_PREFIX;
  bytes.set(leaf, 1);
  return sha256(bytes);
}

/** What an inner node hashes; one for all, because a block's root has thousands of them. */
const INNER = new Uint8Array(1 + 2 * HASH_BYTES).fill(INNER_PREFIX, 0, 1);

function innerHash(left: Uint8Array, right: Uint8Array): Uint8Array {
  INNER.set(left, 1);
  INNER.set(right, 1 + HASH_BYTES);
  return sha256(INNER);
}

/** Root over the leaves in order. */
export function merkleRootOf(leaves: readonly Uint8Array[]): Uint8Array {
  return merkleRootOfHashes(leaves.map(leafHash));
}

/** The same in steps. */
export function* merkleRootSteps(leaves: readonly Uint8Array[]): Steps<Uint8Array> {
  return yield* rootOfHashesSteps(yield* mapInSteps(leaves, leafHash));
}

/** Root over leaves whose hashes are known. */
function merkleRootOfHashes(hashes: readonly Uint8Array[]): Uint8Array {
  return allAtOnce(rootOfHashesSteps(hashes));
}

/** The same in steps. */
export function* rootOfHashesSteps(hashes: readonly Uint8Array[]): Steps<Uint8Array> {
  let level = hashes;
  // Pairing from the left and carrying an odd last node up equals RFC 6962's split at the largest
  // power of two below the count.
  while (level.length > 1) level = yield* pairUp(level);
  return level[0] ?? EMPTY_MERKLE_ROOT;
}

/** A root with the proofs of all leaves below it, in order. */
export interface ProvenRoot {
  readonly root: Uint8Array;
  readonly proofs: readonly MerkleProof[];
}

/** Root and proofs together, in steps of a leaf each. */
export function* provenRootSteps(leaves: readonly Uint8Array[]): Steps<ProvenRoot> {
  const hashes = yield* mapInSteps(leaves, leafHash);
  const levels = [hashes];
  for (let last = hashes; last.length > 1; ) {
    last = yield* pairUp(last);
    levels.push(last);
  }
  const proofs = yield* mapInSteps(hashes.entries(), ([index, hash]) => {
    const aunts: Uint8Array[] = [];
    let position = index;
    for (const level of levels.slice(0, -1)) {
      const aunt = level[position ^ 1];
      if (aunt !== undefined) aunts.push(aunt);
      position >>= 1;
    }
    return { total: leaves.length, index, leafHash: hash, aunts };
  });
  return { root: levels.at(-1)?.[0] ?? EMPTY_MERKLE_ROOT, proofs };
}

/** Whether the proof leads from the leaf to the root. */
export function verifyMerkleProof(proof: MerkleProof, root: Uint8Array, leaf: Uint8Array): boolean {
  if (!isEqual(proof.leafHash, leafHash(leaf))) return false;
  let { index, total } = proof;
  if (index >= total) return false;
  let hash = proof.leafHash;
  let used = 0;
  while (total > 1) {
    const isOddLast = index === total - 1 && index % 2 === 0;
    if (!isOddLast) {
      const aunt = proof.aunts[used++];
      if (aunt === undefined) return false;
      hash = index % 2 === 0 ? innerHash(hash, aunt) : innerHash(aunt, hash);
    }
    index = Math.floor(index / 2);
    total = Math.ceil(total / 2);
  }
  return used === proof.aunts.length && isEqual(hash, root);
}

/** The proof as `tendermint.crypto.Proof`. */
export function encodeMerkleProof(proof: MerkleProof): Buffer {
  const writer = new ProtoWriter()
    .integer(1, proof.total)
    .integer(2, proof.index)
    .bytes(3, proof.leafHash);
  for (const aunt of proof.aunts) writer.message(4, aunt);
  return writer.finish();
}

/** Untrusted bytes to a proof. Throws INVALID_MESSAGE. */
export function decodeMerkleProof(bytes: Uint8Array): MerkleProof {
  const reader = new ProtoReader(bytes, [1, 2, 3], { 4: MAX_AUNTS });
  const aunts = reader.repeated(4);
  const hashes = [reader.bytes(3), ...aunts];
  if (hashes.some((hash) => hash.length !== 32)) throw invalidMessage("a hash is not 32 bytes");
  return {
    total: reader.count(1),
    index: reader.count(2),
    leafHash: reader.bytes(3),
    aunts,
  };
}

function* pairUp(level: readonly Uint8Array[]): Steps<Uint8Array[]> {
  const next: Uint8Array[] = [];
  for (let index = 0; index < level.length; index += 2) {
    const [left, right] = [level[index], level[index + 1]];
    if (left === undefined) break;
    next.push(right === undefined ? left : innerHash(left, right));
    yield;
  }
  return next;
}

function isEqual(left: Uint8Array, right: Uint8Array): boolean {
  return Buffer.compare(left, right) === 0;
}
