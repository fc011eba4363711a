/** Pages of lists as the SDK's `PageRequest` asks for them. */
import type { MessageReader, ProtoMessage } from "../../../chain/protobuf/values.js";
import { invalidArgument } from "./errors.js";

/** What `limit` 0 comes to. */
const DEFAULT_LIMIT = 100;

/** Largest page (D16): more is a clear error, never a silent cut. */
export const MAX_LIMIT = 1_000;

/** A page request that was checked. */
export interface PageRequest {
  readonly key: Uint8Array;
  readonly offset: number;
  readonly limit: number;
  readonly isTotalWanted: boolean;
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
  const wanted = limit === 0n ? BigInt(DEFAULT_LIMIT) : limit;
  if (wanted > BigInt(MAX_LIMIT)) {
    throw invalidArgument(`pagination.limit is at most ${MAX_LIMIT}, not ${limit}`);
  }
  return {
    key,
    offset: Number(offset < 2n ** 52n ? offset : 2n ** 52n),
    limit: Number(wanted),
    // As the SDK: who names no limit is told the total.
    isTotalWanted: (page.boolean("count_total") || limit === 0n) && key.length === 0,
    isReverse: page.boolean("reverse"),
  };
}

/**
 * A page of a list that is at hand.
 * @param items in the order of their keys
 * @param keyOf distinct keys; a page goes on at the key that the one before gave
 * @throws INVALID_ARGUMENT for a key that is not in the list
 */
export function pageOf<Item>(
  items: readonly Item[],
  request: PageRequest,
  keyOf: (item: Item) => Uint8Array,
): Page<Item> {
  const ordered = request.isReverse ? items.toReversed() : items;
  const isAt = (item: Item) => Buffer.compare(keyOf(item), request.key) === 0;
  const start = request.key.length > 0 ? ordered.findIndex(isAt) : request.offset;
  if (start < 0) throw invalidArgument("invalid pagination key");
  const next = ordered[start + request.limit];
  return {
    items: ordered.slice(start, start + request.limit),
    response: {
      ...(next !== undefined && { next_key: keyOf(next) }),
      ...(request.isTotalWanted && { total: BigInt(items.length) }),
    },
  };
}
