/**
 * What pages ask of the indexer's REST. It is a help: where it does not answer, pages say so and
 * show what the node has. Its answers (openapi/indexer.yaml) are parsed like anybody else's, names in
 * them are strangers'.
 */
import { type Address, parseAddress } from "../../chain/address.js";
import { type Hash32, parseHash32 } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import { type AnswerObject, readObject } from "../../rpc-client/answer-fields.js";
import { routeOf } from "../../runtime/http/outgoing/route-url.js";
import { isPrice } from "../decode/prices.js";
import { badRequest, PageError } from "../../web/errors.js";
import type { Place } from "./evm-json.js";
import { getText, type TextAnswer } from "./json-get.js";

/** A transfer of anything. */
export interface IndexedTransfer {
  readonly height: number;
  readonly timestampSeconds: number | undefined;
  readonly hash: Hash32 | undefined;
  /** native, internal, fee, mint, burn, module, erc20, erc721 or erc1155. */
  readonly kind: string;
  /** Undefined for native coins. */
  readonly contract: Address | undefined;
  readonly from: Address | undefined;
  readonly to: Address | undefined;
  readonly units: bigint;
  /** Undefined for coins, and for tokens without ids. */
  readonly tokenId: bigint | undefined;
}

/** A balance of a token. */
export interface IndexedBalance {
  /** Undefined for native coins. */
  readonly contract: Address | undefined;
  readonly units: bigint;
  /** Of a token that has ids, each with a balance of its own. */
  readonly tokenId: bigint | undefined;
  readonly decimals: number | undefined;
  readonly symbol: string | undefined;
}

/** A token that the indexer has met. */
export interface IndexedToken {
  readonly contract: Address;
  readonly name: string | undefined;
  readonly symbol: string | undefined;
  readonly decimals: number | undefined;
  readonly totalSupplyUnits: bigint | undefined;
  readonly holders: number | undefined;
}

/** An account that holds a token. */
export interface IndexedHolder {
  readonly account: Address;
  readonly units: bigint;
  /** As in `IndexedBalance`. */
  readonly tokenId: bigint | undefined;
}

/** A pair of a decentralised exchange. */
export interface IndexedPair {
  readonly pair: Address;
  readonly token0: Address;
  readonly token1: Address;
  readonly reserve0: bigint;
  readonly reserve1: bigint;
  /** By what the contracts say; undefined where they do not, or say now this and now that. */
  readonly decimals0: number | undefined;
  readonly decimals1: number | undefined;
  /** Token1 for one token0 and the other way, whole tokens, decimal texts. */
  readonly price0: string | undefined;
  readonly price1: string | undefined;
  readonly swaps: number | undefined;
  readonly volume0Day: bigint | undefined;
  readonly volume1Day: bigint | undefined;
  /** False where the factory that it names does not have it as its pair: anybody can log one. */
  readonly isConfirmed: boolean;
}

/** Prices of a span of time: base units of token1 for one of token0, decimal texts. */
export interface IndexedCandle {
  readonly timestampSeconds: number;
  readonly open: string;
  readonly high: string;
  readonly low: string;
  readonly close: string;
}

/** The supply after a block; minted and burned since block 0. */
export interface IndexedSupply {
  readonly height: number;
  readonly totalAtoken: Atoken;
  readonly mintedAtoken: Atoken;
  readonly burnedAtoken: Atoken;
}

/** A page of a list. */
export interface IndexedPage<Item> {
  readonly items: readonly Item[];
  /** Cursor of the next page. */
  readonly next: string | undefined;
  /** Newest block that the indexer has. */
  readonly indexedHeight: number | undefined;
  readonly indexedHash: Hash32 | undefined;
}

/** How an indexer is asked. */
export interface IndexerOptions {
  /** Base URL. */
  readonly url: string;
  readonly timeoutMs: number;
}

/** A reply is a page of at most a thousand small rows. */
const MAX_REPLY_BYTES = 4 * 1024 * 1024;

/** Rows of a page. */
const LIMIT = 50;

/** Places of a chart of the supply. */
const SUPPLY_POINTS = 40;

/**
 * Reads of one indexer. All throw UNAVAILABLE where it does not answer, and BAD_REQUEST for a place in a list
 * that is none; 404 is undefined.
 */
export class IndexerSource {
  constructor(private readonly options: IndexerOptions) {}

  /** Where the newest transactions of the EVM stand, newest first, among as many of both kinds. */
  newestPlaces(limit: number, signal: AbortSignal): Promise<IndexedPage<Place>> {
    return this.list("/v1/transactions", { order: "desc", limit }, readPlace, signal);
  }

  /** Transfers of an account, newest first. */
  transfers(account: Address, cursor: string | undefined, signal: AbortSignal) {
    return this.list(
      `/v1/addresses/${account}/transfers`,
      { cursor, order: "desc", limit: LIMIT },
      readTransfer,
      signal,
    );
  }

