/** How many coins there are, and how that changed. */
import { el, type Content } from "../../web/html/element.js";
import { lineChart, linesChart, type Point } from "../../web/html/chart.js";
import { signedTokenAmount, tokenAmount } from "../../web/html/format.js";
import { facts, note, section, table } from "../../web/html/parts.js";
import { blockLink } from "../html/chain-links.js";
import type { Page, PageRequest, PageRoute } from "../server/page.js";
import type { ChainSource } from "../sources/chain-source.js";
import type { SupplyParts } from "../sources/consensus-source.js";
import type { Texts } from "../text/catalogue.js";
import type { PageContext } from "./context.js";
import { ask, indexedNote, isNoIndex } from "./indexed.js";

/** Places of the charts. */
const POINTS = 40;

/** "/supply". */
export function supplyRoutes(context: PageContext): readonly PageRoute[] {
  return [
    {
      path: "/supply",
      hasParameter: false,
      isCostly: true,
      handle: (request) => supply(context, request),
    },
  ];
}

async function supply(context: PageContext, { t, signal }: PageRequest): Promise<Page> {
  const { chain, consensus, indexer } = context;
  const head = await chain.head({ signal });
  const heights = placesUpTo(head.height);
  const nothing = () => heights.map(() => undefined);
  const [totals, parts, indexed, sums] = await Promise.all([
    consensus.supplies(heights, { signal }).catch(nothing),
    consensus.supplyParts(heights, { signal }).catch(nothing),
    ask(context, indexer.supply(signal), signal),
    chain.journal(head.hash, { signal }).then(sumsOf),
  ]);
  const points = heights.flatMap((x, index): Point[] => {
    const value = totals[index];
    return value === undefined ? [] : [{ x, value }];
  });
  const [first, last] = [points[0], points.at(-1)];
  const rows = isNoIndex(indexed) ? [] : indexed.items;
  const burned = rows.map(({ height, burnedAtoken }) => ({ x: height, value: burnedAtoken }));
  const minted = rows.map(({ height, mintedAtoken }) => ({ x: height, value: mintedAtoken }));
  return {
    title: t("supply"),
    content: [
      facts([
        [t("totalSupply"), last === undefined ? undefined : tokenAmount(last.value)],
        // The newest may not be answered yet.
        [t("asOfBlock"), blockLink(last?.x ?? head.height)],
        [t("mintedInBlock"), sums === undefined ? undefined : tokenAmount(sums.mintedAtoken)],
        [t("burnedInBlock"), sums === undefined ? undefined : tokenAmount(sums.burnedAtoken)],
        [
          t("changeSinceFirst"),
          first === undefined || last === undefined
            ? undefined
            : signedTokenAmount(last.value - first.value),
        ],
      ]),
      el("p", {}, t("supplyText")),
      partsSection(heights, parts, t),
      section(t("totalSupply"), chartWithTable(points, t("totalSupply"), t)),
      section(
        t("mintedAndBurned"),
        indexedNote(indexed, t),
        minted.length > 1 ? chartWithTable(minted, t("minted"), t) : undefined,
        burned.length > 1 ? chartWithTable(burned, t("burned"), t) : undefined,
      ),
    ],
  };
}

/** What a journal tells of the supply: nobody waits for anything else with all of a block in hand. */
function sumsOf(journal: Awaited<ReturnType<ChainSource["journal"]>>) {
  if (typeof journal !== "object") return undefined;
  const { mintedAtoken, burnedAtoken } = journal;
  return { mintedAtoken, burnedAtoken };
}

/** Who has the coins: anybody, nobody any more, or accounts that have to wait for them. */
function partsSection(
  heights: readonly number[],
  parts: readonly (SupplyParts | undefined)[],
  t: Texts,
): Content {
  const known = heights.flatMap((x, index) => {
    const found = parts[index];
    return found === undefined ? [] : [{ x, ...found }];
  });
  const last = known.at(-1);
  if (last === undefined) return undefined;
  const points = (of: (one: SupplyParts) => bigint): readonly Point[] =>
    known.map((one) => ({ x: one.x, value: of(one) }));
  const title = `${t("atBurnAddress")}, ${t("lockedCoins")}`;
  return section(
    t("supplyParts"),
    facts([
      [t("circulating"), tokenAmount(last.circulatingAtoken)],
      [t("lockedCoins"), tokenAmount(last.lockedAtoken)],
      [t("atBurnAddress"), tokenAmount(last.burnedAtoken)],
    ]),
    linesChart(
      [
        { name: t("atBurnAddress"), points: points(({ burnedAtoken }) => burnedAtoken) },
        { name: t("lockedCoins"), points: points(({ lockedAtoken }) => lockedAtoken) },
      ],
      {
        title,
        from: `${t("block")} ${known[0]?.x ?? 0}`,
        to: `${t("block")} ${last.x}`,
        format: tokenAmount,
      },
    ),
    el(
      "details",
      {},
      el("summary", {}, t("sameAsTable")),
      table({
        caption: t("supplyParts"),
        columns: [t("block"), t("circulating"), t("lockedCoins"), t("atBurnAddress")],
        numeric: [1, 2, 3],
        empty: t("noHistory"),
        rows: known.map(({ x, circulatingAtoken, lockedAtoken, burnedAtoken }) => [
          blockLink(x),
          tokenAmount(circulatingAtoken),
          tokenAmount(lockedAtoken),
          tokenAmount(burnedAtoken),
        ]),
      }),
    ),
  );
}

/** Even distances from the first block; that of the genesis is not asked of consensus. */
function placesUpTo(headHeight: number): number[] {
  const last = Math.max(1, headHeight);
  const count = Math.min(POINTS, last);
  return Array.from({ length: count }, (_, index) =>
    count === 1 ? last : 1 + Math.round((index * (last - 1)) / (count - 1)),
  );
}

function chartWithTable(points: readonly Point[], title: string, t: Texts): Content {
  const chart = lineChart(points, {
    title,
    from: `${t("block")} ${points[0]?.x ?? 0}`,
    to: `${t("block")} ${points.at(-1)?.x ?? 0}`,
    format: tokenAmount,
  });
  if (chart === undefined) return note("info", t("noHistory"));
  return [
    chart,
    el(
      "details",
      {},
      el("summary", {}, t("sameAsTable")),
      table({
        caption: title,
        columns: [t("block"), t("amount")],
        numeric: [1],
        empty: t("noHistory"),
        rows: points.map(({ x, value }) => [blockLink(x), tokenAmount(value)]),
      }),
    ),
  ];
}
