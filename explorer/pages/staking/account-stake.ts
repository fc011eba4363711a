/** An account's stake on its page: delegations, what is on its way out, rewards, locked coins. */
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import type { Atoken } from "../../../chain/units.js";
import { type Content, el } from "../../../web/html/element.js";
import { tokenAmount } from "../../../web/html/format.js";
import { type Fact, facts, pager, section, table, time } from "../../../web/html/parts.js";
import { addressLink } from "../../html/chain-links.js";
import type { PageRequest } from "../../server/page.js";
import type { RestPage } from "../../sources/modules/rest-fields.js";
import type {
  Delegation,
  RedelegationEntry,
  RewardList,
  UnbondingEntry,
  VestingSchedule,
} from "../../sources/modules/staking-source.js";
import type { Texts } from "../../text/catalogue.js";
import type { PageContext } from "../context.js";
import { askModules, isNoAnswer, noAnswerNote, placeIn } from "../modules-asked.js";
import { validatorLink } from "./validator-parts.js";

/** The name of the place in the list of delegations in an address of a page. */
export const STAKE_PLACE = "stake";

/** The part of the page; undefined where the chain has no stake. */
export async function stakeSection(
  context: PageContext,
  account: Address,
  request: PageRequest,
): Promise<Content> {
  const { t } = request;
  const parts = await askModules(stakeParts(context, account, request));
  if (parts === "unserved") return undefined;
  return section(t("stake"), isNoAnswer(parts) ? noAnswerNote(parts, t) : parts);
}

async function stakeParts(
  { staking }: PageContext,
  account: Address,
  { t, query, signal }: PageRequest,
): Promise<Content> {
  const place = placeIn(query, STAKE_PLACE);
  const [delegations, leaving, moved, rewards, payout, vesting, own] = await Promise.all([
    staking.delegationsOf(account, place, signal),
    staking.unbondingOf(account, signal),
    staking.redelegationsOf(account, signal),
    staking.rewardsOf(account, signal),
    staking.payoutAddress(account, signal),
    staking.vesting(account, signal),
    staking.validator(account, signal),
  ]);
  const spendable =
    vesting === undefined ? undefined : await staking.spendableAtoken(account, signal);
  const hasStake =
    delegations.items.length + leaving.items.length + moved.items.length > 0 ||
    place !== undefined ||
    rewards.totalAtoken > 0n;
  const general: readonly Fact[] = [
    [t("validatorOf"), own === undefined ? undefined : validatorLink(own.operator)],
    [t("rewards"), rewards.totalAtoken > 0n ? tokenAmount(rewards.totalAtoken) : undefined],
    [t("payoutAddress"), payout === account ? undefined : addressLink(payout, t)],
    ...vestingFacts(vesting, spendable, t),
  ];
  return [
    general.some(([, value]) => value !== undefined) ? facts(general) : undefined,
    hasStake ? undefined : el("p", { class: "empty" }, t("noStake")),
    delegations.items.length === 0 ? undefined : delegationTable(delegations, rewards, t),
    pagerOf(account, delegations, t),
    leaving.items.length === 0 ? undefined : leavingTable(leaving, t),
    moved.items.length === 0 ? undefined : movedTable(moved, t),
  ];
}

function vestingFacts(
  vesting: VestingSchedule | undefined,
  spendableAtoken: Atoken | undefined,
  t: Texts,
): readonly Fact[] {
  if (vesting === undefined) return [];
  const { originalAtoken, delegatedLockedAtoken, fromSeconds, untilSeconds } = vesting;
  return [
    [t("lockedAtStart"), tokenAmount(originalAtoken)],
    [t("unlockFrom"), fromSeconds === undefined ? t("vestingAllAtOnce") : time(fromSeconds)],
    [t("unlockUntil"), time(untilSeconds)],
    [t("lockedDelegated"), tokenAmount(delegatedLockedAtoken)],
    [t("spendable"), spendableAtoken === undefined ? undefined : tokenAmount(spendableAtoken)],
  ];
}

function delegationTable(
  { items }: RestPage<Delegation>,
  { byOperator }: RewardList,
  t: Texts,
): Content {
  return table({
    caption: t("delegations"),
    columns: [t("validator"), t("delegated"), t("rewards")],
    numeric: [1, 2],
    empty: t("noStake"),
    rows: items.map(({ operator, amountAtoken }) => [
      validatorLink(operator),
      tokenAmount(amountAtoken),
      tokenAmount(byOperator.get(operator) ?? 0n),
    ]),
  });
}

function pagerOf(account: Address, { next }: RestPage<Delegation>, t: Texts): Content {
  if (next === undefined) return undefined;
  const own = `/address/${toChecksumAddress(account)}`;
  return pager(t, {
    of: t("delegations"),
    older: `${own}?${STAKE_PLACE}=${encodeURIComponent(next)}`,
  });
}

function leavingTable({ items, next }: RestPage<UnbondingEntry>, t: Texts): Content {
  return [
    table({
      caption: t("stakeOnTheWay"),
      columns: [t("validator"), t("amount"), t("freeAt")],
      numeric: [1],
      empty: t("noneOnTheWay"),
      rows: items.map(({ operator, amountAtoken, freeAtSeconds }) => [
        validatorLink(operator),
        tokenAmount(amountAtoken),
        freeAtSeconds === undefined ? "—" : time(freeAtSeconds),
      ]),
    }),
    next === undefined ? undefined : el("p", {}, t("moreOnTheWay")),
  ];
}

function movedTable({ items, next }: RestPage<RedelegationEntry>, t: Texts): Content {
  return [
    table({
      caption: t("movedStake"),
      columns: [t("movedFrom"), t("movedTo"), t("amount"), t("liableUntil")],
      numeric: [2],
      empty: t("noneOnTheWay"),
      rows: items.map(({ from, to, amountAtoken, endsAtSeconds }) => [
        validatorLink(from),
        validatorLink(to),
        tokenAmount(amountAtoken),
        endsAtSeconds === undefined ? "—" : time(endsAtSeconds),
      ]),
    }),
    next === undefined ? undefined : el("p", {}, t("moreOnTheWay")),
  ];
}
