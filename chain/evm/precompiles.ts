/**
 * Precompiled contracts: those of the fork that the chain runs (D19) by their EIP-7910 names, and
 * the chain's own.
 */
import { type Address, parseAddress } from "../address.js";

/** Name to address, those of the fork. */
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
  ].map((name, index) => [name, addressOf(index + 1)]),
);

/** Name to address, those of the chain itself (`node/execution/native`). */
export const NATIVE_CONTRACTS: ReadonlyMap<string, Address> = new Map(
  Object.entries({
    P256VERIFY: 0x100,
    BECH32: 0x400,
    STAKING: 0x800,
    DISTRIBUTION: 0x801,
    BANK: 0x804,
    GOV: 0x805,
    SLASHING: 0x806,
  }).map(([name, number]) => [name, addressOf(number)]),
);

/** Kept for contracts of later versions; a call of one is refused, and moves nothing. */
export const RESERVED_ADDRESSES: ReadonlySet<Address> = new Set(
  [0x802, 0x803, 0x807].map(addressOf),
);

/** Addresses of all of them. */
export const PRECOMPILE_ADDRESSES: ReadonlySet<Address> = new Set([
  ...PRECOMPILES_BY_NAME.values(),
  ...NATIVE_CONTRACTS.values(),
  ...RESERVED_ADDRESSES,
]);

function addressOf(number: number): Address {
  return parseAddress(`0x${number.toString(16).padStart(40, "0")}`);
}
