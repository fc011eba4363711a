/** Parts of blocks of the Data API: only what concerns a few addresses is ever parsed. */
import type { Address } from "../chain/address.js";
import type { DataBlock } from "../rpc-client/data-api-client.js";
import type { AddressBook } from "./address-book.js";
import type { MatchBlock } from "./deposit-match.js";

/**
 * What of the blocks concerns us, up to the first that cannot be read; the rest of each block is
 * not even parsed.
 */
export function ownParts(
  run: readonly DataBlock[],
  book: AddressBook,
): { readonly own: readonly MatchBlock[]; readonly fault: unknown } {
  const own: MatchBlock[] = [];
  const isOurs = (address: Address) => book.has(address);
  for (const block of run) {
    const { height, hash } = block;
    try {
      own.push({ height, hash, transactions: block.transactions(isOurs, book.prefixes) });
    } catch (fault) {
      // The blocks before it are good and are booked; the fault comes after them.
      return { own, fault };
    }
  }
  return { own, fault: undefined };
}

/**
 * Whether blocks name an address. Their addresses are collected at the first question, which comes
 * only if somebody registered meanwhile.
 */
export function touchTest(run: readonly DataBlock[]): (address: Address) => boolean {
  let touched: Set<Address> | undefined;
  return (address) => {
    touched ??= addressesOf(run);
    return touched.has(address);
  };
}

function addressesOf(run: readonly DataBlock[]): Set<Address> {
  const addresses = new Set<Address>();
  const collect = (address: Address) => {
    addresses.add(address);
    return false;
  };
  for (const block of run) {
    // Asking collects; transactions that come all the same may name accounts in unusual ways.
    for (const { operations } of block.transactions(collect)) {
      for (const { address } of operations) addresses.add(address);
    }
  }
  return addresses;
}
