/** Validators and blocks of the simulation: only their names matter. */
import { createHash } from "node:crypto";
import type { Address } from "../../chain/address.js";
import type { BlockId } from "../../chain/consensus/block-id.js";
import { validatorAddress } from "../../chain/consensus/validator-set.js";
import type { Hash32 } from "../../chain/hex.js";

let identities: readonly { readonly address: Address; readonly publicKey: Uint8Array }[] = [];

/** Address and key of a node's validator; made once for all runs. */
export function identityOf(index: number) {
  if (identities.length <= index) {
    identities = Array.from({ length: index + 1 }, (_, at) => {
      const known = identities[at];
      if (known !== undefined) return known;
      // Nobody signs here; the same keys make a seed run the same way again.
      const publicKey = createHash("sha256").update(`validator ${at}`).digest();
      return { address: validatorAddress(publicKey), publicKey };
    });
  }
  const identity = identities[index];
  if (identity === undefined) throw new RangeError("no such validator");
  return identity;
}

/** Address of a node's validator. */
export function simAddress(index: number): Address {
  return identityOf(index).address;
}

function hashOf(text: string): Hash32 {
  return `0x${Buffer.from(text).toString("hex").padEnd(64, "0").slice(0, 64)}` as Hash32;
}

/** A block that is nothing but its id. */
export function blockIdOf(
  height: number,
  round: number,
  proposer: number,
  variant: number,
): BlockId {
  const hash = hashOf(`${height}/${round}/${proposer}/${variant}`);
  return { hash, parts: { total: 1, hash } };
}
