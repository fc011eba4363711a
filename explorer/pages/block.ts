/** A block: its header, who decided it, what it moved by itself, its transactions page by page. */
import { CREDIT_CONFIRMATIONS } from "../../chain/confirmations.js";
import { readHash, readHeight } from "../decode/identifiers.js";
import { badRequest } from "../../web/errors.js";
import { type Content, el } from "../../web/html/element.js";
import { percent, tokenAmount } from "../../web/html/format.js";
import { badge, code, facts, note, pager, section, table, time } from "../../web/html/parts.js";
import { blockLink, proposerLink } from "../html/chain-links.js";
import type { Page, PageAnswer, PageRequest, PageRoute } from "../server/page.js";
import type { BlockSummary, ChainSource } from "../sources/chain-source.js";
import type { CommitView, ValidatorView } from "../sources/consensus-source.js";
import type { Texts } from "../text/catalogue.js";
import type { PageContext } from "./context.js";
import { cosmosOf, cosmosTable, type JournaledCosmosTransaction } from "./cosmos-transaction.js";
import { transactionTable } from "./home.js";
import { changeTable } from "./moves.js";
import { noMovesNote } from "./transaction-parts.js";

/** Transactions on a page. */
const PER_PAGE = 50;

/** "/block/<height or hash>". */
export function blockRoutes(context: PageContext): readonly PageRoute[] {
  return [
    {
      path: "/block",
      hasParameter: true,
      isCostly: true,
      query: ["page"],
      handle: (request) => block(context, request),
    },
  ];
}

/** The page of a height that is not there (yet). */
function missingBlock(t: Texts, named: string, headHeight: number): Page {
  return {
    status: 404,
    title: t("notFoundTitle"),
    content: [
      el("p", {}, t("blockMissing", { block: named, height: headHeight })),
      el("p", {}, t("newestBlock"), ": ", blockLink(headHeight)),
    ],
  };
}

async function block(context: PageContext, request: PageRequest): Promise<PageAnswer> {
  const { chain, consensus } = context;
  const { parameter, query, t, signal } = request;
  const head = await chain.head({ signal });
  const height = await heightOf(context, parameter, signal);
  const [found] = height === undefined ? [] : await chain.blocks([height], { signal });
  if (found === undefined) return missingBlock(t, parameter.slice(0, 70), head.height);
  const page = readPage(query.get("page"), found.transactionCount);
  const isFinal = head.height - found.height + 1 >= CREDIT_CONFIRMATIONS;
  const [transactions, journal, commit, validators] = await Promise.all([
    chain.transactionsAt(placesOf(found, page), { signal }),
    chain.journal(found.hash, { signal }).then(movesOf),
    // A node without these views still has the block.
    consensus.commit(found.height, { signal }).catch(() => undefined),
    found.height === 0
      ? []
      : consensus.validators(found.height, { signal }).catch((): ValidatorView[] => []),
  ]);
  const receipts = await chain.receipts(
    transactions.map(({ hash }) => hash),
    { signal },
  );
  const outcomes = new Map(
    receipts.flatMap((receipt) =>
      receipt === undefined ? [] : [[receipt.hash as string, receipt.isSuccess] as const],
    ),
  );
  const pages = Math.max(1, Math.ceil(found.transactionCount / PER_PAGE));
  // What was not told may be told later.
  const isWhole = journal !== undefined && journal !== "pruned" && validators.length > 0;
  return {
    title: `${t("block")} ${found.height}`,
    isFinal: isFinal && (commit?.isCanonical ?? false) && isWhole,
    content: [
      neighbours(found.height, head.height, t),
      headerFacts(found, { t, isFinal, commit }),
      section(
        `${t("evmTransactions")} (${found.transactionCount})`,
        transactionTable(transactions, t, outcomes),
        pager(t, {
          newer: page > 1 ? `/block/${found.height}?page=${page - 1}` : undefined,
          older: page < pages ? `/block/${found.height}?page=${page + 1}` : undefined,
        }),
      ),
      typeof journal === "object" ? cosmosSection(journal.cosmos, t) : undefined,
      section(
        t("blockMoves"),
        el("p", {}, t("blockMovesText")),
        typeof journal === "object"
          ? [
              facts([
                [t("minted"), tokenAmount(journal.mintedAtoken)],
                [t("burned"), tokenAmount(journal.burnedAtoken)],
              ]),
              changeTable(journal.blockChanges, t),
            ]
          : noMovesNote(journal, t),
      ),
      section(t("commit"), commitContent(commit, validators, t)),
    ],
  };
}

