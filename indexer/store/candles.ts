/**
 * Candles as the index keeps them: of every width, written with the swaps that they are made of, so
 * that reading them costs as many rows as are shown.
 */
import type { IndexSchema } from "./schema.js";

/** Widths in seconds, by the API's names. */
export const INTERVAL_SECONDS = {
  "1m": 60,
  "5m": 300,
  "15m": 900,
  "1h": 3_600,
  "4h": 14_400,
  "1d": 86_400,
  "1w": 604_800,
} as const;

/** A Monday, so that weeks begin on one; all narrower intervals divide it. */
const INTERVAL_ORIGIN = "2001-01-01T00:00:00Z";

/**
 * Places behind the point of prices in base units: tokens differ by some eighteen decimals, and what
 * is left has to tell prices apart.
 */
export const PRICE_PLACES = 36;

const NARROWEST = INTERVAL_SECONDS["1m"];

/** The start of the interval that a moment lies in. */
export function binOf(seconds: string | number, moment: string): string {
  return `date_bin(${seconds} * interval '1 second', ${moment}, '${INTERVAL_ORIGIN}')`;
}

/** Whether a logged event came after the log by which its pair `p` was first named. */
export function isOfPair(event: string): string {
  return `(${event}.height, ${event}.log_index) > (p.height, p.log_index)`;
}

/**
 * Merges the staged swaps of known pairs into the candles. Batches come in the order of the chain:
 * what is there opened before, and what comes closes.
 */
export function mergeCandles(s: IndexSchema): string {
  const widths = Object.values(INTERVAL_SECONDS).map((seconds) => `(${seconds})`);
  const [given, taken] = ["w.amount0_in - w.amount0_out", "w.amount1_out - w.amount1_in"];
  return `INSERT INTO ${s}.candle AS c
     WITH minute AS (
       SELECT pair, start, (array_agg(price ORDER BY height, log_index)
           FILTER (WHERE price IS NOT NULL))[1] AS open,
         max(price) AS high, min(price) AS low,
         (array_agg(price ORDER BY height DESC, log_index DESC)
           FILTER (WHERE price IS NOT NULL))[1] AS close,
         sum(volume0) AS volume0, sum(volume1) AS volume1, count(*) AS swaps
       FROM (SELECT w.pair, ${binOf(NARROWEST, "b.time")} AS start, w.height, w.log_index,
           CASE WHEN (${given}) * (${taken}) > 0
             THEN div((${taken}) * 1e${PRICE_PLACES}::numeric, ${given}) END AS price,
           w.amount0_in + w.amount0_out AS volume0, w.amount1_in + w.amount1_out AS volume1
         FROM stage_swap w JOIN ${s}.pair p ON p.address = w.pair AND ${isOfPair("w")}
         JOIN ${s}.block b ON b.height = w.height) w
       GROUP BY pair, start)
     SELECT pair, width, ${binOf("width", "start")} AS bin,
       (array_agg(open ORDER BY start) FILTER (WHERE open IS NOT NULL))[1], max(high), min(low),
       (array_agg(close ORDER BY start DESC) FILTER (WHERE close IS NOT NULL))[1],
       sum(volume0), sum(volume1), sum(swaps)
     FROM minute CROSS JOIN (VALUES ${widths.join(", ")}) i (width)
     GROUP BY pair, width, bin
     ON CONFLICT (pair, width, start) DO UPDATE SET
       open = coalesce(c.open, excluded.open), high = greatest(c.high, excluded.high),
       low = least(c.low, excluded.low), close = coalesce(excluded.close, c.close),
       volume0 = c.volume0 + excluded.volume0, volume1 = c.volume1 + excluded.volume1,
       swaps = c.swaps + excluded.swaps`;
}

/**
 * Volumes of a pair `p` in the day up to the newest block, to the block, as `day0` and `day1`: of
 * whole hours and minutes from the candles, of the rest from its swaps. Needs `dayBounds`.
 */
export function dayVolume(s: IndexSchema): string {
  const sums = "volume0, volume1";
  const kept = (seconds: number) =>
    `SELECT ${sums} FROM ${s}.candle WHERE pair = p.address AND width = ${seconds}`;
  return `SELECT sum(volume0) AS day0, sum(volume1) AS day1 FROM (
      ${kept(INTERVAL_SECONDS["1h"])} AND start >= (SELECT hour FROM day)
      UNION ALL ${kept(NARROWEST)}
        AND start >= (SELECT minute FROM day) AND start < (SELECT hour FROM day)
      UNION ALL SELECT amount0_in + amount0_out, amount1_in + amount1_out FROM ${s}.swap
        WHERE pair = p.address AND height >= (SELECT first FROM day)
          AND height < (SELECT behind FROM day)) v`;
}

/** The day's parts: its first block, its first whole minute and that one's block, its first hour. */
export function dayBounds(s: IndexSchema): string {
  const next = (seconds: number, moment: string) =>
    `${binOf(seconds, `${moment} - interval '1 microsecond'`)} + ${seconds} * interval '1 second'`;
  const heightAt = (condition: string) =>
    `(SELECT height FROM ${s}.block WHERE time ${condition} ORDER BY time, height LIMIT 1)`;
  return `day AS MATERIALIZED (
    SELECT minute, ${next(INTERVAL_SECONDS["1h"], "minute")} AS hour,
      ${heightAt("> since")} AS first, ${heightAt(">= minute")} AS behind
    FROM (SELECT since, ${next(NARROWEST, "since")} AS minute
      FROM (SELECT time - interval '1 day' AS since FROM ${s}.progress) x) y)`;
}
