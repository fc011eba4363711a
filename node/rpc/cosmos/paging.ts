/** Pages of lists as the SDK's `PageRequest` asks for them. */
import { HEIGHT_BYTES, heightBytes, readHeight } from "../../../chain/encoding/height-bytes.js";
import { bigintToBytes, bytesToBigint, type Height } from "../../../chain/hex.js";
import type { MessageReader, ProtoMessage } from "../../../chain/protobuf/values.js";
import type { ListPart } from "../../modules/reads/staking-reads.js";
import { invalidArgument, type QueryFault } from "./errors.js";
import type { QueryContext } from "./registry.js";

/** What `limit` 0 comes to. */
const DEFAULT_LIMIT = 100;

/**
 * Largest page (D16). The SDK has no bound, and wallets ask for a whole list as a page of thousands: they
 * get the first of it, and a key or a total that says that there is more. Who goes on by an offset counts
 * with the page that was asked for, and would leave out what is between.
 */
const MAX_LIMIT = 1_000n;

/**
 * Items of a page for which a client asked for so many; 0 where it named no number.
 * @throws INVALID_ARGUMENT for more than 1,000 from an offset on
 */
export function pageLimit(wanted: bigint, offset: bigint): number {
  if (wanted === 0n) return DEFAULT_LIMIT;
  if (wanted > MAX_LIMIT && offset > 0n) {
    throw invalidArgument(
      `pagination.limit is at most ${MAX_LIMIT} from an offset on, not ${wanted}`,
    );
  }
  return Number(wanted < MAX_LIMIT ? wanted : MAX_LIMIT);
}

/**
 * Most bytes of the items of one page, and of what is told of them: an answer is held whole, and of a few
 * bytes in the state there can be many in it.
 */
export const MAX_PAGE_BYTES = 16 * 1024 * 1024;

/** A page request that was checked. */
export interface PageRequest {
  readonly key: Uint8Array;
  readonly offset: number;
  readonly limit: number;
  readonly isTotalWanted: boolean;
  /** Whether it is for the total's own sake, not for want of a limit. */
  readonly isTotalAsked: boolean;
  readonly isReverse: boolean;
}

/** One page of a list. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** `PageResponse`. */
  readonly response: ProtoMessage;
}

/**
 * Reads the field `pagination` of a request.
 * @throws INVALID_ARGUMENT
 */
export function pageRequest(request: MessageReader): PageRequest {
  const page = request.submessage("pagination");
  const [key, offset, limit] = [page.bytes("key"), page.bigint("offset"), page.bigint("limit")];
  if (key.length > 0 && offset > 0n) {
    throw invalidArgument("invalid request, either offset or key is expected, got both");
  }
  return {
    key,
    offset: Number(offset < 2n ** 52n ? offset : 2n ** 52n),
    limit: pageLimit(limit, offset),
    // As the SDK: who names no limit is told the total.
    isTotalWanted: (page.boolean("count_total") || limit === 0n) && key.length === 0,
    isTotalAsked: page.boolean("count_total") && key.length === 0,
    isReverse: page.boolean("reverse"),
  };
}

/**
 * A page of a list that is at hand.
 * @param items in the order of their keys
 * @param keyOf distinct keys; a page goes on at the key that the one before gave, or at what comes
 *   behind it where that item has left the list
 */
export function pageOf<Item>(
  items: readonly Item[],
  request: PageRequest,
  keyOf: (item: Item) => Uint8Array,
): Page<Item> {
  const ordered = request.isReverse ? items.toReversed() : items;
  const forward = request.isReverse ? -1 : 1;
  const isReached = (item: Item) => Buffer.compare(keyOf(item), request.key) * forward >= 0;
  const found = request.key.length > 0 ? ordered.findIndex(isReached) : request.offset;
  const start = found < 0 ? ordered.length : found;
  const next = ordered[start + request.limit];
  return {
    items: ordered.slice(start, start + request.limit),
    response: {
      ...(next !== undefined && { next_key: keyOf(next) }),
      ...(request.isTotalWanted && { total: BigInt(items.length) }),
    },
  };
}

/** Keys of items that have no other than their number, in the order of the numbers. */
export function orderKey(number: bigint): Uint8Array {
  const key = Buffer.alloc(8);
  key.writeBigUInt64BE(number);
  return key;
}

/** A page of a list that is read by parts. */
export interface PartRequest extends PageRequest {
  /** The height whose list it is a part of. */
  readonly height: Height;
  readonly part: ListPart;
}

/**
 * Which part of a list a page is, for lists that are read by parts and keyed by words. Where a member
 * leaves, another one takes its place: all pages are of the height of the first one, which their keys
 * name, or some members would be on none of them. The height that an answer is of is told.
 * @throws INVALID_ARGUMENT
 */
export function partRequest(
  page: PageRequest,
  { height: asked, tellHeight }: Pick<QueryContext, "height" | "tellHeight">,
): PartRequest {
  const { key, offset, limit, isReverse } = page;
  const rest = { offset, limit, isReverse };
  if (key.length === 0) return { ...page, height: asked, part: { from: undefined, ...rest } };
  const height = key.length > HEIGHT_BYTES ? readHeight(Buffer.from(key), 0) : asked + 1;
  if (height > asked || key.length > HEIGHT_BYTES + WORD_BYTES) throw noSuchKey();
  tellHeight(height);
  return { ...page, height, part: { from: bytesToBigint(key.subarray(HEIGHT_BYTES)), ...rest } };
}

const WORD_BYTES = 32;

/** The refusal of a key that no page has given. */
export function noSuchKey(): QueryFault {
  return invalidArgument("invalid pagination key");
}

/**
 * The answer of such a page.
 * @param part undefined where its key is not in the list
 * @throws INVALID_ARGUMENT
 */
export function partPage<Item>(
  part:
    | {
        readonly items: readonly Item[];
        readonly next: bigint | undefined;
        readonly size: number;
      }
    | undefined,
  { isTotalWanted, height }: PartRequest,
): Page<Item> {
  if (part === undefined) throw noSuchKey();
  const { items, next, size } = part;
  return {
    items,
    response: {
      ...(next !== undefined && { next_key: memberKey(height, next) }),
      ...(isTotalWanted && { total: BigInt(size) }),
    },
  };
}

/** The key of a page that begins with a member of a list as of a height. */
export function memberKey(height: Height, member: bigint): Uint8Array {
  return Buffer.concat([heightBytes(height), bigintToBytes(member)]);
}
