/** Parts of blocks of the Data API: only what concerns a few addresses is ever parsed. */
import type { Address } from "../chain/address.js";
import type { DataBlock } from "../rpc-client/data-api/data-block.js";
import type { AddressBook } from "./address-book.js";
import type { MatchBlock } from "./deposit-match.js";

/**
 * What of the blocks concerns us, up to the first that cannot be read; the rest of each block is
 * not even parsed.
 */
export async function ownParts(
  run: readonly DataBlock[],
  book: Pick<AddressBook, "has" | "prefixes">,
  { signal }: { readonly signal: AbortSignal },
): Promise<{ readonly own: readonly MatchBlock[]; readonly fault: unknown }> {
  const isOurs = (address: Address) => book.has(address);
  const wanted = { among: book.prefixes, signal };
  // All at once, and with one state of the book.
  const read = await Promise.allSettled(run.map((block) => block.transactions(isOurs, wanted)));
  const own: MatchBlock[] = [];
  for (const [index, { height, hash }] of run.entries()) {
    const outcome = read[index];
    if (outcome?.status !== "fulfilled") {
      // The blocks before it are good and are booked; the fault comes after them.
      return { own, fault: outcome?.reason };
    }
    own.push({ height, hash, transactions: outcome.value });
  }
  return { own, fault: undefined };
}

/**
 * Whether blocks name an address. Their addresses are collected at the first question, which comes
 * only if somebody registered meanwhile.
 */
export function touchTest(run: readonly DataBlock[]): (address: Address) => boolean {
  let touched: readonly ReadonlySet<Address>[] | undefined;
  return (address) => {
    touched ??= run.map((block) => block.addresses());
    return touched.some((addresses) => addresses.has(address));
  };
}
