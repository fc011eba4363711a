/** The precompiles of the fork by address (D19). */
import type { Address } from "../../../chain/address.js";
import { present } from "../../../chain/errors.js";
import { PRECOMPILES_BY_NAME } from "../../../chain/evm/precompiles.js";
import { blake2f } from "./blake2f.js";
import { bn254Add, bn254Mul, bn254Pairing } from "./bn254.js";
import { modexp } from "./modexp.js";
import { pointEvaluation } from "./point-evaluation.js";
import type { Precompile } from "./precompile.js";
import { ecrecover, identity, ripemd160Contract, sha256Contract } from "./simple.js";

const BY_NAME: Readonly<Record<string, Precompile>> = {
  ECREC: ecrecover,
  SHA256: sha256Contract,
  RIPEMD160: ripemd160Contract,
  ID: identity,
  MODEXP: modexp,
  BN254_ADD: bn254Add,
  BN254_MUL: bn254Mul,
  BN254_PAIRING: bn254Pairing,
  BLAKE2F: blake2f,
  KZG_POINT_EVALUATION: pointEvaluation,
};

/** All that `chain/evm/precompiles.ts` names. */
export const PRECOMPILE_TABLE: ReadonlyMap<Address, Precompile> = new Map(
  [...PRECOMPILES_BY_NAME].map(([name, address]) => [
    address,
    present(BY_NAME[name], `a precompile ${name}`),
  ]),
);
