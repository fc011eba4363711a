/** "Where is my deposit?": what support needs to know of one hash, and can send to the customer. */
import type { Address } from "../../chain/address.js";
import { type BalanceChange, forEachDelta } from "../../chain/balance-change.js";
import { CREDIT_CONFIRMATIONS } from "../../chain/confirmations.js";
import type { Hash32 } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import type { TokenMove } from "../../rpc-client/indexing/token-moves.js";
import { readHash } from "../decode/identifiers.js";
import { type Content, el } from "../../web/html/element.js";
import { signedTokenAmount, tokenAmount } from "../../web/html/format.js";
import { code, facts, note, section, table, time } from "../../web/html/parts.js";
import { addressLink, blockLink } from "../html/chain-links.js";
import type { Page, PageRequest, PageRoute } from "../server/page.js";
import type { Texts } from "../text/catalogue.js";
import type { PageContext } from "./context.js";
import { MAX_ROWS, more, tokensMovedBy, tokenTable } from "./moves.js";
import { cosmosFacts, cosmosOutcome, type MinedCosmos } from "./cosmos-transaction.js";
import {
  bareContent,
  endContent,
  isToldWhole,
  type Lookup,
  lookUp,
  type MinedTransaction,
  outcomeNote,
} from "./transaction.js";
import { confirmationText, type Moves, noMovesNote, statusBadge } from "./transaction-parts.js";

/** "/deposit" and "/deposit?tx=<hash>". */
export function depositRoutes(context: PageContext): readonly PageRoute[] {
  return [
    {
      path: "/deposit",
      hasParameter: false,
      isCostly: true,
      query: ["tx"],
      handle: (request) => deposit(context, request),
    },
  ];
}

async function deposit(context: PageContext, { t, query, signal }: PageRequest): Promise<Page> {
  const text = query.get("tx") ?? "";
  const title = t("whereIsMyDeposit");
  if (text === "") return { title, content: [el("p", {}, t("depositIntro")), form("", t)] };
  const hash = readHash(text);
  if (hash === undefined) {
    const content = [note("warning", t("notAHash")), form(text, t)];
    return { status: 400, title, content };
  }
  const found = await lookUp(context, hash, signal);
  const isMissing = found.kind === "unknown" && found.fate !== "waiting";
  const status = isMissing || found.kind === "block" ? 404 : 200;
  const isFinal = isSettled(found);
  return {
    status,
    title,
    isFinal,
    scripts: isFinal ? [] : ["live"],
    content: [
      el(
        "div",
        isFinal ? {} : { id: "live", "data-live": "" },
        await answerTo(context, found, { t, signal }),
      ),
      section(t("linkToSend"), el("p", {}, code(linkTo(context, hash)))),
      form(text, t),
    ],
  };
}

/** Whether the answer is the last one. */
function isSettled(found: Lookup): boolean {
  switch (found.kind) {
    case "mined":
      return found.mined.confirmations >= CREDIT_CONFIRMATIONS && isToldWhole(found.mined);
    case "cosmos":
      return (
        found.cosmos.confirmations >= CREDIT_CONFIRMATIONS && found.cosmos.journaled !== undefined
      );
    default:
      return false;
  }
}

async function answerTo(
  context: PageContext,
  found: Lookup,
  { t, signal }: Pick<PageRequest, "t" | "signal">,
): Promise<Content> {
  if (found.kind === "mined") {
    const tokens = await tokensMovedBy(context, found.mined.receipt.logs, signal);
    return minedAnswer(context, { ...found.mined, tokens }, t);
  }
  if (found.kind === "cosmos") return cosmosAnswer(found.cosmos, t);
  if (found.kind === "bare") return bareContent(found, t);
  const said = el("p", {}, answerText(found, t));
  return found.kind === "unknown" ? [said, endContent(found, t)] : said;
}

function linkTo({ publicUrl }: PageContext, hash: Hash32): string {
  return `${publicUrl.replace(/\/$/, "")}/deposit?tx=${hash}`;
}

function answerText(
  found: Exclude<Lookup, { kind: "mined" | "cosmos" | "bare" }>,
  t: Texts,
): string {
  switch (found.kind) {
    case "pending":
      return t("notInBlocks", { height: found.headHeight, pending: t("yes") });
    case "unknown": {
      const pending = t(found.fate === "waiting" ? "yes" : "no");
      return t("notInBlocks", { height: found.headHeight, pending });
    }
    default:
      return t("hashOfBlock", { height: found.height });
  }
}

