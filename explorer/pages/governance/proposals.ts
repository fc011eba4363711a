/** Proposals, newest first, and one of them: what it does, who stood in and voted, how it ended. */
import { DECIMAL_ONE } from "../../../chain/encoding/decimal.js";
import { type Content, el } from "../../../web/html/element.js";
import { foreignName, foreignText, percent, tokenAmount } from "../../../web/html/format.js";
import { badge, type Fact, facts, pager, section, table, time } from "../../../web/html/parts.js";
import { notFound } from "../../../web/errors.js";
import { addressLink } from "../../html/chain-links.js";
import { textBlock } from "../../html/text-block.js";
import type { PageAnswer, PageRequest, PageRoute } from "../../server/page.js";
import type {
  Deposit,
  Proposal,
  ProposalStatus,
  Tally,
  Vote,
  VoteOption,
  VotingRules,
} from "../../sources/modules/governance-source.js";
import type { RestPage } from "../../sources/modules/rest-fields.js";
import type { Texts } from "../../text/catalogue.js";
import type { PageContext } from "../context.js";
import { askModules, isNoAnswer, noAnswerPage, placeIn, proposalId } from "../modules-asked.js";
import { ownWords } from "../staking/validator-parts.js";

/** Characters of a proposal's messages and of its summary on a page. */
const MAX_MESSAGES_CHARACTERS = 50_000;
const MAX_SUMMARY_CHARACTERS = 20_000;

/** "/proposals" and "/proposal/<number>". */
export function proposalRoutes(context: PageContext): readonly PageRoute[] {
  return [
    {
      path: "/proposals",
      hasParameter: false,
      query: ["after"],
      handle: (request) => proposals(context, request),
    },
    {
      path: "/proposal",
      hasParameter: true,
      isCostly: true,
      query: ["votes", "deposits"],
      handle: (request) => proposal(context, request),
    },
  ];
}

async function proposals(
  { governance }: PageContext,
  { t, query, signal }: PageRequest,
): Promise<PageAnswer> {
  const after = placeIn(query, "after");
  const found = await askModules(governance.proposals(after, signal));
  if (isNoAnswer(found)) return noAnswerPage(found, t("proposals"), t);
  const { items, next } = found;
  return {
    title: t("proposals"),
    content: [
      table({
        caption: t("proposals"),
        columns: ["#", t("proposalTitle"), t("status"), t("kind"), t("votingEnd")],
        empty: t("noProposals"),
        rows: items.map((one) => [
          el("a", { href: `/proposal/${one.id}` }, String(one.id)),
          el("a", { href: `/proposal/${one.id}` }, el("bdi", {}, titleOf(one, t))),
          statusBadge(one.status, t),
          one.messages.map((message) => el("div", {}, typeOf(message))),
          endOf(one, t),
        ]),
      }),
      pager(t, {
        newer: after === undefined ? undefined : "/proposals",
        older: next === undefined ? undefined : `/proposals?after=${encodeURIComponent(next)}`,
      }),
    ],
  };
}

async function proposal(context: PageContext, request: PageRequest): Promise<PageAnswer> {
  const { t, parameter, signal } = request;
  const id = proposalId(parameter);
  const title = t("proposal", { id: String(id) });
  const content = await askModules(
    (async () => {
      const found = await context.governance.proposal(id, signal);
      if (found === undefined) throw notFound("no proposal of this number");
      return pageParts(context, found, request);
    })(),
  );
  return isNoAnswer(content) ? noAnswerPage(content, title, t) : { title, content };
}

async function pageParts(
  { governance, staking }: PageContext,
  found: Proposal,
  { t, query, signal }: PageRequest,
): Promise<Content> {
  const { id, status } = found;
  const isOpen = status === "voting";
  const [rules, votes, deposits, tally, bonded] = await Promise.all([
    governance.rules(signal),
    governance.votes(id, placeIn(query, "votes"), signal),
    governance.deposits(id, placeIn(query, "deposits"), signal),
    isOpen ? governance.tally(id, signal) : found.result,
    isOpen ? staking.bondedAtoken(signal) : undefined,
  ]);
  return [
    facts([
      [t("proposalTitle"), el("strong", {}, el("bdi", {}, titleOf(found, t)))],
      [
        t("status"),
        [
          statusBadge(status, t),
          found.isExpedited ? [" ", badge("neutral", t("expedited"))] : undefined,
        ],
      ],
      [t("failedBecause"), ownWords(foreignText(found.failedReason))],
      [
        t("proposedBy"),
        found.proposer === undefined ? undefined : addressLink(found.proposer, t, false),
      ],
      [t("submittedAt"), timeOr(found.submittedAtSeconds)],
      [t("depositPaid"), tokenAmount(found.depositAtoken)],
      ...depositFacts(found, rules, t),
      [t("votingStart"), optionalTime(found.votingStartSeconds)],
      [t("votingEnd"), optionalTime(found.votingEndSeconds)],
      [t("metadata"), ownWords(foreignText(found.metadata))],
    ]),
    found.summary === ""
      ? undefined
      : section(
          t("proposalSummary"),
          textBlock(found.summary.slice(0, MAX_SUMMARY_CHARACTERS), t("proposalSummary"), "prose"),
        ),
    section(t("proposalMessages"), messagesContent(found, t)),
    status === "deposit" ? undefined : tallySection({ found, tally, bonded, rules }, t),
    section(t("votes"), votesContent(id, votes, t)),
    section(t("deposits"), depositsContent(id, deposits, t)),
  ];
}

