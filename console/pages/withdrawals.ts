/** Withdrawals: the list, one with its history, and that it is not to be paid any more. */
import type { Content } from "../../web/html/element.js";
import { el } from "../../web/html/element.js";
import { code, facts, section, table } from "../../web/html/parts.js";
import { amount, type AssetDecimals, moment, statusBadge } from "../html/amounts.js";
import { actionForm, reasonField, submit } from "../html/forms.js";
import type { ConsolePage, ConsolePost, ConsoleRequest, ConsoleRoutes } from "../server/route.js";
import { withdrawalAnswer, withdrawalPage, type WithdrawalView } from "../sources/answers.js";
import type { Texts } from "../text/catalogue.js";
import type { TextKey } from "../text/english.js";
import { isAble } from "../users/roles.js";
import {
  decimalsOf,
  DONE_QUERY,
  doneNote,
  listFilter,
  newestPage,
  olderPager,
  reasonOf,
  segment,
  short,
} from "./context.js";

const STATUSES = [
  "pending_approval",
  "accepted",
  "slotted",
  "signed",
  "broadcast",
  "cancelling",
  "included",
  "frozen",
  "settled",
  "failed",
  "rejected",
  "cancelled",
];

/** States in which a withdrawal may still be cancelled. */
const CANCELLABLE = new Set([
  "pending_approval",
  "accepted",
  "slotted",
  "signed",
  "broadcast",
  "frozen",
]);

/** What a cancellation has come to, where nothing is left of it to wait for, or nothing sure. */
const DONE_AT: Readonly<Partial<Record<string, TextKey>>> = {
  settled: "donePaid",
  frozen: "doneFrozen",
};

const FILTERS = ["status", "customerId"] as const;

/** "/withdrawals", "/withdrawals/{id}" and its cancellation. */
export function withdrawalRoutes(): ConsoleRoutes {
  return {
    pages: [
      { path: "/withdrawals", query: [...FILTERS, "after"], show: list },
      { path: "/withdrawals/{id}", query: [DONE_QUERY], show: one },
    ],
    actions: [{ path: "/withdrawals/{id}/cancel", needs: "operate", act: cancel }],
  };
}

async function list(request: ConsoleRequest): Promise<ConsolePage> {
  const { query, t } = request;
  const [status, customerId] = FILTERS.map((name) => query.get(name) ?? undefined);
  const [{ withdrawals, next }, decimals] = await newestPage(
    request,
    { api: "withdrawal", path: "/v1/withdrawals", schema: withdrawalPage },
    { status, customerId },
  );
  return {
    title: t("withdrawals"),
    content: [
      listFilter(request, "/withdrawals", STATUSES),
      withdrawalTable(withdrawals, { decimals, t, path: "/withdrawals" }),
      olderPager(request, "/withdrawals", next, FILTERS),
    ],
  };
}

/** Withdrawals as a table, with links below `path`. */
export function withdrawalTable(
  withdrawals: readonly WithdrawalView[],
  shown: { readonly decimals: AssetDecimals; readonly t: Texts; readonly path: string },
): Content {
  const { decimals, t, path } = shown;
  return table({
    caption: t("withdrawals"),
    columns: [t("id"), t("status"), t("amount"), t("customer"), t("destination"), t("since")],
    numeric: [2],
    empty: t("noWithdrawals"),
    rows: withdrawals.map((withdrawal) => [
      el("a", { href: `${path}/${segment(withdrawal.id)}` }, short(withdrawal.id)),
      statusBadge(withdrawal.status),
      amount(withdrawal.amountUnits, withdrawal.asset, decimals),
      withdrawal.customerId,
      short(withdrawal.to),
      moment(withdrawal.history.at(-1)?.at ?? null),
    ]),
  });
}

async function one(request: ConsoleRequest): Promise<ConsolePage> {
  const { api, params, t, role, signal } = request;
  const id = params["id"] ?? "";
  const path = `/v1/withdrawals/${segment(id)}`;
  const [found, decimals] = await Promise.all([
    api.get({ api: "withdrawal", path, schema: withdrawalAnswer }, signal),
    decimalsOf(request),
  ]);
  const canCancel = isAble(role, "operate") && CANCELLABLE.has(found.status);
  return {
    title: `${t("withdrawal")} ${found.id}`,
    content: [
      doneNote(request, DONE_AT[found.status]),
      withdrawalFacts(found, decimals, t),
      section(
        t("history"),
        table({
          caption: t("history"),
          columns: [t("status"), t("at")],
          empty: t("noEntries"),
          rows: found.history.map(({ status, at }) => [statusBadge(status), moment(at)]),
        }),
      ),
      found.hashes.length === 0
        ? undefined
        : section(
            t("hashes"),
            el(
              "ul",
              {},
              found.hashes.map((hash) => el("li", {}, code(hash))),
            ),
          ),
      found.approvalsNeeded === 0
        ? undefined
        : section(
            t("approvals"),
            el(
              "p",
              {},
              el(
                "a",
                { href: `/approvals/${segment(found.id)}` },
                t("approvalsGiven", {
                  given: found.approvalsGiven,
                  needed: found.approvalsNeeded,
                }),
              ),
            ),
          ),
      canCancel ? cancelForm(request, found) : undefined,
    ],
  };
}

/** The terms of a withdrawal and where it stands. */
export function withdrawalFacts(found: WithdrawalView, decimals: AssetDecimals, t: Texts): Content {
  return facts([
    [t("status"), statusBadge(found.status)],
    [t("reason"), found.reason ?? undefined],
    [t("amount"), amount(found.amountUnits, found.asset, decimals)],
    [t("fee"), amount(found.feeUnits, found.asset, decimals)],
    [t("customer"), found.customerId],
    [t("destination"), code(found.to)],
    [t("wallet"), found.wallet === null ? undefined : code(found.wallet)],
    [t("nonce"), found.nonce ?? undefined],
    [t("transaction"), found.txHash === null ? undefined : code(found.txHash)],
    [t("block"), found.blockNumber ?? undefined],
    [t("expires"), found.expiresAt === null ? undefined : moment(found.expiresAt)],
  ]);
}

function cancelForm({ t, hiddenFields }: ConsoleRequest, found: WithdrawalView): Content {
  const { id, status } = found;
  return section(
    t("cancel"),
    el("p", {}, t(status === "frozen" ? "cancelFrozenText" : "cancelText")),
    actionForm(
      {
        action: `/withdrawals/${segment(id)}/cancel`,
        hidden: hiddenFields(),
        submit: submit(t("cancel"), { isDanger: true }),
      },
      reasonField("cancel", t("reasonHint")),
    ),
  );
}

async function cancel(post: ConsolePost): Promise<string> {
  const id = segment(post.params["id"] ?? "");
  const reason = reasonOf(post);
  await post.api.post(
    {
      api: "withdrawal",
      path: `/v1/withdrawals/${id}/cancel`,
      body: { reason },
      reason,
      idempotencyKey: post.formKey,
      schema: withdrawalAnswer,
    },
    post.signal,
  );
  return `/withdrawals/${id}?${DONE_QUERY}=cancelled`;
}
