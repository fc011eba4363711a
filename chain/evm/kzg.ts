/** KZG proofs over BLS12-381 (EIP-4844): that a committed polynomial has a value at a point. */
import { bls12_381 } from "@noble/curves/bls12-381.js";

/** Order of the scalar field: points and values lie below it. */
export const KZG_FIELD_ORDER = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001n;

/** [tau] in G2: second point of the ceremony's monomial form (consensus-specs, trusted setup). */
const TAU_G2 = bls12_381.G2.Point.fromHex(
  "b5bfd7dd8cdeb128843bc287230af38926187075cbfbefa81009a2ce615ac53d" +
    "2914e5870cb452d2afaaab24f3499f72185cbfee53492714734429b7b38608e2" +
    "3926c911cceceac9a36851477ba4c60b087041de621000edc98edada20c1def2",
);

/** A claim about a polynomial. */
export interface KzgClaim {
  /** 48 bytes each: compressed points of G1. */
  readonly commitment: Uint8Array;
  readonly proof: Uint8Array;
  readonly point: bigint;
  readonly value: bigint;
}

/**
 * Whether e(C - [y], -[1]) * e(proof, [tau] - [z]) = 1; false also for bytes that are no points of
 * the subgroup.
 */
export function verifyKzgProof(claim: KzgClaim): boolean {
  try {
    return holds(claim);
  } catch {
    // The library says by an exception that bytes are no point.
    return false;
  }
}

function holds({ commitment, proof, point, value }: KzgClaim): boolean {
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
