/**
 * Keys of entries about what a chain showed. A chain that came back without blocks may show the same place
 * once more with something else in it: whoever books behind a loss of blocks gets another key.
 */
import type { Height } from "../../chain/hex.js";

/**
 * The end of the key of what is booked behind losses of blocks; empty before the first.
 * @param rewinds how often the chain came back without blocks, as the watcher counts it
 */
export function lossSuffix(rewinds: number): string {
  return rewinds === 0 ? "" : `-r${rewinds}`;
}

/** SQL: the same. @param rewinds an expression */
export const lossSuffixOf = (rewinds: string) =>
  `CASE ${rewinds} WHEN 0 THEN '' ELSE '-r' || ${rewinds} END`;

/** SQL: a table of every `suffix` that keys have by now; losses are numbered as they are counted. */
export const LOSS_SUFFIXES = `(SELECT '' AS suffix UNION ALL SELECT '-r' || r.id FROM chain_rewind r)`;

/**
 * Key of the entry of what arrived at a hot wallet. Whoever books it, as a sweep or as coins of unknown
 * origin, takes this one: under two keys one inflow would be booked twice.
 */
export function walletInflowKey(
  inflow: { readonly height: Height; readonly txIndex: number; readonly opIndex: number },
  rewinds: number,
): string {
  return `wallet-inflow:${inflow.height}-${inflow.txIndex}-${inflow.opIndex}${lossSuffix(rewinds)}`;
}
