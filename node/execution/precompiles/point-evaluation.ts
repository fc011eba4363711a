/** Precompile 0x0a (EIP-4844): that a polynomial, known by its commitment, has a value at a point. */
import { sha256 } from "../../../chain/hashes.js";
import { bytesToBigint, hexToBytes } from "../../../chain/hex.js";
import { KZG_FIELD_ORDER, verifyKzgProof } from "../../../chain/evm/kzg.js";
import type { Precompile } from "./precompile.js";

const INPUT_BYTES = 192;
/** Version of the hash of a commitment. */
const KZG_VERSION = 0x01;

/** Field elements of a blob, and the order of the field: what the contract answers. */
const SUCCESS = hexToBytes(
  `0x${(4_096).toString(16).padStart(64, "0")}${KZG_FIELD_ORDER.toString(16).padStart(64, "0")}`,
);

/** versioned hash, z, y (32 bytes each), commitment, proof (48 each). */
export const pointEvaluation: Precompile = {
  gas: () => 50_000,
  computeNs: () => 40_000_000,
  run: (input) => (isProven(input) ? SUCCESS.slice() : undefined),
  failure(input) {
    if (input.length !== INPUT_BYTES) return "invalid input length";
    return isOfCommitment(input) ? "error verifying kzg proof" : "mismatched versioned hash";
  },
};

/** True where the first word is the hash of the commitment. */
function isOfCommitment(input: Uint8Array): boolean {
  const versionedHash = sha256(input.subarray(96, 144));
  versionedHash[0] = KZG_VERSION;
  return Buffer.compare(versionedHash, input.subarray(0, 32)) === 0;
}

function isProven(input: Uint8Array): boolean {
  if (input.length !== INPUT_BYTES || !isOfCommitment(input)) return false;
  const commitment = input.subarray(96, 144);
  const point = bytesToBigint(input.subarray(32, 64));
  const value = bytesToBigint(input.subarray(64, 96));
  if (point >= KZG_FIELD_ORDER || value >= KZG_FIELD_ORDER) return false;
  return verifyKzgProof({ commitment, point, value, proof: input.subarray(144) });
}
