/** Which state a call reads. */
import { type Hash32, type Height, toQuantity } from "../chain/hex.js";

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

/** Parameter of a call that reads state. */
export function encodeStateAt(at: StateAt): string | { readonly blockHash: Hash32 } {
  return typeof at === "number" || at === "latest" ? encodeAt(at) : { blockHash: at };
}
