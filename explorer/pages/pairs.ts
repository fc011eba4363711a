/** Pairs of decentralised exchanges (Uniswap V2): reserves from the contract, candles from the indexer. */
import { type Address, parseAddress, toChecksumAddress } from "../../chain/address.js";
import { PAIR_SELECTORS } from "../../chain/evm/erc20.js";
import { type Hex } from "../../chain/hex.js";
import { RpcError } from "../../rpc-client/errors.js";
import { readAddress } from "../decode/identifiers.js";
import { shiftPoint, shownPrice } from "../decode/prices.js";
import { badRequest } from "../../web/errors.js";
import { candleChart } from "../../web/html/chart.js";
import { type Content, el } from "../../web/html/element.js";
import { hasWholeTokens, utcTime } from "../../web/html/format.js";
import { badge, code, facts, note, pager, section, table, time } from "../../web/html/parts.js";
import { addressLink } from "../html/chain-links.js";
import type { Page, PageRequest, PageRoute } from "../server/page.js";
import type { IndexedCandle } from "../sources/indexer-source.js";
import type { Texts } from "../text/catalogue.js";
import { listedToken, type PageContext, tokenLink } from "./context.js";
import { ask, type Indexed, indexedNote, isNoIndex } from "./indexed.js";
import { amountOf } from "./moves.js";

/** Gas of one question. */
const GAS = 100_000n;

/** Spans of candles that can be chosen. */
const INTERVALS = ["1m", "5m", "1h", "1d"] as const;

/** "/pairs" and "/pair/<contract>". */
export function pairRoutes(context: PageContext): readonly PageRoute[] {
  return [
    {
      path: "/pairs",
      hasParameter: false,
      query: ["cursor"],
      handle: (request) => pairs(context, request),
    },
    {
      path: "/pair",
      hasParameter: true,
      isCostly: true,
      query: ["interval"],
      handle: (request) => pair(context, request),
    },
  ];
}

async function pairs(context: PageContext, { t, query, signal }: PageRequest): Promise<Page> {
  const found = await ask(
    context,
    context.indexer.pairs(query.get("cursor") ?? undefined, signal),
    signal,
  );
  return {
    title: t("pairs"),
    content: [
      indexedNote(found, t),
      isNoIndex(found)
        ? undefined
        : table({
            caption: t("pairs"),
            columns: [t("pair"), `${t("token")} 0`, `${t("token")} 1`, t("reserves")],
            numeric: [3],
            empty: t("noPairs"),
            rows: found.items.map(
              ({ pair: address, token0, token1, reserve0, reserve1, isConfirmed }) => [
                [
                  el("a", { href: `/pair/${address}` }, code(toChecksumAddress(address))),
                  isConfirmed ? undefined : [" ", badge("warn", t("unconfirmedPair"))],
                ],
                tokenLink(context, token0, t),
                tokenLink(context, token1, t),
                `${amountOf(context, token0, reserve0, t)} · ${amountOf(context, token1, reserve1, t)}`,
              ],
            ),
          }),
      !isNoIndex(found) && found.next !== undefined
        ? pager(t, { older: `/pairs?cursor=${encodeURIComponent(found.next)}` })
        : undefined,
    ],
  };
}

async function pair(context: PageContext, request: PageRequest): Promise<Page> {
  const { parameter, query, t, signal } = request;
  const address = readAddress(parameter);
  if (address === undefined) throw badRequest("not an address");
  const interval = INTERVALS.find((one) => one === (query.get("interval") ?? "1h"));
  if (interval === undefined) throw badRequest("no such interval");
  const [state, candles, indexed] = await Promise.all([
    pairState(context, address, signal),
    ask(context, context.indexer.candles(address, interval, signal), signal),
    ask(context, context.indexer.pair(address, signal), signal),
  ]);
  if (state === undefined) {
    const content = [note("warning", t("notAPair")), el("p", {}, addressLink(address, t, false))];
    return { status: 404, title: t("notFoundTitle"), content };
  }
  const { token0, token1, reserve0, reserve1 } = state;
  const known = isNoIndex(indexed) ? undefined : indexed.items[0];
  const decimalsOf = (token: Address, claimed: number | undefined) =>
    listedToken(context, token).decimals ?? claimed;
  return {
    title: t("pair"),
    content: [
      // A contract vouches for itself: only the indexer can take the warning away.
      known?.isConfirmed === true
        ? undefined
        : note("warning", t(isNoIndex(indexed) ? "unaskedPairText" : "unconfirmedPairText")),
      facts([
        [t("contract"), addressLink(address, t, false)],
        [`${t("token")} 0`, tokenLink(context, token0, t)],
        [`${t("token")} 1`, tokenLink(context, token1, t)],
        [`${t("reserves")} 0`, amountOf(context, token0, reserve0, t)],
        [`${t("reserves")} 1`, amountOf(context, token1, reserve1, t)],
        [t("price0"), known?.price0 === undefined ? undefined : shownPrice(known.price0)],
        [t("price1"), known?.price1 === undefined ? undefined : shownPrice(known.price1)],
        [t("swaps"), known?.swaps],
        [
          t("dayVolume"),
          known?.volume0Day === undefined || known.volume1Day === undefined
            ? undefined
            : `${amountOf(context, token0, known.volume0Day, t)} · ` +
              amountOf(context, token1, known.volume1Day, t),
        ],
      ]),
      section(
        t("candles"),
        intervalLinks(address, interval, t),
        indexedNote(candles, t),
        candleContent(
          candles,
          pointShift(decimalsOf(token0, known?.decimals0), decimalsOf(token1, known?.decimals1)),
          t,
        ),
      ),
    ],
  };
}

