/** An account in both of its forms: balance, activity, tokens, history; by hex or bech32. */
import { type Address, operatorText, toBech32, toChecksumAddress } from "../../chain/address.js";
import { isPruned } from "../../rpc-client/errors.js";
import type { AccountJournalEntry } from "../../rpc-client/journal-codec.js";
import { readAddress, readHeight } from "../decode/identifiers.js";
import { badRequest } from "../../web/errors.js";
import { lineChart } from "../../web/html/chart.js";
import { type Content, el } from "../../web/html/element.js";
import { foreignName, signedTokenAmount, tokenAmount } from "../../web/html/format.js";
import {
  badge,
  code,
  type Fact,
  facts,
  note,
  pager,
  section,
  table,
  time,
} from "../../web/html/parts.js";
import { addressLink, blockLink, transactionLink } from "../html/chain-links.js";
import type { Page, PageRequest, PageRoute } from "../server/page.js";
import type { IndexedBalance, IndexedTransfer } from "../sources/indexer-source.js";
import type { Texts } from "../text/catalogue.js";
import { listedToken, type PageContext, tokenLink } from "./context.js";
import { ask, type Indexed, indexedNote, isNoIndex } from "./indexed.js";
import { contractSection } from "./contracts/contract.js";
import { amountByClaim, amountOf, amountOfId } from "./moves.js";
import { STAKE_PLACE, stakeSection } from "./staking/account-stake.js";
import { verifyControl } from "./verify.js";

/** Blocks with changes of an account on one page. */
const BLOCKS_PER_PAGE = 25;

/** Changes on one page: a contract may have thousands in a block. */
const MAX_CHANGES = 100;

/** Blocks that are looked through first; each further look takes four times as many. */
const FIRST_LOOK_BLOCKS = 512;

/**
 * Looks of one page: a dozen reach the beginning of any chain, and where what they find there is too much for
 * an answer, each of the others halves where its newest can be.
 */
const MAX_LOOKS = 48;

/** Places of the history chart. */
const CHART_POINTS = 30;

/** "/address/<hex or bech32>". */
export function addressRoutes(context: PageContext): readonly PageRoute[] {
  return [
    {
      path: "/address",
      hasParameter: true,
      isCostly: true,
      query: ["before", "cursor", "tokens", STAKE_PLACE],
      handle: (request) => address(context, request),
    },
  ];
}

async function address(context: PageContext, request: PageRequest): Promise<Page> {
  const { parameter, query, t, signal } = request;
  const account = readAddress(parameter);
  if (account === undefined) throw badRequest("not an address");
  const before = query.get("before");
  const beforeHeight = before === null ? undefined : readHeight(before);
  if (before !== null && beforeHeight === undefined) throw badRequest("before is a height");
  const { chain, indexer } = context;
  const head = await chain.head({ signal });
  // Of blocks that are none yet the node says nothing at all.
  const below = Math.min(beforeHeight ?? Number.MAX_SAFE_INTEGER, head.height + 1);
  const [balance, nonce, contractCode, journal, chart, transfers, balances, stake] =
    await Promise.all([
      chain.evm.getBalance(account, head.height, { signal }),
      chain.evm.getTransactionCount(account, head.height, { signal }),
      chain.evm.getCode(account, head.height, { signal }),
      journalBefore(context, account, below, signal),
      history(context, account, head.height, signal),
      ask(context, indexer.transfers(account, query.get("cursor") ?? undefined, signal), signal),
      ask(context, indexer.balances(account, query.get("tokens") ?? undefined, signal), signal),
      stakeSection(context, account, request),
    ]);
  const own = `/address/${toChecksumAddress(account)}`;
  const codeBytes = (contractCode.length - 2) / 2;
  return {
    title: t("account"),
    scripts: ["verify"],
    content: [
      facts([
        ...nameFacts(account, t),
        [t("balance"), el("strong", {}, tokenAmount(balance))],
        [t("asOfBlock"), blockLink(head.height)],
        [t("nonce"), nonce.toString()],
        [
          t("kind"),
          codeBytes > 0
            ? [badge("neutral", t("contract")), ` ${t("bytes", { count: codeBytes })}`]
            : badge("neutral", t("noContract")),
        ],
      ]),
      codeBytes > 0 ? await contractSection(context, account, request) : undefined,
      stake,
      section(t("balanceHistory"), chartContent(chart, t)),
      section(
        t("tokens"),
        await tokensContent(context, { account, balances, t, signal }),
        indexPager(balances, t("tokens"), `${own}?tokens`, t),
      ),
      section(t("transfers"), indexedNote(transfers, t), transfersContent(context, transfers, t)),
      indexPager(transfers, t("transfers"), `${own}?cursor`, t),
      section(t("nativeJournal"), el("p", {}, t("nativeJournalText")), journalTable(journal, t)),
      pager(t, {
        of: t("nativeJournal"),
        newer: before === null ? undefined : own,
        older: journal.older === undefined ? undefined : `${own}?before=${journal.older}`,
      }),
      section(
        t("proofs"),
        el("p", {}, el("a", { href: `/proof/address/${account}` }, t("downloadProof"))),
        verifyControl({ kind: "account", url: `/proof/address/${account}` }, t),
      ),
    ],
  };
}

