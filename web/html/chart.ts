/**
 * Charts as SVG, made on the server: they need neither script nor style of their own, and the
 * table behind them says the same to whoever does not see them.
 */
import { type Content, el } from "./element.js";

/** A value at a place on the horizontal axis. */
export interface Point {
  readonly x: number;
  readonly value: bigint;
}

/** One candle. */
export interface Candle {
  readonly x: number;
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
}

/** What every chart says of itself. */
interface ChartText {
  /** What is shown, for those who do not see it. */
  readonly title: string;
  /** Under the axis, at its two ends. */
  readonly from: string;
  readonly to: string;
}

const WIDTH = 720;
const HEIGHT = 220;
const LEFT = 8;
/** Room for the highest value, which stands above the lines and not in them. */
const TOP = 24;
const BOTTOM = 28;

/** Parts of the plot's height; sums of atoken are made small enough for a number with this. */
const STEPS = 10_000n;

/** A line over points in rising order of `x`; undefined for fewer than two. */
export function lineChart(
  points: readonly Point[],
  text: ChartText & { readonly format: (value: bigint) => string },
): Content {
  return linesChart([{ name: undefined, points }], text);
}

/** Points in rising order of `x`, and what they are called where there are several lines. */
export interface Series {
  readonly name: string | undefined;
  readonly points: readonly Point[];
}

/**
 * Lines on one scale, told apart by their strokes and named below; undefined where none has two points.
 */
export function linesChart(
  series: readonly Series[],
  text: ChartText & { readonly format: (value: bigint) => string },
): Content {
  const drawn = series.filter(({ points }) => points.length >= 2);
  const all = drawn.flatMap(({ points }) => points);
  if (all.length === 0) return undefined;
  const values = all.map(({ value }) => value);
  const least = values.reduce((low, value) => (value < low ? value : low));
  const most = values.reduce((high, value) => (value > high ? value : high));
  const span = most - least;
  const share = (value: bigint) =>
    span === 0n ? 0.5 : Number(((value - least) * STEPS) / span) / Number(STEPS);
  const across = acrossOf(all.map(({ x }) => x).toSorted((left, right) => left - right));
  const kinds = drawn.map((_, index) => (index === 0 ? "line" : `line line-${(index % 3) + 1}`));
  return frame(
    text,
    [
      ...drawn.map(({ points }, index) =>
        el("polyline", {
          class: kinds[index],
          points: points.map(({ x, value }) => `${across(x)},${down(share(value))}`).join(" "),
          fill: "none",
        }),
      ),
      el("text", { x: LEFT, y: TOP - 8, class: "value" }, text.format(most)),
      span === 0n
        ? undefined
        : el("text", { x: LEFT, y: HEIGHT - BOTTOM - 4, class: "value" }, text.format(least)),
    ],
    drawn.map(({ name }, index) => (name === undefined ? undefined : legend(kinds[index], name))),
  );
}

/** A short piece of a line beside what it is called. */
function legend(kind: string | undefined, name: string): Content {
  const line = el("line", { class: kind, x1: 0, x2: 28, y1: 6, y2: 6 });
  return el(
    "span",
    { class: "legend" },
    el(
      "svg",
      { viewBox: "0 0 28 12", width: 28, height: 12, role: "img", "aria-label": name },
      line,
    ),
    " ",
    name,
  );
}

/** Candles in rising order of `x`; undefined for none. */
export function candleChart(candles: readonly Candle[], text: ChartText): Content {
  if (candles.length === 0) return undefined;
  const least = Math.min(...candles.map(({ low }) => low));
  const most = Math.max(...candles.map(({ high }) => high));
  const share = (price: number) => (most === least ? 0.5 : (price - least) / (most - least));
  const slot = (WIDTH - 2 * LEFT) / candles.length;
  const marks = candles.map(({ open, high, low, close }, index) => {
    const middle = round(LEFT + slot * (index + 0.5));
    const [top, bottom] = [Math.max(open, close), Math.min(open, close)].map((price) =>
      down(share(price)),
    );
    const height = Math.max(1, (bottom ?? 0) - (top ?? 0));
    return el(
      "g",
      { class: close >= open ? "rise" : "fall" },
      el("line", { x1: middle, x2: middle, y1: down(share(high)), y2: down(share(low)) }),
      el("rect", {
        x: round(middle - slot * 0.3),
        y: top,
        width: round(slot * 0.6),
        height: round(height),
      }),
    );
  });
  return frame(text, [
    ...marks,
    el("text", { x: LEFT, y: TOP - 8, class: "value" }, String(most)),
    el("text", { x: LEFT, y: HEIGHT - BOTTOM - 4, class: "value" }, String(least)),
  ]);
}

function frame(
  { title, from, to }: ChartText,
  content: readonly Content[],
  legends: readonly Content[] = [],
): Content {
  return el(
    "figure",
    { class: "chart" },
    el(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title, focusable: "false" },
      el("line", {
        class: "axis",
        x1: LEFT,
        x2: WIDTH - LEFT,
        y1: HEIGHT - BOTTOM,
        y2: HEIGHT - BOTTOM,
      }),
      content,
      el("text", { x: LEFT, y: HEIGHT - 8 }, from),
      el("text", { x: WIDTH - LEFT, y: HEIGHT - 8, "text-anchor": "end" }, to),
    ),
    el("figcaption", {}, title, " ", legends),
  );
}

function acrossOf(places: readonly number[]): (x: number) => number {
  const first = places[0] ?? 0;
  const width = (places.at(-1) ?? 0) - first || 1;
  return (x) => round(LEFT + ((x - first) / width) * (WIDTH - 2 * LEFT));
}

function down(share: number): number {
  return round(TOP + (1 - share) * (HEIGHT - TOP - BOTTOM));
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
