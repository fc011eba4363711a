/** Pages of all accounts that are there, as of the newest height: history has no list of them. */
import { type Address, addressToBytes, bytesToAddress } from "../../../chain/address.js";
import { breathe } from "../../../runtime/process/main-thread.js";
import { invalidArgument, QueryFault } from "./errors.js";
import type { Page, PageRequest } from "./paging.js";
import type { QueryContext } from "./registry.js";
import type { QuerySources } from "./sources.js";

/** Accounts that are passed over or counted for one answer. */
const MAX_LOOKED_AT = 200_000;

/** Blocks that may have come since a request named the newest height. */
const MAX_NEWER_BLOCKS = 2;

/** Accounts between two pauses. */
const SLICE = 256;

/**
 * A page of accounts, by address. Where those that are wanted lie far apart it may have fewer than were asked
 * for, and goes on all the same; a total that takes too long is left out where only the lack of a limit
 * has asked for it.
 * @param isWanted whether an account is one of the list
 * @throws FAILED_PRECONDITION for an older height, RESOURCE_EXHAUSTED for a total or an offset that takes
 *   too long
 */
export async function accountPage(
  sources: Pick<QuerySources, "chain">,
  page: PageRequest,
  { height, signal }: QueryContext,
  isWanted: (address: Address) => Promise<boolean>,
  mostLookedAt = MAX_LOOKED_AT,
): Promise<Page<Address>> {
  const { view } = sources.chain;
  // A block may come between the request and here.
  if (height + MAX_NEWER_BLOCKS < view.head().height) {
    const text = "accounts are listed as of the newest height only: leave the height out";
    throw new QueryFault("FAILED_PRECONDITION", text);
  }
  const { key, offset, limit, isReverse, isTotalWanted } = page;
  const from = key.length === 0 ? undefined : keyOf(key);
  const items: Address[] = [];
  let next: Address | undefined;
  let found = 0;
  let looked = 0;
  let isCut = false;
  for await (const address of view.addresses(from, { isReverse })) {
    if (looked++ % SLICE === 0) await breathe(signal);
    if (looked > mostLookedAt) {
      if (page.isTotalAsked || found < offset) {
        const text = `more than ${mostLookedAt} accounts: go on by pagination.key and leave count_total`;
        throw new QueryFault("RESOURCE_EXHAUSTED", text);
      }
      isCut = true;
      next ??= address;
      break;
    }
    if (!(await isWanted(address))) continue;
    const place = found++ - offset;
    if (place >= 0 && place < limit) items.push(address);
    else if (place === limit) next = address;
    if (next !== undefined && !isTotalWanted) break;
  }
  return {
    items,
    response: {
      ...(next !== undefined && { next_key: addressToBytes(next) }),
      ...(isTotalWanted && !isCut && { total: BigInt(found) }),
    },
  };
}

function keyOf(key: Uint8Array): Address {
  const addressBytes = 20;
  if (key.length !== addressBytes) throw invalidArgument("invalid pagination key");
  return bytesToAddress(key);
}
