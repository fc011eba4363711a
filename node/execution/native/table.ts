/** Every precompiled contract by address: those of the fork (D19) and those of the chain itself. */
import type { Address } from "../../../chain/address.js";
import { present } from "../../../chain/errors.js";
import { NATIVE_CONTRACTS, RESERVED_ADDRESSES } from "../../../chain/evm/precompiles.js";
import type { Precompile } from "../precompiles/precompile.js";
import { PRECOMPILE_TABLE } from "../precompiles/table.js";
import { BANK } from "./bank.js";
import { BECH32 } from "./bech32.js";
import { DISTRIBUTION } from "./distribution.js";
import { GOV } from "./gov.js";
import type { NativeContract } from "./native.js";
import { P256 } from "./p256.js";
import { RESERVED } from "./reserved.js";
import { SLASHING } from "./slashing.js";
import { STAKING } from "./staking.js";

/** Either kind. */
export type AnyPrecompile = Precompile | NativeContract;

const BY_NAME: Readonly<Record<string, NativeContract>> = {
  P256VERIFY: P256,
  BECH32,
  STAKING,
  DISTRIBUTION,
  BANK,
  GOV,
  SLASHING,
};

/** All that `chain/evm/precompiles.ts` names. */
export const ALL_PRECOMPILES: ReadonlyMap<Address, AnyPrecompile> = new Map<Address, AnyPrecompile>(
  [
    ...PRECOMPILE_TABLE,
    ...[...NATIVE_CONTRACTS].map(
      ([name, address]) => [address, present(BY_NAME[name], `a contract ${name}`)] as const,
    ),
    ...[...RESERVED_ADDRESSES].map((address) => [address, RESERVED] as const),
  ],
);

/** True for a contract of the chain itself. */
export function isNative(precompile: AnyPrecompile): precompile is NativeContract {
  return "answer" in precompile;
}
