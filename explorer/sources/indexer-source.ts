/**
 * What pages ask of the indexer's REST. It is a help: where it does not answer, pages say so and
 * show what the node has. Its answers are parsed like anybody else's, names in them are strangers'.
 */
import { type Address, parseAddress } from "../../chain/address.js";
import { type Hash32, parseHash32 } from "../../chain/hex.js";
import { type AnswerObject, readObject } from "../../rpc-client/answer-fields.js";
import { limitedSignal } from "../../runtime/process/task.js";
import { PageError } from "../../web/errors.js";

/** A transfer of anything. */
export interface IndexedTransfer {
  readonly height: number;
  readonly timestampSeconds: number | undefined;
  readonly hash: Hash32 | undefined;
  /** native, internal, erc20, mint, burn, fee, bank ... */
  readonly kind: string;
  /** Undefined for native coins. */
  readonly contract: Address | undefined;
  readonly from: Address | undefined;
  readonly to: Address | undefined;
  readonly units: bigint;
}

/** A balance of a token. */
export interface IndexedBalance {
  /** Undefined for native coins. */
  readonly contract: Address | undefined;
  readonly units: bigint;
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
}

/** A pair of a decentralised exchange. */
export interface IndexedPair {
  readonly pair: Address;
  readonly token0: Address;
  readonly token1: Address;
  readonly reserve0: bigint;
  readonly reserve1: bigint;
}

/** Prices of a span of time. */
export interface IndexedCandle {
  readonly timestampSeconds: number;
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
}

/** The supply after a block. */
export interface IndexedSupply {
  readonly height: number;
  readonly totalAtoken: bigint;
  readonly mintedAtoken: bigint | undefined;
  readonly burnedAtoken: bigint | undefined;
}

/** A page of a list. */
export interface IndexedPage<Item> {
  readonly items: readonly Item[];
  /** Cursor of the next page. */
  readonly next: string | undefined;
  /** Newest height that the indexer has. */
  readonly indexedHeight: number | undefined;
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

/** Reads of one indexer. All throw UNAVAILABLE where it does not answer; 404 is undefined. */
export class IndexerSource {
  constructor(private readonly options: IndexerOptions) {}

  /** Transfers of an account, newest first. */
  transfers(account: Address, cursor: string | undefined, signal: AbortSignal) {
    return this.list(
      `/v1/addresses/${account}/transfers`,
      { cursor, order: "desc" },
      readTransfer,
      signal,
    );
  }

  /** Balances of an account. */
  balances(account: Address, signal: AbortSignal) {
    return this.list(`/v1/addresses/${account}/balances`, {}, readBalance, signal);
  }

  /** All tokens. */
  tokens(cursor: string | undefined, signal: AbortSignal) {
    return this.list("/v1/tokens", { cursor }, readToken, signal);
  }

  /** Who holds a token. */
  holders(token: Address, cursor: string | undefined, signal: AbortSignal) {
    return this.list(`/v1/tokens/${token}/holders`, { cursor }, readHolder, signal);
  }

  /** Transfers of a token, newest first. */
  tokenTransfers(token: Address, cursor: string | undefined, signal: AbortSignal) {
    return this.list(
      `/v1/tokens/${token}/transfers`,
      { cursor, order: "desc" },
      readTransfer,
      signal,
    );
  }

  /** All pairs. */
  pairs(cursor: string | undefined, signal: AbortSignal) {
    return this.list("/v1/dex/pairs", { cursor }, readPair, signal);
  }

  /** Candles of a pair, oldest first. */
  candles(pair: Address, interval: string, signal: AbortSignal) {
    return this.list(`/v1/dex/pairs/${pair}/candles`, { interval }, readCandle, signal);
  }

  /** The supply over time, oldest first. */
  supply(signal: AbortSignal) {
    return this.list("/v1/supply", {}, readSupply, signal);
  }

  private async list<Item>(
    path: string,
    query: Readonly<Record<string, string | undefined>>,
    read: (row: AnswerObject) => Item | undefined,
    signal: AbortSignal,
  ): Promise<IndexedPage<Item>> {
    const answer = await this.get(path, { ...query, limit: String(LIMIT) }, signal);
    if (answer === undefined) return { items: [], next: undefined, indexedHeight: undefined };
    const rows = Object.values(answer).find(Array.isArray) ?? [];
    const items = rows.slice(0, LIMIT).flatMap((row: unknown) => {
      const item = read(fields(row));
      return item === undefined ? [] : [item];
    });
    const next = answer["next"];
    const indexedHeight = integerOf(fields(answer["meta"])["indexedHeight"]);
    return { items, next: typeof next === "string" ? next : undefined, indexedHeight };
  }

