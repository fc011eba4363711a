/** Charts of the console: coins against debts, how long things take, what every account holds. */
import { type Series, linesChart } from "../../web/html/chart.js";
import { type Content, el } from "../../web/html/element.js";
import { note, table } from "../../web/html/parts.js";
import { amount, type AssetDecimals, moment, momentText } from "../html/amounts.js";
import type { CoinsView, SpanView } from "../sources/answers.js";
import type { Texts } from "../text/catalogue.js";

/** The asset of the charts: the chain's own coin. */
const CHARTED = "TOKEN";

/** Lines of one chart: more cannot be told apart. */
const MAX_LINES = 3;

interface Words {
  readonly t: Texts;
  readonly decimals: AssetDecimals;
}

/** Coins against what customers are owed. */
export function floatChart(seen: readonly CoinsView[], { t, decimals }: Words): Content {
  const points = seen.map((one) => {
    const { at, accounts, coldUnits, inTransitUnits } = one;
    const chain = accounts.reduce((sum, { chainUnits }) => sum + chainUnits, 0n);
    const isWhole = coldUnits !== undefined && inTransitUnits !== undefined;
    return {
      at,
      chain,
      all: isWhole ? chain + coldUnits + inTransitUnits : undefined,
      // One of before says no more than what customers and the exchange itself are owed together.
      owed: one.owedUnits ?? one.availableUnits + one.heldUnits,
    };
  });
  const show = (units: bigint | undefined) => shownUnits(units, decimals);
  return chartWithTable(
    {
      title: t("floatAndLiabilities"),
      series: [
        { name: t("float"), points: points.map(({ at, chain }) => pointOf(at, chain)) },
        {
          name: t("allCoins"),
          points: points.flatMap(({ at, all }) => (all === undefined ? [] : [pointOf(at, all)])),
        },
        { name: t("liabilities"), points: points.map(({ at, owed }) => pointOf(at, owed)) },
      ],
      format: show,
      columns: [t("time"), t("float"), t("allCoins"), t("liabilities")],
      rows: points.map(({ at, chain, all, owed }) => [
        moment(at),
        show(chain),
        show(all),
        show(owed),
      ]),
      ends: [points[0]?.at, points.at(-1)?.at],
    },
    t,
  );
}

/** What every account holds. */
export function balanceChart(seen: readonly CoinsView[], { t, decimals }: Words): Content {
  const names = [
    ...new Set(seen.flatMap(({ accounts }) => accounts.map(({ account }) => account))),
  ];
  const unitsOf = ({ accounts }: Pick<CoinsView, "accounts">, name: string) =>
    accounts.find(({ account }) => account === name)?.chainUnits;
  const show = (units: bigint | undefined) => shownUnits(units, decimals);
  // Of many accounts those with the most coins are drawn; the table has all.
  const last = seen.at(-1) ?? { accounts: [] };
  const drawn = names
    .toSorted((left, right) => {
      const difference = (unitsOf(last, right) ?? 0n) - (unitsOf(last, left) ?? 0n);
      return difference > 0n ? 1 : difference < 0n ? -1 : 0;
    })
    .slice(0, MAX_LINES);
  return chartWithTable(
    {
      title: t("balancesOverTime"),
      series: drawn.map((name) => ({
        name: accountName(name, t),
        points: seen.flatMap((one) => {
          const units = unitsOf(one, name);
          return units === undefined ? [] : [pointOf(one.at, units)];
        }),
      })),
      format: show,
      columns: [t("time"), ...names.map((name) => accountName(name, t))],
      rows: seen.map((one) => [moment(one.at), ...names.map((name) => show(unitsOf(one, name)))]),
      ends: [seen[0]?.at, seen.at(-1)?.at],
    },
    t,
  );
}

function shownUnits(units: bigint | undefined, decimals: AssetDecimals): string {
  return units === undefined ? "—" : amount(units, CHARTED, decimals);
}

/** An account of the books in the words of people. */
export function accountName(account: string, t: Texts): string {
  if (account === "asset:deposit_addresses") return t("depositAddresses");
  if (account === "asset:wallet:others") return t("otherWallets");
  return account.replace(/^asset:wallet:/, `${t("wallet")} `);
}

/** How long things took: half of them, and nearly all. */
export function durationChart(title: string, spans: readonly SpanView[], t: Texts): Content {
  const milliseconds = (seconds: number) => BigInt(Math.round(seconds * 1_000));
  const show = (ms: bigint) => t("seconds", { seconds: (Number(ms) / 1_000).toFixed(1) });
  const line = (name: string, read: (span: SpanView) => number): Series => ({
    name,
    points: spans.map((span) => pointOf(span.to, milliseconds(read(span)))),
  });
  return chartWithTable(
    {
      title,
      series: [
        line(t("median"), ({ medianSeconds }) => medianSeconds),
        line(t("p95"), ({ p95Seconds }) => p95Seconds),
      ],
      format: show,
      columns: [t("until"), t("count"), t("median"), t("p95")],
      rows: spans.map((span) => [
        moment(span.to),
        span.count,
        show(milliseconds(span.medianSeconds)),
        show(milliseconds(span.p95Seconds)),
      ]),
      ends: [spans[0]?.from, spans.at(-1)?.to],
    },
    t,
  );
}

function pointOf(at: string, value: bigint) {
  return { x: Date.parse(at), value };
}

function chartWithTable(
  given: {
    readonly title: string;
    readonly series: readonly Series[];
    readonly format: (value: bigint) => string;
    readonly columns: readonly string[];
    readonly rows: readonly (readonly Content[])[];
    readonly ends: readonly [string | undefined, string | undefined];
  },
  t: Texts,
): Content {
  const { title, series, format, columns, rows, ends } = given;
  const [from = "", to = ""] = ends.map((at) => (at === undefined ? "" : momentText(at)));
  const chart = linesChart(series, { title, from, to, format });
  if (chart === undefined) return note("info", `${title}: ${t("chartEmpty")}`);
  return [
    chart,
    el(
      "details",
      {},
      el("summary", {}, t("sameAsTable")),
      table({
        caption: title,
        columns,
        numeric: columns.map((_, index) => index).slice(1),
        empty: t("noEntries"),
        rows: rows.toReversed(),
      }),
    ),
  ];
}