function form(value: string, t: Texts): Content {
  return el(
    "form",
    { action: "/deposit", method: "get", class: "ask" },
    el("label", { for: "tx" }, t("transactionHash")),
    el("input", {
      id: "tx",
      name: "tx",
      value: value.slice(0, 200),
      maxlength: 200,
      autocomplete: "off",
      spellcheck: "false",
    }),
    el("button", { type: "submit" }, t("look")),
  );
}

/** What became of a transaction that is in a block. */
interface Outcome {
  readonly isSuccess: boolean;
  readonly confirmations: number;
  readonly changes: Moves;
  readonly tokens: readonly TokenMove[];
}

/**
 * What is certain of it, in a sentence. Whether it arrived the page cannot know: code that does not fail may
 * have moved nothing, or to others.
 */
function verdictNote(outcome: Outcome, t: Texts): Content {
  const { isSuccess, confirmations } = outcome;
  if (!isSuccess) return note("warning", t("didNotArrive"));
  const hasMoved = movedAnything(outcome);
  if (hasMoved === false) return note("warning", t("movedNothing"));
  const needed = { needed: CREDIT_CONFIRMATIONS };
  if (confirmations < CREDIT_CONFIRMATIONS) return note("info", t("arriving", needed));
  return note("info", t(hasMoved === undefined ? "finalUntold" : "carriedOut", needed));
}

/** Whether anything moved beside the fee; undefined where that is not told. */
function movedAnything({ changes, tokens }: Outcome): boolean | undefined {
  if (tokens.some(({ from, to, amountUnits }) => amountUnits > 0n && from !== to)) return true;
  if (typeof changes !== "object") return undefined;
  return netOf(changes.filter(({ reason }) => reason !== "FEE")).length > 0;
}

function cosmosAnswer(found: MinedCosmos, t: Texts): Content {
  const { told, confirmations, journaled } = found;
  return [
    verdictNote(
      { isSuccess: told.code === 0n, confirmations, changes: journaled?.changes, tokens: [] },
      t,
    ),
    cosmosOutcome(found, t),
    facts(cosmosFacts(found, t)),
    movedSection(journaled?.changes, t),
  ];
}

function movedSection(changes: Moves, t: Texts): Content {
  const intro = el("p", {}, t("everythingMovedText"));
  return section(t("everythingMoved"), intro, netTable(changes, t));
}

function minedAnswer(
  context: PageContext,
  found: MinedTransaction & Pick<Outcome, "tokens">,
  t: Texts,
): Content {
  const { receipt, place, block, confirmations, transaction, changes, tokens } = found;
  const { isSuccess } = receipt;
  return [
    verdictNote({ isSuccess, confirmations, changes, tokens }, t),
    outcomeNote(found, t),
    facts([
      [t("status"), statusBadge(isSuccess, t)],
      [t("includedIn"), [blockLink(place.height), ` · ${t("position")} ${place.index}`]],
      [t("time"), time(block.timestampSeconds)],
      [t("confirmations"), confirmationText(confirmations, t)],
      [t("from"), addressLink(transaction.from, t, false)],
      [
        t("to"),
        transaction.to === undefined ? t("newContract") : addressLink(transaction.to, t, false),
      ],
      [t("fee"), tokenAmount(receipt.gasUsed * receipt.gasPriceAtoken)],
      [t("evmHash"), el("a", { href: `/tx/${transaction.hash}` }, code(transaction.hash))],
    ]),
    movedSection(changes, t),
    section(
      t("tokenMoves"),
      el("p", {}, t("tokensAreClaims")),
      tokenTable(context, tokens, t, false),
    ),
  ];
}

/** What each account gained or lost in native coins, internal moves and fee included. */
function netTable(changes: Moves, t: Texts): Content {
  if (typeof changes !== "object") return noMovesNote(changes, t);
  const changed = netOf(changes);
  return [
    table({
      caption: t("everythingMoved"),
      columns: [t("account"), t("change")],
      numeric: [1],
      empty: t("noMoves"),
      rows: changed
        .slice(0, MAX_ROWS)
        .map(([account, amountAtoken]) => [
          addressLink(account, t, false),
          signedTokenAmount(amountAtoken),
        ]),
    }),
    more(changed.length, t),
  ];
}

/** Accounts that have more or less in the end, in the order in which they were met. */
function netOf(
  changes: readonly BalanceChange[],
): readonly (readonly [account: Address, changeAtoken: Atoken])[] {
  const net = new Map<Address, Atoken>();
  for (const change of changes) {
    forEachDelta(change, (account, deltaAtoken) => {
      net.set(account, (net.get(account) ?? 0n) + deltaAtoken);
    });
  }
  return [...net].filter(([, changeAtoken]) => changeAtoken !== 0n);
}
