/** A block: its header, who decided it, what it moved by itself, its transactions page by page. */
import { CREDIT_CONFIRMATIONS } from "../../chain/confirmations.js";
import { errorCode } from "../../chain/errors.js";
import { RpcError } from "../../rpc-client/errors.js";
import { readHash, readHeight } from "../decode/identifiers.js";
import { badRequest } from "../../web/errors.js";
import { type Content, el } from "../../web/html/element.js";
import { percent, tokenAmount } from "../../web/html/format.js";
import { badge, code, facts, note, pager, section, table, time } from "../../web/html/parts.js";
import { blockLink, proposerLink } from "../html/chain-links.js";
import type { Page, PageAnswer, PageRequest, PageRoute } from "../server/page.js";
import type { BlockSummary, ChainSource } from "../sources/chain-source.js";
import type { CommitView, ValidatorView } from "../sources/consensus-source.js";
import type { TransactionView } from "../sources/evm-json.js";
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
    chain.journal(found.hash, { signal }).then((told) => shownOf(told, page)),
    // A node without these views still has the block.
    consensus.commit(found.height, { signal }).catch(() => undefined),
    found.height === 0
      ? []
      : consensus.validators(found.height, { signal }).catch((): ValidatorView[] => []),
  ]);
  const outcomes =
    typeof journal === "object"
      ? journal.outcomes
      : await outcomesBy(context, transactions, signal);
  const pages = Math.max(1, Math.ceil(found.transactionCount / PER_PAGE));
  // What was not told may be told later.
  const isTold = journal !== undefined && journal !== "pruned";
  const isWhole = isTold && validators.length > 0 && outcomes !== undefined;
  return {
    title: `${t("block")} ${found.height}`,
    isFinal: isFinal && (commit?.isCanonical ?? false) && isWhole,
    content: [
      neighbours(found.height, head.height, t),
      headerFacts(found, { t, isFinal, commit }),
      section(
        `${t("evmTransactions")} (${found.transactionCount})`,
        transactionTable(transactions, t, outcomes ?? new Map()),
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

/** Whether transactions did what they were to do, by their hashes. */
type Outcomes = ReadonlyMap<string, boolean>;

/** What of a journal is on a page of its block: nobody waits for anything else with all of it in hand. */
function shownOf(journal: Awaited<ReturnType<ChainSource["journal"]>>, page: number) {
  if (typeof journal !== "object") return journal;
  const { mintedAtoken, burnedAtoken, blockChanges, transactions } = journal;
  const outcomes: Outcomes = new Map(
    transactions
      .slice((page - 1) * PER_PAGE, page * PER_PAGE)
      .map(({ hash, status }) => [hash, status === 1]),
  );
  return { mintedAtoken, burnedAtoken, blockChanges, outcomes, cosmos: cosmosOf(journal) };
}

/** By the receipts where there is no journal; undefined where these are more than an answer may have. */
async function outcomesBy(
  { chain }: PageContext,
  transactions: readonly TransactionView[],
  signal: AbortSignal,
): Promise<Outcomes | undefined> {
  try {
    const receipts = await chain.receipts(
      transactions.map(({ hash }) => hash),
      { signal },
    );
    return new Map(
      receipts.flatMap((receipt) =>
        receipt === undefined ? [] : [[receipt.hash as string, receipt.isSuccess] as const],
      ),
    );
  } catch (error) {
    if (error instanceof RpcError || errorCode(error) === "ANSWER_TOO_LARGE") return undefined;
    throw error;
  }
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
