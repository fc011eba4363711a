/** The node's own method for claims: what is staked, leaving, or owed out of a pool, after a block. */
import { CLAIM_KINDS } from "../../../../chain/staking/claims.js";
import { toQuantity } from "../../../../chain/hex.js";
import type { ClaimQuery, ClaimRead, ClaimReads } from "../../../modules/reads/block-claims.js";
import type { EntryRead } from "../../../modules/reads/staking-reads.js";
import type { StakedRead } from "../../../modules/reads/claims.js";
import type { ChainView } from "../../../view/chain-view.js";
import { invalidParams } from "../errors.js";
import { type JsonValue, type MethodEntries, method } from "../method.js";
import { ParamError, parseAddressParam, parseBlockRef } from "../params.js";
import { stateHeight } from "../reads.js";

/**
 * `causeway_getClaim(kind, account, validator | null, block)`; null where the chain has no stake.
 * @param claims undefined on such a chain
 */
export function claimMethods(view: ChainView, claims: ClaimReads | undefined): MethodEntries {
  return [
    method("causeway_getClaim", 4, async (params, { signal }) => {
      const query: ClaimQuery = {
        kind: params.required(0, parseKind),
        account: params.required(1, parseAddressParam),
        validator: params.optional(2, parseAddressParam),
      };
      const height = stateHeight(view, params.required(3, parseBlockRef));
      if (claims === undefined) return null;
      if (!claims.isPossible(query)) throw invalidParams("the account holds no such pool");
      return claimJson(query, await claims.read(query, height, signal));
    }),
  ];
}

function parseKind(value: unknown): ClaimQuery["kind"] {
  const kind = CLAIM_KINDS.find((known) => known === value);
  if (kind === undefined || kind === "own") throw new ParamError("no such kind of claim");
  return kind;
}

function claimJson({ kind }: ClaimQuery, read: ClaimRead): JsonValue {
  const amount = toQuantity(read.amountUnits);
  switch (kind) {
    case "staked":
      return { amount, delegations: read.staked.map(stakedJson) };
    case "unbonding":
      return { amount, entries: read.leaving.map(entryJson) };
    case "commission":
      return { amount, withdrawable: toQuantity(read.withdrawableAtoken) };
    default:
      return { amount };
  }
}

function stakedJson({ operator, shares, amountAtoken, rewardsAtoken }: StakedRead): JsonValue {
  return {
    validator: operator,
    shares: toQuantity(shares),
    amount: toQuantity(amountAtoken),
    rewards: toQuantity(rewardsAtoken),
  };
}

function entryJson(entry: EntryRead): JsonValue {
  return {
    validator: entry.source,
    height: toQuantity(entry.height),
    endMs: entry.endMs,
    amount: toQuantity(entry.amountAtoken),
    left: toQuantity(entry.leftAtoken),
  };
}
