/** /search/transactions: all of Rosetta's conditions over the index, newest first. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { errorCode } from "../../chain/errors.js";
import type { Height } from "../../chain/hex.js";
import type { OperationStatus } from "../../chain/operations.js";
import type { Network } from "../../chain/networks.js";
import type { HttpReply } from "../../runtime/http/http-reply.js";
import type { HttpRoute } from "../../runtime/http/http-route.js";
import { type Asker, ClientTurns } from "../rosetta/client-turns.js";
import { toRoute } from "../rosetta/endpoint.js";
import type { EncodedBlock } from "../rosetta/encoded-block.js";
import { SidecarError, toSidecarError } from "../rosetta/errors.js";
import {
  type BlockIdentifier,
  type Currency,
  OPERATION_TYPES,
  parseAccountAddress,
  parseCurrency,
  parseHash,
  TOKEN_CURRENCY,
} from "../rosetta/identifiers.js";
import type { IndexReader, TransactionPlace } from "../index/index-reader.js";
import {
  addressTerm,
  currencyTerm,
  statusTerm,
  subAccountsOnlyTerm,
  subAccountTerm,
  typeTerm,
} from "../index/search/search-postings.js";
import type {
  SearchCondition,
  SearchQuery,
  TransactionSearch,
} from "../index/search/search-query.js";
import {
  fault,
  type Fields,
  inside,
  type Place,
  readFields,
  readFlag,
  readIndex,
  readMaybe,
  readText,
} from "../rosetta/request-fields.js";
import {
  type AccountKey,
  CLAIM_CURRENCY,
  claimAccount,
  parseAccountKey,
  resolveClaimCurrency,
  shareCurrency,
} from "../rosetta/sub-accounts.js";
import type { TokenRegistry } from "../rosetta/token-registry.js";
import { MAX_READ_BYTES } from "./block-source.js";

/** What the route reads. */
export interface SearchRouteOptions {
  readonly network: Network;
  readonly registry: TokenRegistry;
  readonly index: Pick<IndexReader, "placeOf" | "block">;
  /** The newest block that the index serves. */
  readonly tip: () => Promise<BlockIdentifier>;
  readonly search: TransactionSearch;
}

/** Transactions of a page when the request does not say. */
const DEFAULT_LIMIT = 100;

/** Most transactions of a page; Rosetta lets a server return fewer than asked for. */
const MAX_LIMIT = 1_000;

/** A page ends early above this size: transactions have up to a few hundred KB. */
const MAX_PAGE_BYTES = 8 * 1024 * 1024;

/**
 * Blocks of a page that are read at once: those that the index dropped come from the node. It is fewer
 * where the last ones were large, so that not much more than `BYTES_AT_ONCE` is in memory.
 */
const BLOCKS_AT_ONCE = 8;
const BYTES_AT_ONCE = 8 * 1024 * 1024;

/** Searches that run at once: each may take seconds of the one thread, and some 8 MiB for its page. */
const SEARCHES_AT_ONCE = 3;

/** Statuses of operations as /network/options lists them, by whether they are successful. */
const STATUS_OF_SUCCESS = { true: "SUCCESS", false: "FAILURE" } as const satisfies Record<
  string,
  OperationStatus
>;

const FIELDS = [
  "operator",
  "max_block",
  "offset",
  "limit",
  "transaction_identifier",
  "account_identifier",
  "coin_identifier",
  "currency",
  "status",
  "type",
  "address",
  "success",
] as const;

/** The route; errors beside those of its fields: SEARCH_TOO_BROAD and what reading blocks throws. */
export function searchRoutes(options: SearchRouteOptions): HttpRoute[] {
  const turns = new ClientTurns("searches", SEARCHES_AT_ONCE);
  const endpoint = {
    path: "/search/transactions",
    fields: FIELDS,
    async handler(fields: Fields, asker: Asker) {
      const { signal } = asker;
      const wanted = parseWanted(fields);
      // The tip comes first: every place at or below it is in the index.
      const tip = await options.tip();
      const query: SearchQuery = {
        operator: wanted.operator,
        conditions: parseConditions(fields, options),
        maxHeight: Math.min(wanted.maxBlock ?? tip.index, tip.index),
        offset: wanted.offset,
        limit: wanted.limit,
      };
      const look = async () => {
        const { totalCount, places } = await options.search(query, { signal });
        const parts = await readTransactions(options.index, places, signal);
        return replyOf(parts, { totalCount, nextOffset: query.offset + parts.length });
      };
      return isOneLook(query) ? look() : turns.run(asker, look);
    },
  };
  return [toRoute(endpoint, options.network)];
}