function intervalLinks(address: Address, chosen: string, t: Texts): Content {
  return el(
    "nav",
    { class: "pager", "aria-label": t("interval") },
    INTERVALS.map((one) =>
      el(
        "a",
        {
          href: `/pair/${address}?interval=${one}`,
          "aria-current": one === chosen ? "true" : undefined,
        },
        one,
      ),
    ),
  );
}

/**
 * Places by which the point moves from prices in base units to prices in whole tokens; undefined
 * where the decimals are not known or make no sense.
 */
function pointShift(
  decimals0: number | undefined,
  decimals1: number | undefined,
): number | undefined {
  return hasWholeTokens(decimals0) && hasWholeTokens(decimals1) ? decimals0 - decimals1 : undefined;
}

function candleContent(
  found: Indexed<IndexedCandle>,
  shift: number | undefined,
  t: Texts,
): Content {
  if (isNoIndex(found)) return undefined;
  const items = found.items.map(({ timestampSeconds, open, high, low, close }) => {
    const prices = [open, high, low, close].map((price) => shiftPoint(price, shift ?? 0));
    return { timestampSeconds, prices };
  });
  const text = (item: (typeof items)[number] | undefined) =>
    item === undefined ? "" : utcTime(item.timestampSeconds);
  return [
    items.length === 0
      ? undefined
      : el("p", {}, t(shift === undefined ? "pricesInUnits" : "pricesInTokens")),
    candleChart(
      items.map(({ timestampSeconds, prices }) => {
        const [open = 0, high = 0, low = 0, close = 0] = prices.map(Number);
        return { x: timestampSeconds, open, high, low, close };
      }),
      { title: t("priceChart"), from: text(items[0]), to: text(items.at(-1)) },
    ),
    table({
      caption: t("candles"),
      columns: [t("time"), t("open"), t("high"), t("low"), t("close")],
      numeric: [1, 2, 3, 4],
      empty: t("noCandles"),
      rows: items
        .toReversed()
        .map(({ timestampSeconds, prices }) => [time(timestampSeconds), ...prices.map(shownPrice)]),
    }),
  ];
}

/** What a pair holds. */
interface PairState {
  readonly token0: Address;
  readonly token1: Address;
  readonly reserve0: bigint;
  readonly reserve1: bigint;
}

/** Undefined where the contract does not answer like a pair. */
async function pairState(
  { chain }: PageContext,
  pairAddress: Address,
  signal: AbortSignal,
): Promise<PairState | undefined> {
  const question = async (data: Hex): Promise<Hex> => {
    try {
      return await chain.evm.call({ to: pairAddress, gas: GAS, data }, "latest", { signal });
    } catch (error) {
      if (error instanceof RpcError) return "0x";
      throw error;
    }
  };
  const [first, second, reserves] = await Promise.all(
    [PAIR_SELECTORS.token0, PAIR_SELECTORS.token1, PAIR_SELECTORS.reserves].map(question),
  );
  const [token0, token1] = [addressOf(first), addressOf(second)];
  if (token0 === undefined || token1 === undefined || reserves?.length !== 2 + 3 * 64) {
    return undefined;
  }
  const word = (index: number) => BigInt(`0x${reserves.slice(2 + 64 * index, 66 + 64 * index)}`);
  return { token0, token1, reserve0: word(0), reserve1: word(1) };
}

function addressOf(word: Hex | undefined): Address | undefined {
  if (word === undefined || !/^0x0{24}[0-9a-f]{40}$/.test(word)) return undefined;
  return parseAddress(`0x${word.slice(26)}`);
}
