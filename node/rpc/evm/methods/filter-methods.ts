/** eth_getLogs and the filter methods. */
import { isEvm } from "../../../../chain/block.js";
import type { Hash32, Height, Hex } from "../../../../chain/hex.js";
import { breathe } from "../../../../runtime/process/main-thread.js";
import type { TransactionPool } from "../../../mempool/pool-port.js";
import type { ChainView } from "../../../view/chain-view.js";
import { pendingTransactionJson } from "../../../view/evm-json.js";
import type { BlockJson } from "../json/block-json.js";
import { RpcFault } from "../errors.js";
import { LARGE_BYTES } from "../large-lane.js";
import type { FilterRegistry, InstalledFilter } from "../filters.js";
import { lastHeight, type LogFilter, parseLogFilter, rangeOf } from "../log-filter.js";
import { getLogs, joinLogs, type SearchOptions, searchLogs } from "../log-search.js";
import {
  type CallContext,
  type MethodEntries,
  method,
  RawJson,
  type RpcResult,
} from "../method.js";
import type { EvmRpcLimits } from "../options.js";
import { parseBoolean, parseId } from "../params.js";
import { assertBlocks } from "../reads.js";

/** The method whose answer takes what it gives out of a filter. */
export const POLL_METHOD = "eth_getFilterChanges";

/** What these methods read. */
export interface FilterMethodPorts {
  readonly view: ChainView;
  readonly json: BlockJson;
  readonly pool: Pick<TransactionPool, "get">;
  readonly filters: FilterRegistry;
  readonly limits: EvmRpcLimits;
}

/** Log queries and polled filters. */
export function filterMethods(ports: FilterMethodPorts): MethodEntries {
  const { view, json, filters, limits } = ports;
  const logsOf = (filter: LogFilter, context: CallContext) => {
    const range = rangeOf(view, filter, limits.logBlocks);
    return getLogs(view, json, filter.criteria, range, searchBounds(limits, context));
  };
  return [
    method("eth_getLogs", 1, (params, context) =>
      logsOf(params.required(0, parseLogFilter), context),
    ),
    method("eth_newFilter", 1, (params, { client }) => {
      const filter = params.required(0, parseLogFilter);
      if (filter.blockHash !== undefined) {
        throw new RpcFault("INVALID_PARAMS", "a filter cannot be installed for one block hash");
      }
      lastHeight(view, filter);
      const next = { height: firstHeight(view, filter), given: 0 };
      return filters.install({ kind: "log", filter, next }, client);
    }),
    method("eth_newBlockFilter", 0, (_params, { client }) =>
      filters.install({ kind: "block", next: view.head().height + 1 }, client),
    ),
    method("eth_newPendingTransactionFilter", 1, (params, { client }) => {
      const isFull = params.optional(0, parseBoolean) ?? false;
      const next = filters.pendingPosition();
      return filters.install({ kind: "pending", isFull, next }, client);
    }),
    method("eth_uninstallFilter", 1, (params) => filters.uninstall(params.required(0, parseId))),
    method(POLL_METHOD, 1, (params, context) => {
      const id = params.required(0, parseId);
      const filter = filters.use(id);
      switch (filter.kind) {
        case "block":
          return newBlocks(view, filter, limits.logBlocks);
        case "pending":
          return newPending(ports, id, filter, context);
        default:
          return newLogs(ports, filter, context);
      }
    }),
    method("eth_getFilterLogs", 1, (params, context) => {
      const filter = filters.use(params.required(0, parseId));
      if (filter.kind !== "log") throw new RpcFault("SERVER_ERROR", "filter not found");
      return logsOf(filter.filter, context);
    }),
  ];
}

function searchBounds(limits: EvmRpcLimits, context: CallContext): SearchOptions {
  return {
    maxResults: limits.logResults,
    maxBytes: limits.responseBytes,
    isFirstWhole: false,
    signal: context.signal,
    becameLarge: () => context.becameLarge(),
  };
}

/** A log filter reports blocks after the present head, or from a later `fromBlock` on. */
function firstHeight(view: ChainView, filter: LogFilter): number {
  const next = view.head().height + 1;
  return filter.from?.kind === "height" ? Math.max(filter.from.height, next) : next;
}