/** Whether no list has to be read: it is about transactions that were named. */
function isOneLook({ operator, conditions }: SearchQuery): boolean {
  const isNamed = ({ kind }: SearchCondition) => kind === "place" || kind === "never";
  if (operator === "and") return conditions.some(isNamed);
  return conditions.length > 0 && conditions.every(isNamed);
}

/** Everything of a request but its conditions. */
function parseWanted(fields: Fields) {
  const operator = fields["operator"] ?? "and";
  if (operator !== "and" && operator !== "or") throw fault({ at: "operator" }, "and, or");
  const index = (field: string) => readMaybe(fields[field], { at: field }, readIndex);
  const limit = Math.min(index("limit") ?? DEFAULT_LIMIT, MAX_LIMIT);
  return { operator, limit, offset: index("offset") ?? 0, maxBlock: index("max_block") } as const;
}

function parseConditions(
  fields: Fields,
  { index, registry }: Pick<SearchRouteOptions, "index" | "registry">,
): SearchCondition[] {
  const readers: Partial<
    Record<(typeof FIELDS)[number], (value: unknown, place: Place) => SearchCondition>
  > = {
    transaction_identifier(value, place) {
      const { hash } = readFields(value, place, ["hash"]);
      const found = index.placeOf(parseHash(hash, inside(place, "hash")));
      return found === undefined ? NEVER : { kind: "place", place: found };
    },
    account_identifier: accountCondition,
    coin_identifier(value, place) {
      const { identifier } = readFields(value, place, ["identifier"]);
      readText(identifier, inside(place, "identifier"));
      return NEVER;
    },
    currency(value, place) {
      return { kind: "term", term: currencyTerm(readCurrency(value, place, registry)) };
    },
    status(value, place) {
      const status = readListed(value, place, Object.values(STATUS_OF_SUCCESS));
      return { kind: "term", term: statusTerm(status) };
    },
    type: (value, place) => ({
      kind: "term",
      term: typeTerm(readListed(value, place, OPERATION_TYPES)),
    }),
    address: (value, place) => ({
      kind: "term",
      term: addressTerm(parseAccountAddress(value, place)),
    }),
    success: (value, place) => ({
      kind: "term",
      term: statusTerm(STATUS_OF_SUCCESS[`${readFlag(value, place)}`]),
    }),
  };
  return FIELDS.flatMap((field) => {
    const reader = readers[field];
    const value = fields[field];
    return reader === undefined || value === undefined ? [] : [reader(value, { at: field })];
  });
}

/** No transaction of this chain has a coin, or a sub-account by another name. */
const NEVER: SearchCondition = { kind: "never" };

/** The account itself and nothing else, or one sub-account. */
function accountCondition(value: unknown, place: Place): SearchCondition {
  const key = knownAccount(value, place);
  if (key === undefined) return NEVER;
  const { address, sub } = key;
  if (sub === undefined) {
    return { kind: "term", term: addressTerm(address), except: subAccountsOnlyTerm(address) };
  }
  return { kind: "term", term: subAccountTerm(claimAccount({ account: address, ...sub })) };
}

/** Undefined for a sub-account that no account of this chain has. */
function knownAccount(value: unknown, place: Place): AccountKey | undefined {
  try {
    return parseAccountKey(value, place);
  } catch (error) {
    if (errorCode(error) === "SUB_ACCOUNT_NOT_SUPPORTED") return undefined;
    throw error;
  }
}

/** Any currency that operations are in. Throws UNKNOWN_CURRENCY. */
function readCurrency(value: unknown, place: Place, registry: TokenRegistry): Currency {
  const key = parseCurrency(value, place);
  const known = registry.resolve(key);
  if (known !== undefined) return known.kind === "token" ? known.token.currency : TOKEN_CURRENCY;
  const claim = resolveClaimCurrency(key);
  if (claim === undefined) throw new SidecarError("UNKNOWN_CURRENCY", { field: place.at });
  return claim.kind === "share" ? shareCurrency(claim.validator) : CLAIM_CURRENCY;
}

