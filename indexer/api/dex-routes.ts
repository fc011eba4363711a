/** Uniswap V2 pairs, their swaps, liquidity and candles. */
import type { Height } from "../../chain/hex.js";
import type { HttpRoute } from "../../runtime/http/http-route.js";
import { IndexerError } from "../errors.js";
import { binOf, dayBounds, dayVolume, PRICE_PLACES } from "../store/candles.js";
import { LIVE_SCHEMA as s } from "../store/schema.js";
import { readInterval } from "./address-routes.js";
import { readAddressText, readRange } from "./inputs.js";
import { directionOf, type ListKind, listReply, type PageQuery, Where } from "./pages.js";
import { type ApiContext, atOneMoment, bytesOf, hexOf, hexOrNull, metaOf } from "./reads.js";

const RANGE = ["fromBlock", "toBlock", "from", "to"];

interface PairRow {
  readonly address: Buffer;
  readonly factory: Buffer;
  readonly token0: Buffer;
  readonly token1: Buffer;
  readonly height: number;
  readonly log_index: number;
  readonly time: Date;
  readonly reserve0: string;
  readonly reserve1: string;
  readonly lp_supply: string | null;
  readonly swaps: string;
  readonly volume0: string;
  readonly volume1: string;
  readonly day0: string | null;
  readonly day1: string | null;
  readonly is_confirmed: boolean | null;
  readonly symbol0: string | null;
  readonly symbol1: string | null;
  readonly decimals0: number | null;
  readonly decimals1: number | null;
}

/** @param pairs rows of `pair`: beside every one of them its day's volume is looked up, which costs most */
const pairSelect = (pairs: string) => `WITH ${dayBounds(s)}
  SELECT p.*, b.time, l.supply_logged AS lp_supply, d.day0, d.day1, k0.symbol AS symbol0,
    k0.decimals AS decimals0, k1.symbol AS symbol1, k1.decimals AS decimals1
  FROM ${pairs} p JOIN ${s}.block b ON b.height = p.height
  LEFT JOIN ${s}.token l ON l.address = p.address
  LEFT JOIN ${s}.token k0 ON k0.address = p.token0
  LEFT JOIN ${s}.token k1 ON k1.address = p.token1
  LEFT JOIN LATERAL (${dayVolume(s)}) d ON true`;

/** Places behind the point of a price in whole tokens. */
const WHOLE_PLACES = 18;

/** `numerator / denominator` as a decimal text, cut off; undefined without a denominator. */
function ratioText(numerator: bigint, denominator: bigint, places: number): string | undefined {
  return denominator === 0n
    ? undefined
    : decimalText((numerator * 10n ** BigInt(places)) / denominator, places);
}

/** A number that was multiplied by a power of ten, as a decimal text. */
function decimalText(scaled: bigint, places: number): string {
  const digits = scaled.toString().padStart(places + 1, "0");
  const fraction = digits.slice(-places).replace(/0+$/, "");
  const whole = digits.slice(0, -places);
  return fraction === "" ? whole : `${whole}.${fraction}`;
}

function pairJson(row: PairRow) {
  const { decimals0, decimals1 } = row;
  const isKnown = decimals0 !== null && decimals1 !== null;
  const whole0 = isKnown ? BigInt(row.reserve0) * 10n ** BigInt(decimals1) : 0n;
  const whole1 = isKnown ? BigInt(row.reserve1) * 10n ** BigInt(decimals0) : 0n;
  const isEmpty = whole0 === 0n || whole1 === 0n;
  return {
    address: hexOf(row.address),
    factory: hexOf(row.factory),
    token0: { address: hexOf(row.token0), symbol: row.symbol0, decimals: decimals0 },
    token1: { address: hexOf(row.token1), symbol: row.symbol1, decimals: decimals1 },
    reserve0: row.reserve0,
    reserve1: row.reserve1,
    lpSupply: row.lp_supply ?? "0",
    price0: isEmpty ? null : (ratioText(whole1, whole0, WHOLE_PLACES) ?? null),
    price1: isEmpty ? null : (ratioText(whole0, whole1, WHOLE_PLACES) ?? null),
    createdHeight: row.height,
    createdTime: row.time.toISOString(),
    swaps: Number(row.swaps),
    volume0: row.volume0,
    volume1: row.volume1,
    volume0Day: row.day0 ?? "0",
    volume1Day: row.day1 ?? "0",
    isConfirmed: row.is_confirmed === true,
  };
}

