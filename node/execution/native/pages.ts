/** Parts of lists, as `PageRequest` and `PageResponse` of the interfaces have them. */
import type { AbiValue } from "../../../chain/evm/abi/abi-values.js";
import { bytesToBigint } from "../../../chain/hex.js";
import type { Arguments } from "./arguments.js";
import { refusal } from "./abi-native.js";

/** Items of a page whose request names no number. */
const DEFAULT_LIMIT = 100;
const KEY_BYTES = 8;

/** A page's items, and what follows them. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly response: AbiValue;
}

/** The part of a list that is asked for; a key is the place of the next page's first item. */
export function pageOf<Item>(all: readonly Item[], request: Arguments): Page<Item> {
  const start = startOf(request);
  const limit = Number(request.integer("limit")) || DEFAULT_LIMIT;
  const ordered = request.flag("reverse") ? all.toReversed() : all;
  const end = Math.min(start + limit, ordered.length);
  return {
    items: ordered.slice(start, end),
    response: {
      nextKey: start < end && end < ordered.length ? keyOf(end) : new Uint8Array(0),
      total: request.flag("countTotal") ? BigInt(all.length) : 0n,
    },
  };
}

/** One zero byte is no key: some clients send it for nothing. */
function startOf(request: Arguments): number {
  const key = request.bytes("key");
  if (key.length === 0 || (key.length === 1 && key[0] === 0)) {
    return Number(request.integer("offset"));
  }
  if (key.length !== KEY_BYTES) throw refusal("invalid page key");
  return Number(bytesToBigint(key));
}

function keyOf(place: number): Uint8Array {
  const key = Buffer.alloc(KEY_BYTES);
  key.writeBigUInt64BE(BigInt(place));
  return key;
}