/** Text that /network/options lists: another one is a slip that an empty reply would hide. */
function readListed(value: unknown, place: Place, listed: readonly string[]): string {
  const text = readText(value, place);
  if (!listed.includes(text)) throw fault(place, `one of ${listed.join(", ")}`);
  return text;
}

/**
 * JSON of `BlockTransaction`s in the places' order; fewer than the places when they are large, or where
 * older blocks are gone.
 */
async function readTransactions(
  index: Pick<IndexReader, "block">,
  places: readonly TransactionPlace[],
  signal: AbortSignal,
): Promise<Buffer[]> {
  const heights = [...new Set(places.map(({ height }) => height))];
  const parts: Buffer[] = [];
  let sizeBytes = 0;
  let readBytes = 0;
  let atOnce = 1;
  for (let at = 0; at < heights.length && readBytes <= MAX_READ_BYTES; ) {
    const some = heights.slice(at, at + atOnce);
    at += some.length;
    const read = await readBlocks(index, some, { isFirst: parts.length === 0 });
    const someBytes = read.reduce((sum, block) => sum + block.sizeBytes, 0);
    readBytes += someBytes;
    const fitting = Math.floor((BYTES_AT_ONCE * read.length) / Math.max(1, someBytes));
    atOnce = Math.max(1, Math.min(BLOCKS_AT_ONCE, fitting));
    const blocks = new Map(some.map((height, nth) => [height, read[nth]]));
    while (parts.length < places.length) {
      const place = places[parts.length];
      const block = place === undefined ? undefined : blocks.get(place.height);
      if (place === undefined || block === undefined) break;
      if (place.position >= block.transactionCount) {
        throw new SidecarError("INTERNAL", { reason: "the index names no transaction", ...place });
      }
      const transaction = block.transactionAt(place.position);
      sizeBytes += transaction.length;
      if (parts.length > 0 && sizeBytes > MAX_PAGE_BYTES) return parts;
      const identifier = JSON.stringify(block.identifier);
      const head = Buffer.from(`{"block_identifier":${identifier},"transaction":`);
      parts.push(Buffer.concat([head, transaction, Buffer.from("}")]));
    }
    if (read.length < some.length) return parts;
    // Blocks that are at hand come without a turn of the event loop, so it is given one here.
    await nextTurn();
    signal.throwIfAborted();
  }
  return parts;
}

/**
 * The blocks of some heights in order. A page ends before one that nobody has any more: what was found in
 * newer ones would never be told, since all older ones are gone, too.
 * @param page `isFirst` where it has nothing yet, so that the block itself is what is refused
 */
async function readBlocks(
  index: Pick<IndexReader, "block">,
  heights: readonly Height[],
  { isFirst }: { readonly isFirst: boolean },
): Promise<EncodedBlock[]> {
  const read: EncodedBlock[] = [];
  for (const outcome of await Promise.allSettled(heights.map((height) => index.block(height)))) {
    if (outcome.status === "fulfilled") {
      read.push(outcome.value);
      continue;
    }
    const isGone = toSidecarError(outcome.reason).code === "BLOCK_PRUNED";
    if (!isGone || (isFirst && read.length === 0)) throw outcome.reason;
    return read;
  }
  return read;
}

function replyOf(
  parts: readonly Buffer[],
  counts: { readonly totalCount: number; readonly nextOffset: number },
): HttpReply {
  const { totalCount, nextOffset } = counts;
  const chunks: Buffer[] = [Buffer.from('{"transactions":[')];
  parts.forEach((part, index) => {
    if (index > 0) chunks.push(Buffer.from(","));
    chunks.push(part);
  });
  // A page without any leads nowhere: its offset again would be followed for ever.
  const isMore = parts.length > 0 && nextOffset < totalCount;
  const next = isMore ? `,"next_offset":${nextOffset}` : "";
  chunks.push(Buffer.from(`],"total_count":${totalCount}${next}}`));
  return { bytes: Buffer.concat(chunks) };
}