const PAIRS: ListKind<PairRow> = {
  name: "pairs",
  filters: ["token"],
  rows: ({ snapshot, filters, ceiling, after, limit }) => {
    const where = new Where().and("p.height <= ?", ceiling);
    if (after !== undefined) where.and("(p.height, p.log_index) < (?, ?)", ...after);
    const page = `ORDER BY p.height DESC, p.log_index DESC LIMIT ${limit}`;
    const pairs = (condition: string) =>
      `(SELECT p.* FROM ${s}.pair p ${where.text()}${condition} ${page})`;
    let source = pairs("");
    if (filters["token"] !== undefined) {
      const token = where.bind(bytesOf(readAddressText(filters["token"], "token")));
      // Of either side as many as the page may have: some tokens are in nearly every pair.
      const sides = ["token0", "token1"].map((side) => pairs(` AND p.${side} = ${token}`));
      source = `(${sides.join(" UNION ")})`;
    }
    return snapshot.sql.query(`${pairSelect(source)} ${page}`, where.parameters);
  },
  item: pairJson,
  position: ({ height, log_index }) => [height, log_index],
};

interface EventRow {
  readonly pair: Buffer;
  readonly height: number;
  readonly log_index: number;
  readonly time: Date;
  readonly hash: Buffer;
  readonly sender: Buffer;
  readonly recipient: Buffer | null;
  readonly origin: Buffer;
  readonly is_confirmed: boolean | null;
}

interface SwapRow extends EventRow {
  readonly amount0_in: string;
  readonly amount1_in: string;
  readonly amount0_out: string;
  readonly amount1_out: string;
}

interface LiquidityRow extends EventRow {
  readonly kind: string;
  readonly amount0: string;
  readonly amount1: string;
}

/** What an account can be of a swap. */
const SIDES = ["sender", "recipient", "origin"] as const;

/** Rows of one table of events, of a pair or of an account. */
async function eventRows<Row>(table: "swap" | "liquidity", query: PageQuery): Promise<Row[]> {
  const { snapshot, filters, ceiling, after, limit, params } = query;
  const { sign, word } = directionOf(filters);
  const { from, to } = await readRange(snapshot, filters, s);
  const where = new Where().and("e.height BETWEEN ? AND ?", from, Math.min(to, ceiling));
  if (params["pair"] !== undefined) where.and("e.pair = ?", pairOf(params));
  if (after !== undefined) where.and(`(e.height, e.log_index) ${sign} (?, ?)`, ...after);
  const page = `ORDER BY e.height ${word}, e.log_index ${word} LIMIT ${limit}`;
  const events = (condition: string) =>
    `(SELECT e.* FROM ${s}.${table} e ${where.text()}${condition} ${page})`;
  let source = events("");
  if (filters["account"] !== undefined) {
    // Of each side as many as the page may have: in one look for all of them the database would go through
    // the swaps of everybody, because nearly all have the same few routers as their sender.
    const account = where.bind(bytesOf(readAddressText(filters["account"], "account")));
    source = SIDES.map((side) => events(` AND e.${side} = ${account}`)).join(" UNION ");
  }
  return snapshot.sql.query(
    `SELECT e.*, b.time, t.hash, p.is_confirmed FROM (${source}) e
     JOIN ${s}.block b USING (height) LEFT JOIN ${s}.pair p ON p.address = e.pair
     JOIN ${s}.transaction t ON t.height = e.height AND t.tx_index = e.tx_index ${page}`,
    where.parameters,
  );
}

function pairOf(params: Readonly<Record<string, string>>): Buffer {
  return bytesOf(readAddressText(params["pair"], "pair"));
}

function eventJson(row: EventRow) {
  return {
    id: `${row.height}-${row.log_index}`,
    pair: hexOf(row.pair),
    height: row.height,
    time: row.time.toISOString(),
    txHash: hexOf(row.hash),
    logIndex: row.log_index,
    sender: hexOf(row.sender),
    origin: hexOf(row.origin),
    to: hexOrNull(row.recipient),
    isConfirmed: row.is_confirmed === true,
  };
}

