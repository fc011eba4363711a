/** The precompiled contracts of the fork that the chain runs (D19), by their EIP-7910 names. */
import { type Address, parseAddress } from "../address.js";

/** Name to address. */
export const PRECOMPILES_BY_NAME: ReadonlyMap<string, Address> = new Map(
  [
    "ECREC",
    "SHA256",
    "RIPEMD160",
    "ID",
    "MODEXP",
    "BN254_ADD",
    "BN254_MUL",
    "BN254_PAIRING",
    "BLAKE2F",
    "KZG_POINT_EVALUATION",
  ].map((name, index) => [name, parseAddress(`0x${(index + 1).toString(16).padStart(40, "0")}`)]),
);

/** Their addresses. */
export const PRECOMPILE_ADDRESSES: ReadonlySet<Address> = new Set(PRECOMPILES_BY_NAME.values());
