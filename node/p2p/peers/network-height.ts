/** How far the network is, by what connected peers say of themselves. */
import type { Height } from "../../../chain/hex.js";

/**
 * The height that half of the peers who tell one have decided: a peer may say anything of itself, and one
 * that lags behind, or lies, is not the network. Nothing follows from it but what persons are told.
 * @param deciding the height that each connected peer says it is deciding; 0 of one that has said none
 * @returns 0 where none has said one
 */
export function networkHeight(deciding: readonly Height[]): Height {
  const told = deciding.filter((height) => height > 0).toSorted((one, other) => other - one);
  // Of three the second one, of two or one the first: at least half have come to it.
  const reached = told[Math.ceil(told.length / 2) - 1] ?? 1;
  return reached - 1;
}
