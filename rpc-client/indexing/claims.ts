/** Claims on stake and rewards as a node tells them: values after a block, and what blocks changed. */
import type { Address } from "../../chain/address.js";
import {
  CLAIM_KINDS,
  CLAIM_REASONS,
  type ClaimKind,
  type PlacedClaimMove,
} from "../../chain/staking/claims.js";
import type { Height } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import {
  readAddress,
  readCount,
  readDecimal,
  readList,
  readObject,
  readOptional,
  readQuantity,
  readSafeQuantity,
  readString,
  readWord,
} from "../answer-fields.js";
import { encodeStateAt, type StateAt } from "../at.js";
import { badAnswer, type RpcError } from "../errors.js";
import type { JsonRpcClient, RpcOptions, RpcOutcome } from "../json-rpc.js";

/** A claim after a block; without a validator all delegations of an account are meant. */
export interface ClaimQuery {
  readonly kind: Exclude<ClaimKind, "own">;
  readonly account: Address;
  readonly validator: Address | undefined;
  readonly at: StateAt;
}

/** A delegation after a block. */
export interface NodeDelegation {
  readonly validator: Address;
  /** 10^-18. */
  readonly shares: bigint;
  /** What they are worth, rounded down, and what they have earned and not withdrawn. */
  readonly amountAtoken: Atoken;
  readonly rewardsAtoken: Atoken;
}

/** Stake that is leaving. */
export interface NodeUnbonding {
  readonly validator: Address;
  /** Height at which it began. */
  readonly height: Height;
  /** Unix milliseconds. */
  readonly endMs: number;
  /** As it was last written, and what is left of it after the slashes that it has not borne yet. */
  readonly amountAtoken: Atoken;
  readonly leftAtoken: Atoken;
}

/** A claim with what explains it. */
export interface NodeClaim {
  /** Atoken; shares of 10^-18 of one delegation. */
  readonly amountUnits: bigint;
  readonly delegations: readonly NodeDelegation[];
  readonly entries: readonly NodeUnbonding[];
  /** Of commission: what could be withdrawn, with what is not booked yet. */
  readonly withdrawableAtoken: Atoken | undefined;
}

/** What one query came to; undefined on a chain without stake. */
export type ClaimAnswer =
  | { readonly ok: true; readonly claim: NodeClaim | undefined }
  | { readonly ok: false; readonly error: RpcError };

/** Reads of claims. */
export interface ClaimCalls {
  /** Claims in the order of the queries. */
  claims(queries: readonly ClaimQuery[], options: RpcOptions): Promise<ClaimAnswer[]>;
}

/** The calls over a JSON-RPC client. */
export function claimCalls(rpc: JsonRpcClient): ClaimCalls {
  return {
    async claims(queries, options) {
      const calls = queries.map(({ kind, account, validator, at }) => ({
        method: "causeway_getClaim",
        params: [kind, account, validator ?? null, encodeStateAt(at)],
      }));
      const outcomes = await rpc.batch(calls, options);
      return queries.map((_query, position) => parseAnswer(outcomes[position]));
    },
  };
}

function parseAnswer(outcome: RpcOutcome | undefined): ClaimAnswer {
  if (outcome === undefined) throw badAnswer("a claim is not answered");
  if (!outcome.ok) return outcome;
  return { ok: true, claim: readOptional(outcome.result, "claim", parseClaim) };
}

function parseClaim(value: unknown): NodeClaim {
  const claim = readObject(value, "claim");
  return {
    amountUnits: readQuantity(claim["amount"], "amount"),
    delegations: (readOptional(claim["delegations"], "delegations", readList) ?? []).map(
      parseDelegation,
    ),
    entries: (readOptional(claim["entries"], "entries", readList) ?? []).map(parseEntry),
    withdrawableAtoken: readOptional(claim["withdrawable"], "withdrawable", readQuantity),
  };
}

function parseDelegation(value: unknown): NodeDelegation {
  const one = readObject(value, "delegation");
  return {
    validator: readAddress(one["validator"], "validator"),
    shares: readQuantity(one["shares"], "shares"),
    amountAtoken: readQuantity(one["amount"], "amount"),
    rewardsAtoken: readQuantity(one["rewards"], "rewards"),
  };
}

function parseEntry(value: unknown): NodeUnbonding {
  const entry = readObject(value, "entry");
  return {
    validator: readAddress(entry["validator"], "validator"),
    height: readSafeQuantity(entry["height"], "height"),
    endMs: readCount(entry["endMs"], "endMs"),
    amountAtoken: readQuantity(entry["amount"], "amount"),
    leftAtoken: readQuantity(entry["left"], "left"),
  };
}

/**
 * Untrusted entry of `claims` in `causeway_getBlockJournal`. Throws BAD_ANSWER.
 * @param transactionCount transactions of the block, of both kinds
 */
export function parseClaimMove(value: unknown, transactionCount: number): PlacedClaimMove {
  const move = readObject(value, "claim");
  const transactionIndex = readOptional(move["transactionIndex"], "transactionIndex", readCount);
  if (transactionIndex !== undefined && transactionIndex >= transactionCount) {
    throw badAnswer("a claim names a transaction that the block has not");
  }
  const kind = readWord(CLAIM_KINDS, move["kind"], "kind");
  const validator = readOptional(move["validator"], "validator", readAddress);
  const isOfValidator = kind === "staked" || kind === "stake";
  if (isOfValidator !== (validator !== undefined)) throw badAnswer("a claim's validator is wrong");
  return {
    transactionIndex,
    reason: readWord(CLAIM_REASONS, move["reason"], "reason"),
    claim: { kind, account: readAddress(move["account"], "account"), validator },
    delta: readDecimal(move["delta"], "delta"),
    relatedIndex: readOptional(move["relatedIndex"], "relatedIndex", readCount),
    details: readOptional(move["details"], "details", parseDetails),
  };
}

/** Texts of the chain itself: numbers, names of options, JSON of weighted votes. */
function parseDetails(value: unknown): Record<string, string> {
  const details = readObject(value, "details");
  const entries = Object.entries(details).map(
    ([key, text]) => [key, readString(text, key)] as const,
  );
  return Object.fromEntries(entries);
}
