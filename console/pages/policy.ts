/** The policy in force, and the kill switch, which the console can only raise. */
import { badRequest, STATUS_OF } from "../../web/errors.js";
import { type Content, el } from "../../web/html/element.js";
import { badge, code, facts, section, table } from "../../web/html/parts.js";
import { block, moment } from "../html/amounts.js";
import { actionForm, choice, reasonField, submit } from "../html/forms.js";
import type { ConsolePage, ConsolePost, ConsoleRequest, ConsoleRoutes } from "../server/route.js";
import { killSwitch, type KillSwitchView } from "../sources/answers.js";
import { isAble } from "../users/roles.js";
import { DONE_QUERY, doneNote, ifGiven, policyOf, reasonOf, warning } from "./context.js";

const LEVELS = ["stop-new", "stop-sign", "stop-broadcast"];

const LIFT = 'npm run causeway -- killswitch lift --reason "..." --operator NAME';

/** "/policy" and raising the switch. */
export function policyRoutes(): ConsoleRoutes {
  return {
    pages: [{ path: "/policy", query: [DONE_QUERY], show, showBusy }],
    actions: [{ path: "/policy/kill-switch", needs: "operate", act: raise }],
  };
}

async function show(request: ConsoleRequest): Promise<ConsolePage> {
  const { api, t, signal } = request;
  const question = { api: "withdrawal", path: "/v1/kill-switch", schema: killSwitch } as const;
  const [policy, stop] = await Promise.all([
    policyOf(request),
    // While the ledger is away nobody says what is stopped: it can be raised all the same.
    ifGiven(api.get(question, signal)),
  ]);
  return {
    title: t("policy"),
    content: [
      doneNote(request),
      switchSection(request, stop),
      section(
        t("policy"),
        policy === undefined
          ? warning(t("policyAway"))
          : [
              el("p", {}, t("policyText")),
              facts([[t("policyHash"), code(policy.hash)]]),
              block(JSON.stringify(policy.terms, undefined, 2), t("terms")),
            ],
      ),
    ],
  };
}

/** Stopping payments needs no answer of an API: it waits for no page that does. */
function showBusy(request: ConsoleRequest): ConsolePage {
  const { t } = request;
  const content = [doneNote(request), warning(t("busyText")), switchSection(request, undefined)];
  return { status: STATUS_OF.BUSY, title: t("policy"), content };
}

function switchSection(request: ConsoleRequest, stop: KillSwitchView | undefined): Content {
  const { t, role } = request;
  return section(
    t("killSwitch"),
    stop === undefined ? warning(t("killSwitchAway")) : levels(request, stop),
    isAble(role, "operate") ? raiseForm(request, stop?.level ?? "none") : undefined,
    el("p", {}, t("killSwitchLift")),
    block(LIFT, t("commandLine")),
  );
}

function levels({ t }: ConsoleRequest, { level, home, ledger }: KillSwitchView): Content {
  const isOpen = level === "none";
  const row = (name: string, place: KillSwitchView["home"]) => [
    name,
    place.level,
    place.reason,
    place.by,
    moment(place.at),
  ];
  return [
    el("p", {}, badge(isOpen ? "good" : "bad", isOpen ? t("levelNone") : level)),
    table({
      caption: t("killSwitch"),
      columns: [t("name"), t("level"), t("reason"), t("by"), t("at")],
      empty: t("noEntries"),
      rows: [row(t("home"), home), row(t("ledger"), ledger)],
    }),
  ];
}

function raiseForm({ t, hiddenFields }: ConsoleRequest, level: string): Content {
  const rest = LEVELS.slice(Math.max(0, LEVELS.indexOf(level)));
  return actionForm(
    {
      action: "/policy/kill-switch",
      hidden: hiddenFields(),
      submit: submit(t("raise"), { isDanger: true }),
    },
    choice("raise", {
      name: "level",
      label: t("level"),
      value: undefined,
      options: rest.map((one) => [one, one]),
    }),
    reasonField("raise", t("reasonHint")),
  );
}

async function raise(post: ConsolePost): Promise<string> {
  const level = post.form.get("level") ?? "";
  if (!LEVELS.includes(level)) throw badRequest("no level of the kill switch");
  const reason = reasonOf(post);
  const { homeFault = null } = await post.api.post(
    {
      api: "withdrawal",
      path: "/v1/kill-switch",
      body: { level, reason },
      reason,
      idempotencyKey: post.formKey,
      schema: killSwitch,
      // The worker's home is stopped first, whatever becomes of the ledger.
      isPartial: true,
    },
    post.signal,
  );
  const done = homeFault === null ? "raised" : "raised-in-ledger";
  return `/policy?${DONE_QUERY}=${done}`;
}
