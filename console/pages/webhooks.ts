/** Webhooks: how far each is, what became of its deliveries, and sending again. */
import { badRequest } from "../../web/errors.js";
import { type Content, el } from "../../web/html/element.js";
import { code, facts, section, table } from "../../web/html/parts.js";
import { moment, statusBadge } from "../html/amounts.js";
import { actionForm, choice, field, filterForm, reasonField, submit } from "../html/forms.js";
import type { ConsolePage, ConsolePost, ConsoleRequest, ConsoleRoutes } from "../server/route.js";
import { deliveryPage, webhookAnswer, webhookList } from "../sources/answers.js";
import { isAble } from "../users/roles.js";
import {
  cursorOf,
  DONE_QUERY,
  doneNote,
  olderPager,
  PAGE_ROWS,
  reasonOf,
  segment,
  warning,
} from "./context.js";

const STATUSES = ["pending", "delivered", "dead"];

/** "/webhooks", "/webhooks/{id}" and sending again. */
export function webhookRoutes(): ConsoleRoutes {
  return {
    pages: [
      { path: "/webhooks", show: list },
      { path: "/webhooks/{id}", query: ["status", "after", DONE_QUERY], show: one },
    ],
    actions: [{ path: "/webhooks/{id}/redeliver", needs: "operate", act: redeliver }],
  };
}

async function list({ api, t, signal }: ConsoleRequest): Promise<ConsolePage> {
  const question = { api: "deposit", path: "/v1/webhooks", schema: webhookList } as const;
  const { webhooks } = await api.get(question, signal);
  return {
    title: t("webhooks"),
    content: table({
      caption: t("webhooks"),
      columns: [t("id"), t("url"), t("events"), t("status"), t("behind"), t("pending"), t("dead")],
      numeric: [4, 5, 6],
      empty: t("noWebhooks"),
      rows: webhooks.map((webhook) => [
        el("a", { href: `/webhooks/${segment(webhook.id)}` }, webhook.id),
        webhook.url,
        webhook.events.join(", "),
        statusBadge(webhook.status),
        webhook.behindEvents,
        webhook.pending,
        webhook.dead,
      ]),
    }),
  };
}

async function one(request: ConsoleRequest): Promise<ConsolePage> {
  const { api, params, query, t, role, signal } = request;
  const path = `/v1/webhooks/${segment(params["id"] ?? "")}`;
  const status = query.get("status") ?? undefined;
  const asked = { status, after: cursorOf(request), order: "newest", limit: PAGE_ROWS };
  const [webhook, { deliveries, next }] = await Promise.all([
    api.get({ api: "deposit", path, schema: webhookAnswer }, signal),
    api.get(
      { api: "deposit", path: `${path}/deliveries`, query: asked, schema: deliveryPage },
      signal,
    ),
  ]);
  const here = `/webhooks/${segment(webhook.id)}`;
  const all = [
    ["", t("allStatuses")],
    ...STATUSES.map((known) => [known, known] as const),
  ] as const;
  return {
    title: `${t("webhook")} ${webhook.id}`,
    content: [
      doneNote(request),
      webhook.reason === null ? undefined : warning(webhook.reason),
      facts([
        [t("url"), code(webhook.url)],
        [t("description"), webhook.description ?? undefined],
        [t("events"), webhook.events.join(", ")],
        [t("status"), statusBadge(webhook.status)],
        [t("since"), moment(webhook.createdAt)],
        [t("behind"), webhook.behindEvents],
      ]),
      section(
        t("deliveries"),
        filterForm(
          here,
          t("filter"),
          choice("filter", { name: "status", label: t("status"), value: status, options: all }),
        ),
        table({
          caption: t("deliveries"),
          columns: [
            t("id"),
            t("type"),
            t("status"),
            t("attempts"),
            t("nextTry"),
            t("lastStatus"),
            t("lastError"),
            t("at"),
          ],
          numeric: [0, 3, 5],
          empty: t("noDeliveries"),
          rows: deliveries.map((delivery) => [
            delivery.seq,
            delivery.type,
            statusBadge(delivery.status),
            delivery.attempts,
            moment(delivery.nextTryAt),
            delivery.lastStatus ?? "—",
            delivery.lastError ?? "—",
            moment(delivery.changedAt),
          ]),
        }),
        olderPager(request, here, next, ["status"]),
      ),
      isAble(role, "operate") ? redeliverForm(request, here, webhook.cursorSeq) : undefined,
    ],
  };
}

function redeliverForm({ t, hiddenFields }: ConsoleRequest, here: string, seq: number): Content {
  return section(
    t("redeliver"),
    actionForm(
      {
        action: `${here}/redeliver`,
        hidden: hiddenFields(),
        submit: submit(t("redeliver")),
      },
      field("redeliver", {
        name: "fromSeq",
        label: t("fromSeq"),
        kind: "number",
        isRequired: true,
        maxLength: 15,
        pattern: "[1-9][0-9]{0,14}",
        value: String(Math.max(1, seq)),
      }),
      reasonField("redeliver", t("reasonHint")),
    ),
  );
}

async function redeliver(post: ConsolePost): Promise<string> {
  const id = segment(post.params["id"] ?? "");
  const text = post.form.get("fromSeq")?.trim() ?? "";
  if (!/^[1-9][0-9]{0,14}$/.test(text)) throw badRequest("fromSeq is no event's number");
  const { note } = await post.api.post(
    {
      api: "deposit",
      path: `/v1/webhooks/${id}/redeliver`,
      body: { fromSeq: Number(text) },
      reason: reasonOf(post),
      idempotencyKey: post.formKey,
      schema: webhookAnswer,
    },
    post.signal,
  );
  const done = note === undefined ? "redelivered" : "nothing-redelivered";
  return `/webhooks/${id}?${DONE_QUERY}=${done}`;
}