  /** Balances of an account. */
  balances(account: Address, cursor: string | undefined, signal: AbortSignal) {
    const path = `/v1/addresses/${account}/balances`;
    return this.list(path, { cursor, limit: LIMIT }, readBalance, signal);
  }

  /** All tokens, or those with a text in what they call themselves; most moved first. */
  tokens(cursor: string | undefined, signal: AbortSignal, search?: string) {
    return this.list("/v1/tokens", { cursor, search, limit: LIMIT }, readToken, signal);
  }

  /** Who holds a token. */
  holders(token: Address, cursor: string | undefined, signal: AbortSignal) {
    return this.list(`/v1/tokens/${token}/holders`, { cursor, limit: LIMIT }, readHolder, signal);
  }

  /** Transfers of a token, newest first. */
  tokenTransfers(token: Address, cursor: string | undefined, signal: AbortSignal) {
    return this.list(
      `/v1/tokens/${token}/transfers`,
      { cursor, order: "desc", limit: LIMIT },
      readTransfer,
      signal,
    );
  }

  /** All pairs. */
  pairs(cursor: string | undefined, signal: AbortSignal) {
    return this.list("/v1/dex/pairs", { cursor, limit: LIMIT }, readPair, signal);
  }

  /** One pair; no item where the indexer does not know it. */
  async pair(pair: Address, signal: AbortSignal): Promise<IndexedPage<IndexedPair>> {
    const answer = await this.get(`/v1/dex/pairs/${pair}`, {}, signal);
    const found = answer === undefined ? undefined : readPair(fields(answer["pair"]));
    return { items: found === undefined ? [] : [found], next: undefined, ...newestOf(answer) };
  }

  /** Candles of a pair, oldest first. */
  async candles(
    pair: Address,
    interval: string,
    signal: AbortSignal,
  ): Promise<IndexedPage<IndexedCandle>> {
    const path = `/v1/dex/pairs/${pair}/candles`;
    const page = await this.list(path, { interval, limit: LIMIT }, readCandle, signal);
    return { ...page, items: page.items.toReversed() };
  }

  /** The supply over time in even distances, oldest first. */
  supply(signal: AbortSignal) {
    return this.list("/v1/supply/history", { points: SUPPLY_POINTS }, readSupply, signal);
  }

  private async list<Item>(
    path: string,
    query: Readonly<Record<string, string | number | undefined>>,
    read: (row: AnswerObject) => Item | undefined,
    signal: AbortSignal,
  ): Promise<IndexedPage<Item>> {
    const answer = await this.get(path, query, signal);
    if (answer === undefined) return { items: [], next: undefined, ...newestOf(answer) };
    const rows = Array.isArray(answer["items"]) ? answer["items"] : [];
    const items = rows.slice(0, LIMIT).flatMap((row: unknown) => {
      const item = read(fields(row));
      return item === undefined ? [] : [item];
    });
    const next = answer["next"];
    return { items, next: typeof next === "string" ? next : undefined, ...newestOf(answer) };
  }

  /** Undefined for what the indexer does not know. @throws UNAVAILABLE, BAD_REQUEST */
  private async get(
    path: string,
    query: Readonly<Record<string, string | number | undefined>>,
    signal: AbortSignal,
  ): Promise<AnswerObject | undefined> {
    const url = routeOf(this.options.url, path);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const { status, text } = await this.answer(url, signal);
    if (status === 404) return undefined;
    // A cursor of an index that was made anew, for example: it does answer.
    if (status === 400 || status === 422) throw badRequest("the indexer refuses the question");
    try {
      if (status !== 200) throw new RangeError(`HTTP ${status}`);
      return readObject(JSON.parse(text), "answer");
    } catch (cause) {
      throw unavailable(cause);
    }
  }

  private async answer(url: URL, signal: AbortSignal): Promise<TextAnswer> {
    const { timeoutMs } = this.options;
    try {
      return await getText(url, { timeoutMs, maxBytes: MAX_REPLY_BYTES, signal });
    } catch (cause) {
      signal.throwIfAborted();
      throw unavailable(cause);
    }
  }
}

/** The newest block that an answer names. */
function newestOf(
  answer: AnswerObject | undefined,
): Pick<IndexedPage<unknown>, "indexedHeight" | "indexedHash"> {
  const { indexedHeight, indexedHash } = fields(answer?.["meta"]);
  return { indexedHeight: integerOf(indexedHeight), indexedHash: hashOf(indexedHash) };
}

function unavailable(cause: unknown): PageError {
  return new PageError("UNAVAILABLE", "the indexer does not answer", { retriable: true, cause });
}