/** When its votes end; before them, when it has to have its deposits. */
function endOf({ status, votingEndSeconds, depositEndSeconds }: Proposal, t: Texts): Content {
  return status === "deposit"
    ? [t("depositEnd"), " ", timeOr(depositEndSeconds)]
    : timeOr(votingEndSeconds);
}

/** Facts of a proposal that still waits for deposits. */
function depositFacts(
  { status, isExpedited, depositEndSeconds }: Proposal,
  rules: VotingRules,
  t: Texts,
) {
  if (status !== "deposit") return [];
  const needed = isExpedited ? rules.expeditedMinDepositAtoken : rules.minDepositAtoken;
  const all: readonly Fact[] = [
    [t("minDeposit"), tokenAmount(needed)],
    [t("depositEnd"), optionalTime(depositEndSeconds)],
  ];
  return all;
}

function messagesContent({ messages }: Proposal, t: Texts): Content {
  if (messages.length === 0) return el("p", {}, t("proposalNoMessages"));
  const text = JSON.stringify(messages, null, 1);
  return [
    el(
      "ul",
      {},
      messages.map((message) => el("li", {}, typeOf(message))),
    ),
    textBlock(text.slice(0, MAX_MESSAGES_CHARACTERS), t("proposalMessages")),
    text.length > MAX_MESSAGES_CHARACTERS
      ? el("p", {}, t("moreCharacters", { count: text.length - MAX_MESSAGES_CHARACTERS }))
      : undefined,
  ];
}

function tallySection(
  about: {
    readonly found: Proposal;
    /** Undefined where there are too many votes to count them now. */
    readonly tally: Tally | undefined;
    /** Undefined for one that is over: the stake of its end is not known any more. */
    readonly bonded: bigint | undefined;
    readonly rules: VotingRules;
  },
  t: Texts,
): Content {
  const { found, tally, bonded, rules } = about;
  const title = found.status === "voting" ? t("tallyNow") : t("tallyFinal");
  if (tally === undefined) return section(title, el("p", {}, t("notCounted")));
  const sum = tally.yes + tally.abstain + tally.no + tally.veto;
  const options: readonly VoteOption[] = ["yes", "abstain", "no", "veto"];
  return section(
    title,
    table({
      caption: title,
      columns: [t("vote"), t("stake"), t("share")],
      numeric: [1, 2],
      empty: t("noVotes"),
      rows: options.map((option) => [
        optionName(option, t),
        tokenAmount(tally[option]),
        percent(tally[option], sum),
      ]),
    }),
    facts([
      [
        t("turnout"),
        bonded === undefined ? undefined : `${percent(sum, bonded)} · ${tokenAmount(sum)}`,
      ],
      [t("quorum"), percent(rules.quorum, DECIMAL_ONE)],
      [
        t("threshold"),
        percent(found.isExpedited ? rules.expeditedThreshold : rules.threshold, DECIMAL_ONE),
      ],
      [t("vetoThreshold"), percent(rules.vetoThreshold, DECIMAL_ONE)],
    ]),
    el("p", {}, t("rulesNow")),
  );
}

function votesContent(id: bigint, { items, next }: RestPage<Vote>, t: Texts): Content {
  return [
    table({
      caption: t("votes"),
      columns: [t("voter"), t("vote")],
      empty: t("noVotes"),
      rows: items.map(({ voter, options }) => [
        addressLink(voter, t),
        options
          .map(({ option, weight }) =>
            weight === DECIMAL_ONE
              ? optionName(option, t)
              : `${optionName(option, t)} ${percent(weight, DECIMAL_ONE)}`,
          )
          .join(", "),
      ]),
    }),
    pager(t, { of: t("votes"), older: pathOf(id, "votes", next) }),
  ];
}

function depositsContent(id: bigint, { items, next }: RestPage<Deposit>, t: Texts): Content {
  return [
    table({
      caption: t("deposits"),
      columns: [t("depositor"), t("amount")],
      numeric: [1],
      empty: t("noDeposits"),
      rows: items.map(({ depositor, amountAtoken }) => [
        addressLink(depositor, t),
        tokenAmount(amountAtoken),
      ]),
    }),
    pager(t, { of: t("deposits"), older: pathOf(id, "deposits", next) }),
  ];
}

function pathOf(id: bigint, list: "votes" | "deposits", next: string | undefined) {
  return next === undefined ? undefined : `/proposal/${id}?${list}=${encodeURIComponent(next)}`;
}

function titleOf({ title, id }: Proposal, t: Texts): string {
  return foreignText(title) || t("proposal", { id: String(id) });
}

/** The last part of a message's type: its name without the module's path. */
function typeOf(message: Readonly<Record<string, unknown>>): Content {
  const type = typeof message["@type"] === "string" ? message["@type"] : "";
  return el(
    "code",
    { title: foreignText(type) },
    foreignName(type.slice(type.lastIndexOf(".") + 1)),
  );
}

function optionName(option: VoteOption, t: Texts): string {
  const names = {
    yes: "optionYes",
    abstain: "optionAbstain",
    no: "optionNo",
    veto: "optionVeto",
  } as const;
  return t(names[option]);
}

function statusBadge(status: ProposalStatus, t: Texts): Content {
  switch (status) {
    case "deposit":
      return badge("neutral", t("proposalWaiting"));
    case "voting":
      return badge("warn", t("proposalVoting"));
    case "passed":
      return badge("good", t("proposalPassed"));
    case "rejected":
      return badge("bad", t("proposalRejected"));
    default:
      return badge("bad", t("proposalFailed"));
  }
}

function optionalTime(seconds: number | undefined): Content {
  return seconds === undefined ? undefined : time(seconds);
}

function timeOr(seconds: number | undefined): Content {
  return optionalTime(seconds) ?? "—";
}
