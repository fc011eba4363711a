/**
 * Pages of what leaves a validator, an account and its way at a time: the state has single entries of all
 * kinds, in no order of accounts.
 */
import type { Address } from "../../../chain/address.js";
import { breathe } from "../../../runtime/process/main-thread.js";
import { type LeavingGroup, leavingFrom } from "../../modules/reads/staking-reads.js";
import { QueryFault } from "./errors.js";
import { memberKey, noSuchKey, type Page, type PartRequest } from "./paging.js";
import type { ModuleSources } from "./sources.js";

/** Entries between two pauses: beside each, all that its account has under way, a hundred at most. */
const SLICE = 8;

/** Entries that are passed over or counted for one answer: some seconds of work, in slices. */
const MAX_LOOKED_AT = 10_000;

/** What is wanted of what leaves. */
export interface LeavingQuery {
  readonly operator: Address;
  readonly kind: "unbonding" | "redelegation";
  /** Where the stake goes to; undefined: to any validator. */
  readonly destination: Address | undefined;
}

/**
 * A page of groups. Where their entries lie far apart it may have fewer than were asked for, and goes on all
 * the same; a total that takes too long is left out where only the lack of a limit has asked for it.
 * @throws INVALID_ARGUMENT, RESOURCE_EXHAUSTED
 */
export async function leavingPage(
  { modules }: Pick<ModuleSources, "modules">,
  { operator, kind, destination }: LeavingQuery,
  page: PartRequest,
  signal: AbortSignal,
  mostLookedAt = MAX_LOOKED_AT,
): Promise<Page<LeavingGroup>> {
  const { height, isTotalWanted } = page;
  const { offset, limit, isReverse } = page.part;
  const isWanted = ([{ destination: way }]: LeavingGroup) =>
    destination === undefined || destination === way;
  const items: LeavingGroup[] = [];
  let from = page.part.from;
  let next: bigint | undefined;
  let found = 0;
  for (let looked = 0; looked < mostLookedAt; looked += SLICE) {
    const part = { from, offset: 0, limit: SLICE, isReverse };
    const slice = await modules
      .at(height)
      .read((state) => leavingFrom(state, operator, kind, part), signal);
    if (slice === undefined) throw noSuchKey();
    for (const group of slice.items.filter(isWanted)) {
      const place = found++ - offset;
      if (place >= 0 && place < limit) items.push(group);
      else if (place === limit) next = group[0].id;
    }
    from = slice.next;
    if (from === undefined || (next !== undefined && !isTotalWanted)) break;
    await breathe(signal);
  }
  const isCut = from !== undefined && (next === undefined || isTotalWanted);
  if (isCut && (page.isTotalAsked || found < offset)) {
    const text = `more than ${mostLookedAt} entries: go on by pagination.key and leave count_total`;
    throw new QueryFault("RESOURCE_EXHAUSTED", text);
  }
  const goesOn = next ?? from;
  return {
    items,
    response: {
      ...(goesOn !== undefined && { next_key: memberKey(height, goesOn) }),
      ...(isTotalWanted && !isCut && { total: BigInt(found) }),
    },
  };
}