function readPlace(row: AnswerObject): Place | undefined {
  const [height, index] = [integerOf(row["height"]), integerOf(row["index"])];
  if (row["kind"] !== "evm" || height === undefined || index === undefined) return undefined;
  return { height, index };
}

function readTransfer(row: AnswerObject): IndexedTransfer | undefined {
  const height = integerOf(row["height"]);
  const units = amountOf(row["amount"]);
  if (height === undefined || units === undefined) return undefined;
  return {
    height,
    units,
    timestampSeconds: timeOf(row["time"]),
    hash: hashOf(row["txHash"]),
    kind: textOf(row["kind"]) ?? "",
    // Coins are "TOKEN", tokens their contract.
    contract: addressOf(row["asset"]),
    from: addressOf(row["from"]),
    to: addressOf(row["to"]),
    tokenId: amountOf(row["tokenId"]),
  };
}

function readBalance(row: AnswerObject): IndexedBalance | undefined {
  const units = amountOf(row["amount"]);
  if (units === undefined) return undefined;
  return {
    contract: addressOf(row["asset"]),
    units,
    tokenId: amountOf(row["tokenId"]),
    decimals: integerOf(row["decimals"]),
    symbol: textOf(row["symbol"]),
  };
}

function readToken(row: AnswerObject): IndexedToken | undefined {
  const contract = addressOf(row["address"]);
  if (contract === undefined) return undefined;
  return {
    contract,
    name: textOf(row["name"]),
    symbol: textOf(row["symbol"]),
    decimals: integerOf(row["decimals"]),
    totalSupplyUnits: amountOf(row["totalSupply"]),
    holders: integerOf(row["holders"]),
  };
}

function readHolder(row: AnswerObject): IndexedHolder | undefined {
  const account = addressOf(row["address"]);
  const units = amountOf(row["amount"]);
  if (account === undefined || units === undefined) return undefined;
  return { account, units, tokenId: amountOf(row["tokenId"]) };
}

function readPair(row: AnswerObject): IndexedPair | undefined {
  const pair = addressOf(row["address"]);
  const side = (name: string) => addressOf(fields(row[name])["address"]);
  const [token0, token1] = [side("token0"), side("token1")];
  const [reserve0, reserve1] = [amountOf(row["reserve0"]), amountOf(row["reserve1"])];
  if (pair === undefined || token0 === undefined || token1 === undefined) return undefined;
  if (reserve0 === undefined || reserve1 === undefined) return undefined;
  const decimals = (name: string) => integerOf(fields(row[name])["decimals"]);
  return {
    pair,
    token0,
    token1,
    reserve0,
    reserve1,
    decimals0: decimals("token0"),
    decimals1: decimals("token1"),
    price0: priceOf(row["price0"]),
    price1: priceOf(row["price1"]),
    swaps: integerOf(row["swaps"]),
    volume0Day: amountOf(row["volume0Day"]),
    volume1Day: amountOf(row["volume1Day"]),
    isConfirmed: row["isConfirmed"] === true,
  };
}

function readCandle(row: AnswerObject): IndexedCandle | undefined {
  const timestampSeconds = timeOf(row["time"]);
  const [open, high, low, close] = ["open", "high", "low", "close"].map((name) =>
    priceOf(row[name]),
  );
  if (timestampSeconds === undefined) return undefined;
  if (open === undefined || high === undefined || low === undefined || close === undefined) {
    return undefined;
  }
  return { timestampSeconds, open, high, low, close };
}

function priceOf(value: unknown): string | undefined {
  return isPrice(value) ? value : undefined;
}

function readSupply(row: AnswerObject): IndexedSupply | undefined {
  const height = integerOf(row["height"]);
  const totalAtoken = amountOf(row["total"]);
  const [mintedAtoken, burnedAtoken] = [amountOf(row["minted"]), amountOf(row["burned"])];
  if (height === undefined || totalAtoken === undefined) return undefined;
  if (mintedAtoken === undefined || burnedAtoken === undefined) return undefined;
  return { height, totalAtoken, mintedAtoken, burnedAtoken };
}

function fields(value: unknown): AnswerObject {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? readObject(value, "row")
    : {};
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function integerOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

function amountOf(value: unknown): bigint | undefined {
  return typeof value === "string" && /^(0|-?[1-9][0-9]{0,80})$/.test(value)
    ? BigInt(value)
    : undefined;
}

/** RFC 3339 to Unix seconds. */
function timeOf(value: unknown): number | undefined {
  const ms = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(ms) ? undefined : Math.floor(ms / 1_000);
}

function addressOf(value: unknown): Address | undefined {
  try {
    return parseAddress(value);
  } catch {
    return undefined;
  }
}

function hashOf(value: unknown): Hash32 | undefined {
  try {
    return parseHash32(value);
  } catch {
    return undefined;
  }
}