  /** Undefined for what the indexer does not know. @throws UNAVAILABLE */
  private async get(
    path: string,
    query: Readonly<Record<string, string | undefined>>,
    signal: AbortSignal,
  ): Promise<AnswerObject | undefined> {
    const url = new URL(path, this.options.url);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, value);
    }
    try {
      const answer = await fetch(url, {
        signal: limitedSignal([signal], this.options.timeoutMs),
        headers: { accept: "application/json" },
        redirect: "error",
      });
      const text = await readBounded(answer);
      if (answer.status === 404) return undefined;
      if (answer.status !== 200) throw new RangeError(`HTTP ${answer.status}`);
      return readObject(JSON.parse(text), "answer");
    } catch (cause) {
      signal.throwIfAborted();
      throw new PageError("UNAVAILABLE", "the indexer does not answer", {
        retriable: true,
        cause,
      });
    }
  }
}

async function readBounded(answer: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  const { body } = answer;
  if (body === null) return "";
  for await (const chunk of body) {
    const bytes: Uint8Array = chunk;
    sizeBytes += bytes.length;
    if (sizeBytes > MAX_REPLY_BYTES) throw new RangeError("the answer is too large");
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Names of the fields of an asset that is a token. */
function contractOf(row: AnswerObject): Address | undefined {
  const { asset } = row;
  const named = typeof asset === "object" && asset !== null ? fields(asset)["contract"] : asset;
  return addressOf(row["contract"] ?? row["token"] ?? named);
}

function readTransfer(row: AnswerObject): IndexedTransfer | undefined {
  const height = integerOf(row["block"] ?? row["height"] ?? row["blockNumber"]);
  const units = amountOf(row["amount"]);
  if (height === undefined || units === undefined) return undefined;
  return {
    height,
    units,
    timestampSeconds: timeOf(row["time"] ?? row["timestamp"]),
    hash: hashOf(row["txHash"] ?? row["hash"]),
    kind: textOf(row["kind"]) ?? "",
    contract: contractOf(row),
    from: addressOf(row["from"]),
    to: addressOf(row["to"]),
  };
}

function readBalance(row: AnswerObject): IndexedBalance | undefined {
  const units = amountOf(row["amount"] ?? row["balance"]);
  if (units === undefined) return undefined;
  return {
    contract: contractOf(row),
    units,
    decimals: integerOf(row["decimals"]),
    symbol: textOf(row["symbol"]),
  };
}

function readToken(row: AnswerObject): IndexedToken | undefined {
  const contract = addressOf(row["address"] ?? row["contract"] ?? row["token"]);
  if (contract === undefined) return undefined;
  return {
    contract,
    name: textOf(row["name"]),
    symbol: textOf(row["symbol"]),
    decimals: integerOf(row["decimals"]),
    totalSupplyUnits: amountOf(row["totalSupply"]),
    holders: integerOf(row["holders"] ?? row["holderCount"]),
  };
}

function readHolder(row: AnswerObject): IndexedHolder | undefined {
  const account = addressOf(row["address"] ?? row["holder"] ?? row["account"]);
  const units = amountOf(row["amount"] ?? row["balance"]);
  return account === undefined || units === undefined ? undefined : { account, units };
}

function readPair(row: AnswerObject): IndexedPair | undefined {
  const pair = addressOf(row["address"] ?? row["pair"]);
  const side = (name: string) => {
    const value = row[name];
    return addressOf(typeof value === "object" ? fields(value)["address"] : value);
  };
  const [token0, token1] = [side("token0"), side("token1")];
  const [reserve0, reserve1] = [amountOf(row["reserve0"]), amountOf(row["reserve1"])];
  if (pair === undefined || token0 === undefined || token1 === undefined) return undefined;
  return { pair, token0, token1, reserve0: reserve0 ?? 0n, reserve1: reserve1 ?? 0n };
}

function readCandle(row: AnswerObject): IndexedCandle | undefined {
  const timestampSeconds = timeOf(row["time"] ?? row["start"] ?? row["timestamp"]);
  const [open, high, low, close] = ["open", "high", "low", "close"].map((name) =>
    Number(row[name] ?? Number.NaN),
  );
  if (timestampSeconds === undefined) return undefined;
  if (open === undefined || high === undefined || low === undefined || close === undefined) {
    return undefined;
  }
  const isNumber = [open, high, low, close].every((price) => Number.isFinite(price) && price >= 0);
  return isNumber ? { timestampSeconds, open, high, low, close } : undefined;
}

function readSupply(row: AnswerObject): IndexedSupply | undefined {
  const height = integerOf(row["height"] ?? row["block"]);
  const totalAtoken = amountOf(row["total"]);
  if (height === undefined || totalAtoken === undefined) return undefined;
  return {
    height,
    totalAtoken,
    mintedAtoken: amountOf(row["minted"]),
    burnedAtoken: amountOf(row["burned"]),
  };
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
  const number = typeof value === "string" && /^[0-9]{1,15}$/.test(value) ? Number(value) : value;
  return typeof number === "number" && Number.isSafeInteger(number) && number >= 0
    ? number
    : undefined;
}

function amountOf(value: unknown): bigint | undefined {
  return typeof value === "string" && /^(0|-?[1-9][0-9]{0,80})$/.test(value)
    ? BigInt(value)
    : undefined;
}

/** RFC 3339, or Unix seconds. */
function timeOf(value: unknown): number | undefined {
  if (typeof value !== "string" || /^[0-9]+$/.test(value)) return integerOf(value);
  const ms = Date.parse(value);
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
