/** The first page, and the list of blocks. */
import {
  blockAgeSeconds,
  blockAgeVerdict,
  intervalOfBlocks,
} from "../../chain/consensus/block-age.js";
import { tokenAmount } from "../../web/html/format.js";
import { type Content, el } from "../../web/html/element.js";
import { badge, facts, note, pager, section, table, time } from "../../web/html/parts.js";
import { addressLink, blockLink, proposerLink, transactionLink } from "../html/chain-links.js";
import { limitedSignal } from "../../runtime/process/task.js";
import { badRequest } from "../../web/errors.js";
import { readHeight } from "../decode/identifiers.js";
import type { PageRequest, PageRoute } from "../server/page.js";
import type { BlockSummary } from "../sources/chain-source.js";
import type { TransactionView } from "../sources/evm-json.js";
import type { Texts } from "../text/catalogue.js";
import type { PageContext } from "./context.js";
import { ask, isNoIndex } from "./indexed.js";

/** Rows of the lists on the first page. */
const NEWEST = 12;

/** Longest wait for the indexer on the first page, which is whole without it. */
const INDEXER_WAIT_MS = 1_000;

/** Rows of the list of blocks. */
const BLOCKS = 30;

/** "/" and "/blocks". */
export function homeRoutes(context: PageContext): readonly PageRoute[] {
  return [
    { path: "/", hasParameter: false, handle: (request) => home(context, request) },
    {
      path: "/blocks",
      hasParameter: false,
      query: ["before"],
      handle: (request) => blocks(context, request),
    },
  ];
}

async function home(context: PageContext, { t, signal }: PageRequest) {
  const { chain, consensus, clock, network } = context;
  const head = await chain.head({ signal });
  const heights = downFrom(head.height, NEWEST);
  const [newest, counts, [supply]] = await Promise.all([
    chain.keptBlocks(heights, { signal }),
    countsOf(context, heights, signal),
    consensus.supplies([head.height], { signal }).catch(() => [undefined]),
  ]);
  const transactions = await newestTransactions(context, newest, signal);
  // Block 0 has the time at which the chain was meant to begin, which may be long before block 1.
  const times = newest.filter(({ height }) => height > 0).map((block) => block.timestampSeconds);
  const age = Math.round(blockAgeSeconds(head.timestampSeconds * 1_000, clock.nowMs()));
  const content = el(
    "div",
    { id: "live", "data-live": "" },
    facts([
      [t("newestBlock"), blockLink(head.height)],
      [t("chainHealth"), health(age, intervalOfBlocks(times), t)],
      [t("time"), time(head.timestampSeconds)],
      [t("totalSupply"), supply === undefined ? undefined : tokenAmount(supply)],
      [t("chainIds"), `${network.evmChainId} · ${network.cosmosChainId}`],
    ]),
    section(t("latestBlocks"), blockTable(newest, counts, t)),
    section(
      t("latestEvmTransactions"),
      transactions.length === 0
        ? el("p", { class: "empty" }, t("noneInNewest"))
        : transactionTable(transactions, t),
    ),
  );
  return { title: t("home"), content, scripts: ["live" as const] };
}

/** Whether the chain moves, with the age of its newest block in whole seconds. */
function health(ageSeconds: number, intervalMs: number | undefined, t: Texts): Content {
  const isWell = blockAgeVerdict(ageSeconds, intervalMs) === "pass";
  const word = isWell ? "moving" : ageSeconds < 0 ? "clocksDiffer" : "standingStill";
  const age =
    ageSeconds < 0
      ? t("blockAhead", { seconds: -ageSeconds })
      : t("blockAge", { seconds: ageSeconds });
  return [badge(isWell ? "good" : "bad", t(word)), " ", age];
}

async function blocks(context: PageContext, { t, query, signal }: PageRequest) {
  const { chain } = context;
  const head = await chain.head({ signal });
  const before = query.get("before");
  const above = before === null ? head.height + 1 : readHeight(before);
  if (above === undefined) throw badRequest("before is a height");
  const top = Math.min(head.height, above - 1);
  const heights = downFrom(top, BLOCKS);
  const [found, counts] = await Promise.all([
    chain.keptBlocks(heights, { signal }),
    countsOf(context, heights, signal),
  ]);
  const last = top - BLOCKS + 1;
  const isWhole = found.length === heights.length;
  const newer = top + BLOCKS + 1 > head.height ? "/blocks" : `/blocks?before=${top + BLOCKS + 1}`;
  return {
    title: t("blocks"),
    content: [
      blockTable(found, counts, t),
      isWhole ? undefined : note("info", t("prunedText")),
      pager(t, {
        newer: top < head.height ? newer : undefined,
        older: last > 0 && isWhole ? `/blocks?before=${last}` : undefined,
      }),
    ],
  };
}

