/** One validator: who runs it, its stake, commission, signing, and who delegated to it. */
import {
  type Address,
  consensusText,
  operatorText,
  toChecksumAddress,
} from "../../../chain/address.js";
import { badRequest, notFound } from "../../../web/errors.js";
import { type Content, el } from "../../../web/html/element.js";
import { foreignName, foreignText, percent, tokenAmount } from "../../../web/html/format.js";
import { code, facts, pager, section, table, time } from "../../../web/html/parts.js";
import { readAddress, readConsensusAddress } from "../../decode/identifiers.js";
import { addressLink } from "../../html/chain-links.js";
import type { PageAnswer, PageRequest, PageRoute } from "../../server/page.js";
import type { RestPage } from "../../sources/modules/rest-fields.js";
import type {
  Delegation,
  StakedValidator,
  UnbondingEntry,
} from "../../sources/modules/staking-source.js";
import type { Texts } from "../../text/catalogue.js";
import type { PageContext } from "../context.js";
import { askModules, isNoAnswer, noAnswerPage, placeIn } from "../modules-asked.js";
import { commissionText, missedText, ownWords, stateBadges } from "./validator-parts.js";

/** "/validator/<addrvaloper, addr1 or 0x of the operator, addrvalcons or 0x of the key>". */
export function validatorPageRoutes(context: PageContext): readonly PageRoute[] {
  return [
    {
      path: "/validator",
      hasParameter: true,
      isCostly: true,
      query: ["after"],
      handle: (request) => validator(context, request),
    },
  ];
}

async function validator(context: PageContext, request: PageRequest): Promise<PageAnswer> {
  const { t, parameter, signal } = request;
  const { staking } = context;
  const operator = readAddress(parameter);
  const consensus = operator ?? readConsensusAddress(parameter);
  if (consensus === undefined) throw badRequest("not an address");
  const found =
    operator === undefined ? undefined : await askModules(staking.validator(operator, signal));
  if (isNoAnswer(found)) return noAnswerPage(found, t("validator"), t);
  if (found === undefined) {
    // Blocks name those who proposed them by their keys.
    const named = await askModules(staking.ofConsensus(consensus, signal));
    if (isNoAnswer(named)) return noAnswerPage(named, t("validator"), t);
    if (named === undefined) throw notFound("no validator of this address");
    return { location: `/validator/${toChecksumAddress(named.operator)}` };
  }
  const asked = await askModules(pageParts(context, found, request));
  if (isNoAnswer(asked)) return noAnswerPage(asked, t("validator"), t);
  return { title: t("validator"), content: asked };
}

async function pageParts(
  { staking }: PageContext,
  found: StakedValidator,
  { t, query, signal }: PageRequest,
): Promise<Content> {
  const { operator } = found;
  const after = placeIn(query, "after");
  const [record, window, bonded, earnings, own, delegations, leaving] = await Promise.all([
    staking.signingOf(found.consensusAddress, signal),
    staking.signingWindow(signal),
    staking.bondedAtoken(signal),
    staking.earnings(operator, signal),
    staking.delegation(operator, operator, signal),
    staking.delegationsTo(operator, after, signal),
    staking.unbondingFrom(operator, signal),
  ]);
  const { commission } = found;
  const until = record?.jailedUntilSeconds;
  return [
    facts([
      [t("validatorName"), ownWords(foreignName(found.moniker))],
      [t("operatorAddress"), code(operatorText(operator))],
      [t("account"), addressLink(operator, t, false)],
      [t("status"), stateBadges(found, record, t)],
      [t("jailedUntil"), found.isJailed && until !== undefined ? time(until) : undefined],
      [t("freeAt"), found.freeAtSeconds === undefined ? undefined : time(found.freeAtSeconds)],
      [t("stake"), el("strong", {}, tokenAmount(found.stakeAtoken))],
      [t("share"), found.status === "bonded" ? percent(found.stakeAtoken, bonded) : undefined],
      [t("ownStake"), tokenAmount(own?.amountAtoken ?? 0n)],
      [t("minSelfStake"), tokenAmount(found.minSelfStakeAtoken)],
      [t("commissionRate"), commissionText(commission.rate)],
      [t("commissionMax"), commissionText(commission.maxRate)],
      [t("commissionMaxChange"), commissionText(commission.maxChangeRate)],
      [
        t("commissionChanged"),
        commission.changedAtSeconds === undefined ? undefined : time(commission.changedAtSeconds),
      ],
      [t("outstandingRewards"), tokenAmount(earnings.outstandingAtoken)],
      [t("commissionEarned"), tokenAmount(earnings.commissionAtoken)],
      [t("validatorSigns"), missedText(record, window, t)],
      [t("slashes"), earnings.slashes],
      [t("consensusAddress"), code(consensusText(found.consensusAddress))],
      [t("publicKey"), code(found.publicKey)],
    ]),
    wordsSection(found, t),
    section(
      t("delegations"),
      delegationTable(delegations, found, t),
      pagerOf(delegations, found, t),
    ),
    section(t("unbondingFrom"), leavingTable(leaving, t)),
  ];
}

function wordsSection(found: StakedValidator, t: Texts): Content {
  const words = [
    [t("website"), found.website],
    [t("identity"), found.identity],
    [t("securityContact"), found.contact],
    [t("details"), found.details],
  ] as const;
  if (words.every(([, text]) => text === "")) return undefined;
  return section(
    t("operatorTexts"),
    el("p", {}, t("operatorTextsText")),
    facts(words.map(([name, text]) => [name, ownWords(foreignText(text))])),
  );
}

function delegationTable(
  { items }: RestPage<Delegation>,
  { stakeAtoken }: StakedValidator,
  t: Texts,
): Content {
  return table({
    caption: t("delegations"),
    columns: [t("delegator"), t("stake"), t("share")],
    numeric: [1, 2],
    empty: t("noDelegations"),
    rows: items.map(({ delegator, amountAtoken }) => [
      addressLink(delegator, t),
      tokenAmount(amountAtoken),
      percent(amountAtoken, stakeAtoken),
    ]),
  });
}

function pagerOf({ next }: RestPage<Delegation>, { operator }: StakedValidator, t: Texts): Content {
  const own = ownPath(operator);
  const older = next === undefined ? undefined : `${own}?after=${encodeURIComponent(next)}`;
  return pager(t, { older });
}

function ownPath(operator: Address): string {
  return `/validator/${toChecksumAddress(operator)}`;
}

function leavingTable({ items, next }: RestPage<UnbondingEntry>, t: Texts): Content {
  return [
    table({
      caption: t("unbondingFrom"),
      columns: [t("delegator"), t("amount"), t("freeAt")],
      numeric: [1],
      empty: t("noneOnTheWay"),
      rows: items.map(({ delegator, amountAtoken, freeAtSeconds }) => [
        addressLink(delegator, t),
        tokenAmount(amountAtoken),
        freeAtSeconds === undefined ? "—" : time(freeAtSeconds),
      ]),
    }),
    next === undefined ? undefined : el("p", {}, t("moreOnTheWay")),
  ];
}
