/** Uniswap V2 pairs, their swaps, liquidity and candles. */
import type { HttpRoute } from "../../runtime/http/http-server.js";
import { IndexerError } from "../errors.js";
import { LIVE_SCHEMA as s } from "../store/schema.js";
import { INTERVAL_ORIGIN, readInterval } from "./address-routes.js";
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

const PAIR_SELECT = `SELECT p.*, b.time, l.supply_logged AS lp_supply, k0.symbol AS symbol0,
    k0.decimals AS decimals0, k1.symbol AS symbol1, k1.decimals AS decimals1, d.day0, d.day1
  FROM ${s}.pair p JOIN ${s}.block b ON b.height = p.height
  LEFT JOIN ${s}.token l ON l.address = p.address
  LEFT JOIN ${s}.token k0 ON k0.address = p.token0
  LEFT JOIN ${s}.token k1 ON k1.address = p.token1
  LEFT JOIN LATERAL (
    SELECT sum(w.amount0_in + w.amount0_out) AS day0, sum(w.amount1_in + w.amount1_out) AS day1
    FROM ${s}.swap w WHERE w.pair = p.address AND w.height >= (
      SELECT height FROM ${s}.block
      WHERE time > (SELECT time - interval '1 day' FROM ${s}.progress)
      ORDER BY time, height LIMIT 1)
  ) d ON true`;

/** Places behind the point of a price. */
const PRICE_PLACES = 18;

/** `numerator / denominator` as a decimal text, cut off; undefined without a denominator. */
export function ratioText(numerator: bigint, denominator: bigint): string | undefined {
  if (denominator === 0n) return undefined;
  const scaled = (numerator * 10n ** BigInt(PRICE_PLACES)) / denominator;
  const digits = scaled.toString().padStart(PRICE_PLACES + 1, "0");
  const fraction = digits.slice(-PRICE_PLACES).replace(/0+$/, "");
  const whole = digits.slice(0, -PRICE_PLACES);
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
    price0: isEmpty ? null : (ratioText(whole1, whole0) ?? null),
    price1: isEmpty ? null : (ratioText(whole0, whole1) ?? null),
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
    if (filters["token"] !== undefined) {
      const token = bytesOf(readAddressText(filters["token"], "token"));
      where.and("(p.token0 = ? OR p.token1 = ?)", token, token);
    }
    if (after !== undefined) where.and("(p.height, p.log_index) < (?, ?)", ...after);
    return snapshot.sql.query(
      `${PAIR_SELECT} ${where.text()}
       ORDER BY p.height DESC, p.log_index DESC LIMIT ${limit}`,
      where.parameters,
    );
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

/** Rows of one table of events, of a pair or of an account. */
async function eventRows<Row>(table: "swap" | "liquidity", query: PageQuery): Promise<Row[]> {
  const { snapshot, filters, ceiling, after, limit, params } = query;
  const { sign, word } = directionOf(filters);
  const { from, to } = await readRange(snapshot, filters, s);
  const where = new Where().and("e.height BETWEEN ? AND ?", from, Math.min(to, ceiling));
  if (params["pair"] !== undefined) where.and("e.pair = ?", pairOf(params));
  if (filters["account"] !== undefined) {
    const account = bytesOf(readAddressText(filters["account"], "account"));
    where.and("(e.sender = ? OR e.recipient = ? OR e.origin = ?)", account, account, account);
  }
  if (after !== undefined) where.and(`(e.height, e.log_index) ${sign} (?, ?)`, ...after);
  return snapshot.sql.query(
    `SELECT e.*, b.time, t.hash FROM ${s}.${table} e JOIN ${s}.block b USING (height)
     JOIN ${s}.transaction t ON t.height = e.height AND t.tx_index = e.tx_index ${where.text()}
     ORDER BY e.height ${word}, e.log_index ${word} LIMIT ${limit}`,
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
      price: isPriced ? (ratioText(net1, net0) ?? null) : null,
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
  readonly bin: Date;
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
    const where = new Where()
      .and("e.pair = ?", pairOf(params))
      .and("e.height BETWEEN ? AND ?", from, Math.min(to, ceiling))
      .and("(e.amount0_in - e.amount0_out) * (e.amount1_out - e.amount1_in) > 0");
    const width = where.bind(readInterval(filters));
    const bin = `date_bin(${width}::interval, b.time, '${INTERVAL_ORIGIN}')`;
    if (after !== undefined) where.and(`${bin} < ?::timestamptz`, after[0]);
    return snapshot.sql.query(
      `SELECT bin, (array_agg(price ORDER BY height, log_index))[1] AS open, max(price) AS high,
         min(price) AS low, (array_agg(price ORDER BY height DESC, log_index DESC))[1] AS close,
         sum(volume0) AS volume0, sum(volume1) AS volume1, count(*) AS swaps
       FROM (SELECT ${bin} AS bin, e.height, e.log_index,
           div((e.amount1_out - e.amount1_in) * 1e${PRICE_PLACES}::numeric,
             e.amount0_in - e.amount0_out) AS price,
           e.amount0_in + e.amount0_out AS volume0, e.amount1_in + e.amount1_out AS volume1
         FROM ${s}.swap e JOIN ${s}.block b USING (height) ${where.text()}) w
       GROUP BY bin ORDER BY bin DESC LIMIT ${limit}`,
      where.parameters,
    );
  },
  item: (row) => {
    const price = (scaled: string) => ratioText(BigInt(scaled), 10n ** BigInt(PRICE_PLACES)) ?? "0";
    return {
      time: row.bin.toISOString(),
      open: price(row.open),
      high: price(row.high),
      low: price(row.low),
      close: price(row.close),
      volume0: row.volume0,
      volume1: row.volume1,
      swaps: Number(row.swaps),
    };
  },
  position: ({ bin }) => [bin.toISOString()],
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
      handler: ({ params }) =>
        atOneMoment(context, async (snapshot) => {
          const [row] = await snapshot.sql.query<PairRow>(`${PAIR_SELECT} WHERE p.address = $1`, [
            pairOf(params),
          ]);
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