function newBlocks(
  view: ChainView,
  filter: InstalledFilter & { readonly kind: "block" },
  maxBlocks: number,
): RpcResult {
  const hashes: string[] = [];
  const head = view.head().height;
  if (filter.next <= head) assertBlocks(view, { from: filter.next, to: head });
  while (filter.next <= head && hashes.length < maxBlocks) {
    const hash = view.blockHash(filter.next);
    if (hash === undefined) break;
    hashes.push(hash);
    filter.next += 1;
  }
  return hashes;
}

/** Hashes; or the transactions of those that the pool still has, or a block. */
async function newPending(
  ports: FilterMethodPorts,
  id: Hex,
  filter: InstalledFilter & { readonly kind: "pending" },
  context: CallContext,
): Promise<RpcResult> {
  for (;;) {
    const from = filter.next;
    const hashes = ports.filters.pendingSince(id, filter);
    const { texts, count } = filter.isFull
      ? await pendingTexts(ports, hashes, context)
      : { texts: hashes.map((hash) => `"${hash}"`), count: hashes.length };
    // Another poll has given these meanwhile.
    if (filter.next !== from) continue;
    filter.next = from + count;
    return new RawJson(`[${texts.join(",")}]`);
  }
}

/** Transactions as far as one answer has room; `count`: hashes that are dealt with. */
async function pendingTexts(
  { view, pool, limits }: FilterMethodPorts,
  hashes: readonly Hash32[],
  context: CallContext,
): Promise<{ readonly texts: readonly string[]; readonly count: number }> {
  const texts: string[] = [];
  let sizeBytes = 0;
  for (const [index, hash] of hashes.entries()) {
    const place = view.locate(hash);
    const found =
      place === undefined ? pool.get(hash) : view.transaction(place.height, place.index);
    const text = found !== undefined && isEvm(found) ? pendingTransactionJson(found) : "";
    // The rest comes with the next poll.
    if (texts.length > 0 && sizeBytes + text.length > limits.responseBytes / 2) {
      return { texts, count: index };
    }
    if (text !== "") texts.push(text);
    sizeBytes += text.length + 1;
    if (sizeBytes > LARGE_BYTES) await context.becameLarge();
    await breathe(context.signal);
  }
  return { texts, count: hashes.length };
}

async function newLogs(
  ports: FilterMethodPorts,
  installed: InstalledFilter & { readonly kind: "log" },
  context: CallContext,
): Promise<RawJson> {
  const { view, limits } = ports;
  const { filter } = installed;
  // A comma is counted for every log: the brackets take one byte more than that.
  const maxBytes = limits.responseBytes - 1;
  const bounds = { ...searchBounds(limits, context), maxBytes, isFirstWhole: true };
  for (;;) {
    const from = installed.next;
    const { height, given } = from;
    const head = view.head().height;
    const end = filter.to?.kind === "height" ? Math.min(filter.to.height, head) : head;
    if (height > end) return new RawJson("[]");
    assertBlocks(view, { from: height, to: end });
    const to = given > 0 ? height : Math.min(end, height + limits.logBlocks - 1);
    // What does not fit into one answer comes with the next poll, so a bound never loses a log.
    const { logs, next } = await searchLogs(view, filter.criteria, { from: height, to }, bounds);
    const portion = portionOf(logs.slice(given), height, bounds.maxBytes);
    const answer = await joinLogs(portion, context.signal);
    // Another poll has given these meanwhile.
    if (installed.next !== from) continue;
    const isWhole = given + portion.length === logs.length;
    installed.next = isWhole
      ? { height: next ?? to + 1, given: 0 }
      : { height, given: given + portion.length };
    return answer;
  }
}

/**
 * As many logs as one answer holds. They are all, unless the first block of a search exceeds the
 * bound alone: then all of them are of this block.
 * @throws RESPONSE_TOO_LARGE where there is no room for the first one
 */
function portionOf(logs: readonly string[], height: Height, maxBytes: number): readonly string[] {
  let sizeBytes = 0;
  const most = logs.findIndex((text) => (sizeBytes += text.length + 1) > maxBytes);
  if (most === 0) {
    const text = `one log of block ${height} is over the bound, install a narrower filter`;
    throw new RpcFault("RESPONSE_TOO_LARGE", `response too large: ${text}`);
  }
  return most < 0 ? logs : logs.slice(0, most);
}