const SWAPS: ListKind<SwapRow> = {
  name: "swaps",
  filters: ["order", "account", ...RANGE],
  rows: (query) => eventRows("swap", query),
  item: (row) => {
    const net0 = BigInt(row.amount0_in) - BigInt(row.amount0_out);
    const net1 = BigInt(row.amount1_out) - BigInt(row.amount1_in);
    const isPriced = net0 * net1 > 0n;
    return {
      ...eventJson(row),
      amount0In: row.amount0_in,
      amount1In: row.amount1_in,
      amount0Out: row.amount0_out,
      amount1Out: row.amount1_out,
      price: isPriced ? (ratioText(net1, net0, PRICE_PLACES) ?? null) : null,
    };
  },
  position: ({ height, log_index }) => [height, log_index],
};

const LIQUIDITY: ListKind<LiquidityRow> = {
  name: "liquidity",
  filters: ["order", ...RANGE],
  rows: (query) => eventRows("liquidity", query),
  item: (row) => ({
    ...eventJson(row),
    kind: row.kind,
    amount0: row.amount0,
    amount1: row.amount1,
  }),
  position: ({ height, log_index }) => [height, log_index],
};

interface CandleRow {
  readonly start: Date;
  readonly open: string;
  readonly high: string;
  readonly low: string;
  readonly close: string;
  readonly volume0: string;
  readonly volume1: string;
  readonly swaps: string;
}

const CANDLES: ListKind<CandleRow> = {
  name: "candles",
  filters: ["interval", ...RANGE],
  rows: async (query) => {
    const { snapshot, filters, ceiling, after, limit, params } = query;
    const { from, to } = await readRange(snapshot, filters, s);
    if (from > Math.min(to, ceiling)) return [];
    const where = new Where();
    const width = `${where.bind(readInterval(filters))}::integer`;
    const startAt = (height: Height) =>
      `(SELECT ${binOf(width, "b.time")} FROM ${s}.block b WHERE b.height = ${where.bind(height)})`;
    where
      .and("c.pair = ?", pairOf(params))
      .and(`c.width = ${width}`)
      .and("c.open IS NOT NULL")
      .and(`c.start BETWEEN ${startAt(from)} AND ${startAt(Math.min(to, ceiling))}`);
    // What is behind the first page ended before the list's ceiling, and stays as it is.
    if (after !== undefined) where.and("c.start < ?::timestamptz", after[0]);
    return snapshot.sql.query(
      `SELECT start, open, high, low, close, volume0, volume1, swaps FROM ${s}.candle c
       ${where.text()} ORDER BY c.start DESC LIMIT ${limit}`,
      where.parameters,
    );
  },
  item: ({ start, open, high, low, close, volume0, volume1, swaps }) => {
    const price = (scaled: string) => decimalText(BigInt(scaled), PRICE_PLACES);
    return {
      time: start.toISOString(),
      open: price(open),
      high: price(high),
      low: price(low),
      close: price(close),
      volume0,
      volume1,
      swaps: Number(swaps),
    };
  },
  position: ({ start }) => [start.toISOString()],
};

/** Handlers of `/v1/dex`. */
export function dexRoutes(context: ApiContext): readonly HttpRoute[] {
  const list = <Row>(path: string, kind: ListKind<Row>): HttpRoute => ({
    method: "get",
    path,
    handler: (request) => listReply(context, kind, request),
  });
  return [
    list("/v1/dex/pairs", PAIRS),
    {
      method: "get",
      path: "/v1/dex/pairs/{pair}",
      handler: (request) =>
        atOneMoment(context, request, async (snapshot) => {
          const [row] = await snapshot.sql.query<PairRow>(
            `${pairSelect(`${s}.pair`)} WHERE p.address = $1`,
            [pairOf(request.params)],
          );
          if (row !== undefined) return { body: { meta: metaOf(snapshot), pair: pairJson(row) } };
          const details = { indexedHeight: snapshot.progress.height };
          throw new IndexerError("NOT_FOUND", "no such pair", { details });
        }),
    },
    list("/v1/dex/pairs/{pair}/swaps", SWAPS),
    list("/v1/dex/pairs/{pair}/liquidity", LIQUIDITY),
    list("/v1/dex/pairs/{pair}/candles", CANDLES),
    list("/v1/dex/swaps", SWAPS),
  ];
}
