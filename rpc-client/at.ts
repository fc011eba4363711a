/** Which state a call reads. */
import { type Height, toQuantity } from "../chain/hex.js";

/** A state to read: that after the block of a height, or the newest. */
export type At = Height | "latest";

/** Block parameter of a call as the node takes it. */
export function encodeAt(at: At | "pending"): string {
  return typeof at === "number" ? toQuantity(at) : at;
}