/** All that an account is called. */
function nameFacts(account: Address, t: Texts): readonly Fact[] {
  return [
    [t("evmAddress"), code(toChecksumAddress(account))],
    [t("bech32Address"), code(toBech32(account))],
    [t("operatorAddress"), code(operatorText(account))],
    [t("chainAccount"), t.accountName(account)],
  ];
}

/** Older entries of what an answer of the index has, where there are any. */
function indexPager(answer: Indexed<unknown>, of: string, link: string, t: Texts): Content {
  if (isNoIndex(answer) || answer.next === undefined) return undefined;
  return pager(t, { of, older: `${link}=${encodeURIComponent(answer.next)}` });
}

/** A page of an account's journal. */
export interface JournalPage {
  /** Newest first. */
  readonly entries: readonly AccountJournalEntry[];
  /** Changes of the same blocks that are not shown. */
  readonly left: number;
  /** Where the next page begins; undefined at the account's beginning. */
  readonly older: number | undefined;
  /** First block whose changes the node still has; undefined where nothing that is gone was asked for. */
  readonly keptFrom?: number;
}

/** The newest changes of an account below a height, as far back as the node has them. */
export async function journalBefore(
  context: PageContext,
  account: Address,
  below: number,
  signal: AbortSignal,
): Promise<JournalPage> {
  try {
    return await journalWithin(context, account, { first: 0, below }, signal);
  } catch (error) {
    if (!isPruned(error)) throw error;
    // A node that joined by a snapshot has the state of its oldest block, and not what changed in it.
    const keptFrom = (await context.chain.evm.oldestHeight({ signal })) + 1;
    const page = await journalWithin(context, account, { first: keptFrom, below }, signal);
    return { ...page, keptFrom };
  }
}

