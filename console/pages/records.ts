/** Incidents, and the record of what was called and decided. */
import { type Content, el } from "../../web/html/element.js";
import { badge, code, section, table } from "../../web/html/parts.js";
import { moment, statusBadge } from "../html/amounts.js";
import { actionForm, reasonField, submit } from "../html/forms.js";
import type { ConsolePage, ConsolePost, ConsoleRequest, ConsoleRoutes } from "../server/route.js";
import {
  callPage,
  decisionPage,
  incidentPage,
  RECOVERY,
  resumed,
  stoppingIncident,
} from "../sources/answers.js";
import { isAble } from "../users/roles.js";
import {
  cursorOf,
  DONE_QUERY,
  doneNote,
  olderPager,
  PAGE_ROWS,
  reasonOf,
  warning,
} from "./context.js";

/** "/incidents" and resuming, "/audit", "/audit/decisions". */
export function recordRoutes(): ConsoleRoutes {
  return {
    pages: [
      { path: "/incidents", query: ["after", DONE_QUERY], show: incidents },
      { path: "/audit", query: ["after"], show: calls },
      { path: "/audit/decisions", query: ["after"], show: decisions },
    ],
    actions: [{ path: "/incidents/resume", needs: "operate", act: resume }],
  };
}

async function incidents(request: ConsoleRequest): Promise<ConsolePage> {
  const { api, t, role, signal } = request;
  const query = { order: "newest", limit: PAGE_ROWS, after: cursorOf(request) };
  const question = { api: "deposit", path: "/v1/incidents", query } as const;
  const found = await api.get({ ...question, schema: incidentPage }, signal);
  const open = stoppingIncident(found.incidents);
  const canResume = open !== undefined && open.kind !== RECOVERY && isAble(role, "operate");
  return {
    title: t("incidents"),
    content: [
      doneNote(request),
      el("p", {}, t("incidentsText")),
      open === undefined
        ? undefined
        : [
            warning(t("openIncident", { message: `${open.kind}: ${open.message}` })),
            el("p", {}, `${t("remedy")}: ${open.remedy}`),
          ],
      canResume ? resumeForm(request, open.id) : undefined,
      table({
        caption: t("incidents"),
        columns: [t("since"), t("type"), t("block"), t("message"), t("state"), t("by")],
        numeric: [2],
        empty: t("noIncidents"),
        rows: found.incidents.map((incident) => [
          moment(incident.openedAt),
          incident.kind,
          incident.blockNumber ?? "—",
          incident.message,
          incident.resolvedAt === null
            ? badge("bad", t("open"))
            : [badge("good", t("resolved")), " ", moment(incident.resolvedAt)],
          incident.resolvedBy ?? "—",
        ]),
      }),
      olderPager(request, "/incidents", found.next, []),
    ],
  };
}

/** It names what is shown: another incident may be open when it is sent. */
function resumeForm({ t, hiddenFields }: ConsoleRequest, id: number): Content {
  const shown = el("input", { type: "hidden", name: "incidentId", value: String(id) });
  const hidden = [hiddenFields(), shown];
  return section(
    t("resume"),
    actionForm(
      { action: "/incidents/resume", hidden, submit: submit(t("resume")) },
      reasonField("resume", t("reasonHint")),
    ),
  );
}

async function resume(post: ConsolePost): Promise<string> {
  const reason = reasonOf(post);
  const incidentId = Number(post.form.get("incidentId"));
  await post.api.post(
    {
      api: "deposit",
      path: "/v1/incidents/resume",
      body: { reason, incidentId },
      reason,
      idempotencyKey: post.formKey,
      schema: resumed,
    },
    post.signal,
  );
  return `/incidents?${DONE_QUERY}=resumed`;
}

async function calls(request: ConsoleRequest): Promise<ConsolePage> {
  const { api, t, signal } = request;
  const query = { order: "newest", limit: PAGE_ROWS, after: cursorOf(request) };
  const question = { api: "deposit", path: "/v1/calls", query, schema: callPage } as const;
  const found = await api.get(question, signal);
  return {
    title: t("audit"),
    content: [
      el("p", {}, t("auditText")),
      el("p", {}, el("a", { href: "/audit/decisions" }, t("decisions"))),
      table({
        caption: t("audit"),
        columns: [t("at"), t("actor"), t("reason"), t("path"), t("keyId")],
        empty: t("noCalls"),
        rows: found.calls.map((call) => [
          moment(call.at),
          call.actor ?? "—",
          call.reason ?? "—",
          code(`${call.method} ${call.path}`),
          call.keyId,
        ]),
      }),
      olderPager(request, "/audit", found.next, []),
    ],
  };
}

async function decisions(request: ConsoleRequest): Promise<ConsolePage> {
  const { api, t, signal } = request;
  const query = { order: "newest", limit: PAGE_ROWS, after: cursorOf(request) };
  const question = { api: "deposit", path: "/v1/decisions", query, schema: decisionPage } as const;
  const found = await api.get(question, signal);
  return {
    title: t("decisions"),
    content: [
      el("p", {}, t("decisionsText")),
      table({
        caption: t("decisions"),
        columns: [
          t("at"),
          t("type"),
          t("id"),
          t("reason"),
          t("status"),
          t("proposed"),
          t("decided"),
        ],
        empty: t("noDecisions"),
        rows: found.decisions.map((decision) => [
          moment(decision.proposedAt),
          decision.kind,
          code(decision.key),
          decision.reason,
          statusBadge(decision.status),
          decision.proposedBy,
          decision.decidedBy ?? "—",
        ]),
      }),
      olderPager(request, "/audit/decisions", found.next, []),
    ],
  };
}