/** Heights from one downwards, genesis the last. */
function downFrom(height: number, count: number): number[] {
  return Array.from(
    { length: Math.max(0, Math.min(count, height + 1)) },
    (_, back) => height - back,
  );
}

/**
 * Transactions of the newest blocks, and where those have few, of older ones at places that the indexer
 * names: it is the node that says what stands there.
 */
async function newestTransactions(
  context: PageContext,
  newest: readonly BlockSummary[],
  signal: AbortSignal,
): Promise<readonly TransactionView[]> {
  const { chain, indexer } = context;
  const places = newestPlaces(newest);
  const missing = NEWEST - places.length;
  const recent = chain.transactionsAt(places, { signal });
  if (missing === 0) return recent;
  const inner = limitedSignal([signal], INDEXER_WAIT_MS);
  const [found, shown] = await Promise.all([
    // Whatever it says in place of an answer: the page is the node's.
    ask(context, indexer.newestPlaces(NEWEST, inner), inner).catch(() => "unavailable" as const),
    recent,
  ]);
  signal.throwIfAborted();
  if (isNoIndex(found)) return shown;
  const oldest = newest.at(-1)?.height ?? 0;
  const older = found.items.filter(({ height }) => height < oldest).slice(0, missing);
  // A node that has deleted their blocks shows those that it has.
  const before = await chain.transactionsAt(older, { signal }).catch(() => []);
  signal.throwIfAborted();
  return [...shown, ...before];
}

/** Places of the last transactions of the newest blocks. */
function newestPlaces(newest: readonly BlockSummary[]) {
  return newest
    .flatMap(({ height, transactionCount }) =>
      downFrom(transactionCount - 1, NEWEST).map((index) => ({ height, index })),
    )
    .slice(0, NEWEST);
}

/** Transactions of both kinds by height; where consensus does not tell, those of the EVM are shown. */
async function countsOf(
  { consensus }: PageContext,
  heights: readonly number[],
  signal: AbortSignal,
): Promise<ReadonlyMap<number, number>> {
  const [to, from] = [heights[0], heights.at(-1)];
  if (to === undefined || from === undefined || to === 0) return new Map();
  const range = { from: Math.max(1, from), to };
  return consensus.transactionCounts(range, { signal }).catch(() => new Map<number, number>());
}

function blockTable(
  found: readonly BlockSummary[],
  counts: ReadonlyMap<number, number>,
  t: Texts,
): Content {
  return table({
    caption: t("blocks"),
    columns: [t("block"), t("time"), t("transactions"), t("gasUsed"), t("proposer")],
    numeric: [2, 3],
    empty: t("noBlocks"),
    rows: found.map((block) => [
      blockLink(block.height),
      time(block.timestampSeconds),
      counts.get(block.height) ?? block.transactionCount,
      block.gasUsed.toString(),
      proposerLink(block.proposer),
    ]),
  });
}

/** Transactions as a table: also of a block. */
export function transactionTable(
  transactions: readonly TransactionView[],
  t: Texts,
  outcomes?: ReadonlyMap<string, boolean>,
): Content {
  const status = (isSuccess: boolean | undefined): Content =>
    isSuccess === undefined
      ? "—"
      : badge(isSuccess ? "good" : "bad", isSuccess ? t("success") : t("failed"));
  return table({
    caption: t("transactions"),
    columns: [
      t("transaction"),
      ...(outcomes === undefined ? [t("block")] : [t("status")]),
      t("from"),
      t("to"),
      t("value"),
    ],
    numeric: [4],
    empty: t("noTransactions"),
    rows: transactions.map(({ hash, from, to, valueAtoken, place }) => [
      transactionLink(hash),
      outcomes === undefined
        ? place === undefined
          ? "—"
          : blockLink(place.height)
        : status(outcomes.get(hash)),
      addressLink(from, t),
      to === undefined ? t("newContract") : addressLink(to, t),
      tokenAmount(valueAtoken),
    ]),
  });
}