/** The newest changes in blocks from `first` on, below a height. */
async function journalWithin(
  { chain }: PageContext,
  account: Address,
  { first: oldest, below }: { readonly first: number; readonly below: number },
  signal: AbortSignal,
): Promise<JournalPage> {
  let heights: number[] = [];
  let to = below - 1;
  let look = FIRST_LOOK_BLOCKS;
  // At this height there is a change, and more of them between it and `to` than an answer has, or may have.
  let least: number | undefined;
  for (let looks = 0; looks < MAX_LOOKS && to >= oldest; looks++) {
    const from = Math.max(least ?? oldest, to - look + 1);
    const page = await chain.evm.accountHeights(account, { from, to }, { signal });
    if (page.next === undefined) {
      heights = [...page.heights, ...heights];
      to = from - 1;
      if (heights.length > BLOCKS_PER_PAGE) break;
      if (from === least) least = undefined;
      look *= 4;
    } else {
      // Too many for one answer, which has the oldest: the newest are at the next one or above it.
      least = page.next;
    }
    if (least !== undefined) look = Math.ceil((to - least + 1) / 2);
  }
  const shown = heights.slice(-BLOCKS_PER_PAGE);
  const [first, last] = [shown[0], shown.at(-1)];
  if (first === undefined || last === undefined) {
    return { entries: [], left: 0, older: to >= oldest ? to + 1 : undefined };
  }
  const hasOlder = heights.length > shown.length || to >= oldest;
  const found = await chain.evm.accountJournal(account, { from: first, to: last }, { signal });
  // An answer that was cut has the oldest of these blocks: the newest are read by themselves.
  if (found.next !== undefined && first !== last) {
    const newest = await chain.evm.accountJournal(account, { from: last, to: last }, { signal });
    return wholeBlocks(newest.entries.toReversed(), last);
  }
  return wholeBlocks(found.entries.toReversed(), hasOlder ? first : undefined);
}

/**
 * As many of the newest blocks as a page has room for, and the next page goes on behind them; of one that has
 * more changes by itself the newest.
 * @param entries newest first
 * @param older where the next page begins if there is room for all
 */
function wholeBlocks(
  entries: readonly AccountJournalEntry[],
  older: number | undefined,
): JournalPage {
  const next = entries[MAX_CHANGES]?.height;
  if (next === undefined) return { entries, left: 0, older };
  const fitting = entries.filter(({ height }) => height > next);
  if (fitting.length > 0) return { entries: fitting, left: 0, older: next + 1 };
  const own = entries.filter(({ height }) => height === next);
  return {
    entries: own.slice(0, MAX_CHANGES),
    left: own.length - MAX_CHANGES,
    older: own.length < entries.length ? next : older,
  };
}

function journalTable({ entries, left, keptFrom }: JournalPage, t: Texts): Content {
  return [
    keptFrom === undefined ? undefined : note("info", t("journalKept", { height: keptFrom })),
    table({
      caption: t("nativeJournal"),
      columns: [t("block"), t("transaction"), t("reason"), t("counterparty"), t("change")],
      numeric: [4],
      empty: t(keptFrom === undefined ? "noChanges" : "noChangesKept"),
      rows: entries.map(({ height, transactionHash, deltaAtoken, change }) => {
        const other = deltaAtoken < 0n ? change.to : change.from;
        return [
          blockLink(height),
          transactionHash === undefined ? t("blockItself") : transactionLink(transactionHash),
          change.effective ? change.reason : [change.reason, " ", badge("bad", t("notMoved"))],
          other === undefined ? "—" : addressLink(other, t),
          signedTokenAmount(deltaAtoken),
        ];
      }),
    }),
    left > 0 ? el("p", {}, t("moreRows", { count: left })) : undefined,
  ];
}

/** A balance at a height. */
interface HistoryPoint {
  readonly x: number;
  readonly value: bigint;
}

/** Balances at even distances, as far back as the node knows them. */
async function history(
  { chain }: PageContext,
  account: Address,
  headHeight: number,
  signal: AbortSignal,
): Promise<readonly HistoryPoint[]> {
  const count = Math.min(CHART_POINTS, headHeight + 1);
  const heights = Array.from({ length: count }, (_, index) =>
    count === 1 ? headHeight : Math.round((index * headHeight) / (count - 1)),
  );
  const states = await chain.evm.accountStates(
    heights.map((at) => ({ address: account, at })),
    { signal },
  );
  return heights.flatMap((x, index) => {
    const state = states[index];
    return state?.ok === true ? [{ x, value: state.balanceAtoken }] : [];
  });
}