/** What of a journal is shown of its block: nobody waits for anything else with all of it in hand. */
function movesOf(journal: Awaited<ReturnType<ChainSource["journal"]>>) {
  if (typeof journal !== "object") return journal;
  const { mintedAtoken, burnedAtoken, blockChanges } = journal;
  return { mintedAtoken, burnedAtoken, blockChanges, cosmos: cosmosOf(journal) };
}

function cosmosSection(transactions: readonly JournaledCosmosTransaction[], t: Texts): Content {
  if (transactions.length === 0) return undefined;
  const title = `${t("cosmosTransactions")} (${transactions.length})`;
  return section(title, cosmosTable(transactions, t));
}

/** Undefined for a hash that no block has. @throws BAD_REQUEST for neither height nor hash */
async function heightOf(
  { chain, consensus }: PageContext,
  text: string,
  signal: AbortSignal,
): Promise<number | undefined> {
  const height = readHeight(text);
  if (height !== undefined) return height;
  const hash = readHash(text);
  if (hash === undefined) throw badRequest("neither a height nor a hash");
  const header = await chain.headerByHash(hash, { signal });
  if (header !== undefined) return header.height;
  return consensus.heightOfHash(hash, { signal }).catch(() => undefined);
}

function readPage(text: string | null, transactionCount: number): number {
  const page = text === null ? 1 : (readHeight(text) ?? 0);
  const last = Math.max(1, Math.ceil(transactionCount / PER_PAGE));
  if (page < 1 || page > last) throw badRequest("no such page of the block");
  return page;
}

function placesOf({ height, transactionCount }: BlockSummary, page: number) {
  const first = (page - 1) * PER_PAGE;
  const count = Math.max(0, Math.min(PER_PAGE, transactionCount - first));
  return Array.from({ length: count }, (_, index) => ({ height, index: first + index }));
}

function neighbours(height: number, headHeight: number, t: Texts): Content {
  return el(
    "nav",
    { class: "pager", "aria-label": t("neighbourBlocks") },
    height > 0
      ? el("a", { href: `/block/${height - 1}`, rel: "prev" }, `← ${t("block")} ${height - 1}`)
      : undefined,
    height < headHeight
      ? el("a", { href: `/block/${height + 1}`, rel: "next" }, `${t("block")} ${height + 1} →`)
      : undefined,
  );
}

function headerFacts(
  found: BlockSummary,
  about: {
    readonly t: Texts;
    readonly isFinal: boolean;
    readonly commit: CommitView | undefined;
  },
): Content {
  const { t, isFinal, commit } = about;
  return facts([
    [t("height"), found.height],
    [t("status"), badge("good", isFinal ? t("final") : t("finalNewest"))],
    [t("time"), time(found.timestampSeconds)],
    [t("evmHash"), code(found.hash)],
    [t("consensusHash"), commit === undefined ? undefined : code(commit.consensusHash)],
    [
      t("parentHash"),
      found.height === 0
        ? code(found.parentHash)
        : el("a", { href: `/block/${found.height - 1}` }, code(found.parentHash)),
    ],
    [t("proposer"), proposerLink(found.proposer, false)],
    [
      t("gasUsed"),
      `${found.gasUsed} / ${found.gasLimit} (${percent(found.gasUsed, found.gasLimit)})`,
    ],
    [t("stateRoot"), code(found.stateRoot)],
    [t("transactionsRoot"), code(found.transactionsRoot)],
    [t("receiptsRoot"), code(found.receiptsRoot)],
  ]);
}

function commitContent(
  commit: CommitView | undefined,
  validators: readonly ValidatorView[],
  t: Texts,
): Content {
  if (commit === undefined) return note("info", t("noCommit"));
  const total = validators.reduce((sum, { power }) => sum + power, 0n);
  const signed = validators.filter((_, index) => commit.votes[index]?.vote === "commit");
  const power = signed.reduce((sum, one) => sum + one.power, 0n);
  return [
    facts([
      [t("round"), commit.round],
      [t("signedBy"), `${signed.length} / ${validators.length} (${percent(power, total)})`],
      [t("commitState"), commit.isCanonical ? t("commitFinal") : t("commitOpen")],
    ]),
    table({
      caption: t("commit"),
      columns: [t("validator"), t("power"), t("vote")],
      numeric: [1],
      empty: t("noCommit"),
      rows: validators.map((validator, index) => [
        code(validator.address),
        validator.power.toString(),
        voteBadge(commit.votes[index]?.vote ?? "absent", t),
      ]),
    }),
  ];
}

function voteBadge(vote: CommitView["votes"][number]["vote"], t: Texts): Content {
  if (vote === "commit") return badge("good", t("voteCommit"));
  return vote === "nil" ? badge("neutral", t("voteNil")) : badge("bad", t("voteAbsent"));
}
