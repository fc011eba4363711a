/**
 * Precompile 0x0a (EIP-4844): that a polynomial, known by its KZG commitment, has a value at a
 * point. The equation is e(C - [y], -[1]) * e(proof, [tau] - [z]) = 1 over BLS12-381.
 */
import { bls12_381 } from "@noble/curves/bls12-381.js";
import { sha256 } from "../../../chain/hashes.js";
import { bytesToBigint, hexToBytes } from "../../../chain/hex.js";
import type { Precompile } from "./precompile.js";

const INPUT_BYTES = 192;
/** Version of the hash of a commitment. */
const KZG_VERSION = 0x01;

/** Order of the scalar field. */
const FIELD_ORDER = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001n;

/** [tau] in G2: second point of the ceremony's monomial form (consensus-specs, trusted setup). */
const TAU_G2 = bls12_381.G2.Point.fromHex(
  "b5bfd7dd8cdeb128843bc287230af38926187075cbfbefa81009a2ce615ac53d" +
    "2914e5870cb452d2afaaab24f3499f72185cbfee53492714734429b7b38608e2" +
    "3926c911cceceac9a36851477ba4c60b087041de621000edc98edada20c1def2",
);

/** Field elements of a blob, and the order of the field: what the contract answers. */
const SUCCESS = hexToBytes(
  `0x${(4_096).toString(16).padStart(64, "0")}${FIELD_ORDER.toString(16).padStart(64, "0")}`,
);

/** versioned hash, z, y (32 bytes each), commitment, proof (48 each). */
export const pointEvaluation: Precompile = {
  gas: () => 50_000,
  computeNs: () => 25_000_000,
  run: (input) => (isProven(input) ? SUCCESS.slice() : undefined),
};

function isProven(input: Uint8Array): boolean {
  if (input.length !== INPUT_BYTES) return false;
  const commitment = input.subarray(96, 144);
  const versionedHash = sha256(commitment);
  versionedHash[0] = KZG_VERSION;
  if (Buffer.compare(versionedHash, input.subarray(0, 32)) !== 0) return false;
  const point = bytesToBigint(input.subarray(32, 64));
  const value = bytesToBigint(input.subarray(64, 96));
  if (point >= FIELD_ORDER || value >= FIELD_ORDER) return false;
  try {
    return holds({ commitment, point, value, proof: input.subarray(144) });
  } catch {
    // Bytes that are no point of the curve's subgroup.
    return false;
  }
}

function holds({
  commitment,
  point,
  value,
  proof,
}: {
  readonly commitment: Uint8Array;
  readonly point: bigint;
  readonly value: bigint;
  readonly proof: Uint8Array;
}): boolean {
  const { G1, G2 } = bls12_381;
  const committed = G1.Point.fromBytes(commitment);
  const proven = G1.Point.fromBytes(proof);
  committed.assertValidity();
  proven.assertValidity();
  const left = value === 0n ? committed : committed.subtract(G1.Point.BASE.multiply(value));
  const right = point === 0n ? TAU_G2 : TAU_G2.subtract(G2.Point.BASE.multiply(point));
  const pairs = [
    { g1: left, g2: G2.Point.BASE.negate() },
    { g1: proven, g2: right },
  ].filter(({ g1, g2 }) => !g1.is0() && !g2.is0());
  const { Fp12 } = bls12_381.fields;
  return pairs.length === 0 || Fp12.eql(bls12_381.pairingBatch(pairs), Fp12.ONE);
}
