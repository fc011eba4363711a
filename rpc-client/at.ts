/** Which state a call reads, and whether a node has the block that it has to be of. */
import { type Hash32, type Height, toQuantity } from "../chain/hex.js";
import { readHash, readObject, readOptional } from "./answer-fields.js";
import { badAnswer, lacksBlock } from "./errors.js";

/** A state to read: that after the block of a height, or the newest. */
export type At = Height | "latest";

/**
 * The same, or the state after one very block: a node that does not have it refuses, where it would
 * answer for a height with the state of whatever block it has there. Source: EIP-1898.
 */
export type StateAt = At | Hash32;

/** Block parameter of a call as the node takes it. */
export function encodeAt(at: At | "pending"): string {
  return typeof at === "number" ? toQuantity(at) : at;
}

/** Call for a header by height, for batches that mix calls. */
export function headerCall(at: At): {
  readonly method: string;
  readonly params: readonly [string, boolean];
} {
  return { method: "eth_getBlockByNumber", params: [encodeAt(at), false] };
}

/** Parameter of a call that reads state. */
export function encodeStateAt(at: StateAt): string | { readonly blockHash: Hash32 } {
  return typeof at === "number" || at === "latest" ? encodeAt(at) : { blockHash: at };
}

/** A block that is known to be the chain's. */
export interface KnownBlock {
  readonly height: Height;
  /** Undefined where any block of that height will do. */
  readonly hash: Hash32 | undefined;
}

/**
 * Holds a header against the block that a node has to have, of the same exchange as what else it told: behind
 * a balancer the next exchange may be another node's.
 * @param header what it answered to `headerCall` of that height
 * @throws BAD_ANSWER where it does not have the block, or another one
 */
export function assertHasBlock(header: unknown, { height, hash }: KnownBlock): void {
  const block = readOptional(header, "block", readObject);
  if (block === undefined) throw lacksBlock(height);
  if (hash !== undefined && readHash(block["hash"], "hash") !== hash) {
    throw badAnswer(`another block ${height}`);
  }
}