function chartContent(points: readonly HistoryPoint[], t: Texts): Content {
  const chart = lineChart(points, {
    title: t("balanceHistory"),
    from: `${t("block")} ${points[0]?.x ?? 0}`,
    to: `${t("block")} ${points.at(-1)?.x ?? 0}`,
    format: tokenAmount,
  });
  if (chart === undefined) return el("p", { class: "empty" }, t("noHistory"));
  return [
    chart,
    el(
      "details",
      {},
      el("summary", {}, t("sameAsTable")),
      table({
        caption: t("balanceHistory"),
        columns: [t("block"), t("balance")],
        numeric: [1],
        empty: t("noHistory"),
        rows: points.map(({ x, value }) => [blockLink(x), tokenAmount(value)]),
      }),
    ),
  ];
}

/** The indexer's balances, else those of the home's list, asked of the contracts. */
async function tokensContent(
  context: PageContext,
  about: {
    readonly account: Address;
    readonly balances: Indexed<IndexedBalance>;
    readonly t: Texts;
    readonly signal: AbortSignal;
  },
): Promise<Content> {
  const { account, balances, t, signal } = about;
  if (!isNoIndex(balances)) {
    const rows = balances.items.flatMap(({ contract, units, tokenId, decimals, symbol }) => {
      if (contract === undefined) return [];
      const listed = listedToken(context, contract);
      const amount =
        tokenId === undefined
          ? amountByClaim(units, listed.decimals ?? decimals, t)
          : amountOfId(units, tokenId);
      return [[tokenLink(context, contract, t, symbol), amount]];
    });
    return [indexedNote(balances, t), balanceTable(rows, t)];
  }
  const listed = [...context.tokens.values()];
  const units = await context.chain.evm.tokenBalances(
    listed.map(({ contractAddress }) => ({ token: contractAddress, account, at: "latest" })),
    { signal },
  );
  const rows = listed.flatMap(({ contractAddress }, index) => {
    const amount = units[index];
    if (amount === undefined || amount === 0n) return [];
    return [
      [tokenLink(context, contractAddress, t), amountOf(context, contractAddress, amount, t)],
    ];
  });
  return [note("info", t("listedTokensOnly")), balanceTable(rows, t)];
}

function balanceTable(rows: readonly (readonly Content[])[], t: Texts): Content {
  return table({
    caption: t("tokens"),
    columns: [t("token"), t("amount")],
    numeric: [1],
    empty: t("noTokens"),
    rows,
  });
}

/** Transfers as a table; also of a token. */
export function transfersContent(
  context: PageContext,
  found: Indexed<IndexedTransfer>,
  t: Texts,
): Content {
  if (isNoIndex(found)) return undefined;
  return table({
    caption: t("transfers"),
    columns: [t("block"), t("time"), t("transaction"), t("kind"), t("from"), t("to"), t("amount")],
    numeric: [6],
    empty: t("noTransfers"),
    rows: found.items.map((transfer) => {
      const { height, timestampSeconds, hash, kind, from, to } = transfer;
      return [
        blockLink(height),
        timestampSeconds === undefined ? "—" : time(timestampSeconds),
        hash === undefined ? "—" : transactionLink(hash),
        foreignName(kind),
        from === undefined ? "—" : addressLink(from, t),
        to === undefined ? "—" : addressLink(to, t),
        transferAmount(context, transfer, t),
      ];
    }),
  });
}

function transferAmount(
  context: PageContext,
  { contract, units, tokenId }: IndexedTransfer,
  t: Texts,
): Content {
  if (contract === undefined) return tokenAmount(units);
  if (tokenId !== undefined) {
    return [amountOfId(units, tokenId), " ", tokenLink(context, contract, t)];
  }
  const { symbol } = listedToken(context, contract);
  if (symbol !== undefined) return amountOf(context, contract, units, t);
  return [amountOf(context, contract, units, t), " ", tokenLink(context, contract, t)];
}
