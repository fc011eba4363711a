/**
 * Log filters: what a client may ask for, and which logs and blooms match it. A range over the
 * limit is an error, never a silent cut (D16); the search itself is in `log-search.ts`.
 */
import { type Address, addressToBytes } from "../../../chain/address.js";
import { type Hash32, type Height, hexToBytes } from "../../../chain/hex.js";
import {
  type BloomBits,
  bloomBits,
  type Log,
  MAX_TOPICS,
  mayHaveLog,
} from "../../../chain/receipt.js";
import type { ChainView } from "../../view/chain-view.js";
import { invalidParams, RpcFault } from "./errors.js";
import {
  type BlockRef,
  field,
  optionalField,
  ParamError,
  parseAddressParam,
  parseBlockNumberOrTag,
  parseHashParam,
  parseList,
  parseObject,
} from "./params.js";
import { assertBlocks } from "./reads.js";

/** Of a filter: as many as graph-node sends, twice go-ethereum's. */
const ADDRESS_BOUND = { most: 2_000, what: "addresses" };

/** Of one topic position, as in go-ethereum. */
const TOPIC_BOUND = { most: 1_000, what: "topics" };

/** Which logs are wanted; undefined at a position means any. */
export interface LogCriteria {
  readonly addresses: ReadonlySet<Address> | undefined;
  readonly topics: readonly (ReadonlySet<Hash32> | undefined)[];
  /** Text that two criteria share exactly when they want the same logs. */
  readonly key: string;
  /** For each constrained place the bloom positions of its alternatives. */
  readonly bloomPlaces: readonly (readonly BloomBits[])[];
}

/** A parsed filter object. */
export interface LogFilter {
  readonly criteria: LogCriteria;
  readonly blockHash: Hash32 | undefined;
  readonly from: BlockRef | undefined;
  readonly to: BlockRef | undefined;
}

/** One value or a list of alternatives; an empty list matches everything, as in go-ethereum. */
function parseAlternatives<T>(
  value: unknown,
  parse: (item: unknown) => T,
  { most, what }: { readonly most: number; readonly what: string },
): ReadonlySet<T> | undefined {
  if (!Array.isArray(value)) return new Set([parse(value)]);
  if (value.length > most) throw new ParamError(`exceed max ${what}`);
  return value.length === 0 ? undefined : new Set(value.map((item: unknown) => parse(item)));
}

function parseTopics(value: unknown): (ReadonlySet<Hash32> | undefined)[] {
  if (Array.isArray(value) && value.length > MAX_TOPICS) throw new ParamError("exceed max topics");
  return [
    ...parseList(value, MAX_TOPICS, (topic) => {
      if (topic === null) return undefined;
      // A null among alternatives matches anything, so the whole position does.
      if (Array.isArray(topic) && topic.includes(null)) return undefined;
      return parseAlternatives(topic, parseHashParam, TOPIC_BOUND);
    }),
  ];
}

/** Untrusted filter object of eth_getLogs, eth_newFilter and eth_subscribe. */
export function parseLogFilter(value: unknown): LogFilter {
  const fields = parseObject(value);
  const blockHash = optionalField(fields, "blockHash", parseHashParam);
  const from = optionalField(fields, "fromBlock", parseBlockNumberOrTag);
  const to = optionalField(fields, "toBlock", parseBlockNumberOrTag);
  if (blockHash !== undefined && (from !== undefined || to !== undefined)) {
    throw invalidParams("can't specify fromBlock/toBlock with blockHash");
  }
  if (from?.kind === "pending" || to?.kind === "pending") {
    throw invalidParams("pending logs are not supported");
  }
  const address = field(fields, "address");
  const addresses =
    address === undefined
      ? undefined
      : parseAlternatives(address, parseAddressParam, ADDRESS_BOUND);
  const topics = optionalField(fields, "topics", parseTopics) ?? [];
  const bloomPlaces = [
    ...(addresses === undefined ? [] : [[...addresses].map(addressToBytes)]),
    ...topics.flatMap((set) => (set === undefined ? [] : [[...set].map(hexToBytes)])),
  ].map((values) => values.map(bloomBits));
  const key = JSON.stringify([addresses, ...topics].map((set) => set && [...set].toSorted()));
  return { criteria: { addresses, topics, key, bloomPlaces }, blockHash, from, to };
}

/** False only when no log of a block with this bloom can match. */
export function mayContain(criteria: LogCriteria, bloom: Uint8Array): boolean {
  return mayHaveLog(bloom, criteria.bloomPlaces);
}

/** True when the log fits address and topics; a log with fewer topics than asked does not. */
export function matches(criteria: LogCriteria, log: Log): boolean {
  if (criteria.addresses !== undefined && !criteria.addresses.has(log.address)) return false;
  if (criteria.topics.length > log.topics.length) return false;
  return criteria.topics.every((wanted, position) => {
    const topic = log.topics[position];
    return wanted === undefined || (topic !== undefined && wanted.has(topic));
  });
}

/** Both ends included. */
export interface HeightRange {
  readonly from: Height;
  readonly to: Height;
}

/**
 * Last height whose logs a filter or a subscription is told of; without a `toBlock` there is none.
 * @throws INVALID_PARAMS where no block can be between both ends
 */
export function lastHeight(view: ChainView, { from, to }: LogFilter): Height {
  if (to?.kind !== "height") return Number.MAX_SAFE_INTEGER;
  const first = from?.kind === "height" ? from.height : view.head().height;
  if (to.height < first) throw invalidParams("invalid block range params");
  return to.height;
}

/**
 * Heights that a filter covers now. Missing ends mean the head.
 * @throws INVALID_PARAMS for ranges that are reversed, too long or beyond the head;
 *   SERVER_ERROR for an unknown block hash; HISTORY_PRUNED
 */
export function rangeOf(view: ChainView, filter: LogFilter, maxBlocks: number): HeightRange {
  if (filter.blockHash !== undefined) {
    const height = view.heightOfHash(filter.blockHash);
    if (height === undefined) throw new RpcFault("SERVER_ERROR", "unknown block");
    return { from: height, to: height };
  }
  const head = view.head().height;
  const height = (ref: BlockRef | undefined) => (ref?.kind === "height" ? ref.height : head);
  const from = height(filter.from);
  const to = height(filter.to);
  // A range that may come is waited for; one whose own ends are reversed never comes.
  const isAhead = to > head || (from > head && filter.to?.kind !== "height");
  if (isAhead) throw invalidParams("block range extends beyond current head block");
  if (from > to) throw invalidParams("invalid block range params");
  if (to - from + 1 > maxBlocks) {
    throw invalidParams(`exceed maximum block range: ${maxBlocks}`);
  }
  assertBlocks(view, { from, to });
  return { from, to };
}
