/** Approvals: what waits for persons, what exactly they sign, and their word about it. */
import { badRequest } from "../../web/errors.js";
import { type Content, el } from "../../web/html/element.js";
import { badge, code, facts, section, table } from "../../web/html/parts.js";
import { block, moment } from "../html/amounts.js";
import { actionForm, field, reasonField, submit } from "../html/forms.js";
import type { ConsolePage, ConsolePost, ConsoleRequest, ConsoleRoutes } from "../server/route.js";
import {
  approvalTerms,
  withdrawalAnswer,
  withdrawalPage,
  type WithdrawalView,
} from "../sources/answers.js";
import type { Texts } from "../text/catalogue.js";
import { isAble } from "../users/roles.js";
import {
  cursorOf,
  decimalsOf,
  DONE_QUERY,
  doneNote,
  olderPager,
  PAGE_ROWS,
  reasonOf,
  segment,
} from "./context.js";
import { withdrawalFacts, withdrawalTable } from "./withdrawals.js";

/** "/approvals", "/approvals/{id}" and the decision. */
export function approvalRoutes(): ConsoleRoutes {
  return {
    pages: [
      { path: "/approvals", query: ["after"], show: list },
      { path: "/approvals/{id}", query: [DONE_QUERY], show: one },
    ],
    actions: [{ path: "/approvals/{id}", needs: "approve", act: decide }],
  };
}

async function list(request: ConsoleRequest): Promise<ConsolePage> {
  const { api, t, signal } = request;
  const waiting = { status: "pending_approval", order: "newest", limit: PAGE_ROWS };
  const asked = { ...waiting, after: cursorOf(request) };
  const question = { api: "withdrawal", path: "/v1/withdrawals", query: asked } as const;
  const [{ withdrawals, next }, decimals] = await Promise.all([
    api.get({ ...question, schema: withdrawalPage }, signal),
    decimalsOf(request),
  ]);
  return {
    title: t("approvals"),
    content:
      withdrawals.length === 0
        ? el("p", { class: "empty" }, t("noApprovals"))
        : [
            withdrawalTable(withdrawals, { decimals, t, path: "/approvals" }),
            olderPager(request, "/approvals", next, []),
          ],
  };
}

async function one(request: ConsoleRequest): Promise<ConsolePage> {
  const { api, params, t, role, signal } = request;
  const path = `/v1/withdrawals/${segment(params["id"] ?? "")}`;
  const [found, terms, decimals] = await Promise.all([
    api.get({ api: "withdrawal", path, schema: withdrawalAnswer }, signal),
    api.get({ api: "withdrawal", path: `${path}/approvals`, schema: approvalTerms }, signal),
    decimalsOf(request),
  ]);
  const canDecide = isAble(role, "approve") && found.status === "pending_approval";
  return {
    title: `${t("approvals")}: ${found.id}`,
    content: [
      doneNote(request),
      withdrawalFacts(found, decimals, t),
      facts([
        [
          t("approvals"),
          badge(
            terms.given >= terms.needed ? "good" : "neutral",
            t("approvalsGiven", { given: terms.given, needed: terms.needed }),
          ),
        ],
        [t("policyHash"), terms.policyHash === null ? undefined : code(terms.policyHash)],
      ]),
      section(
        t("given"),
        table({
          caption: t("given"),
          columns: [t("keyId"), t("decision"), t("reason"), t("signed"), t("counts"), t("at")],
          empty: t("noEntries"),
          rows: wordsOf(found.approvals).map((said) => [
            said.keyId,
            said.decision,
            said.reason,
            said.signed ? t("yes") : t("no"),
            countsText(said, terms, t),
            moment(said.at),
          ]),
        }),
      ),
      canDecide ? decisionForms(request, terms) : undefined,
    ],
  };
}

type Said = WithdrawalView["approvals"][number];

/**
 * What each person said, once: what goes on counting under a later policy is written down once more. The one
 * that counts, else the last one, with the time when it was said first.
 */
function wordsOf(approvals: readonly Said[]): readonly Said[] {
  const words = new Map<string, readonly Said[]>();
  for (const said of approvals) {
    const key = `${said.decision} ${said.keyId}`;
    words.set(key, [...(words.get(key) ?? []), said]);
  }
  return [...words.values()].flatMap((same) => {
    const shown = same.find(({ counts }) => counts === true) ?? same.at(-1);
    if (shown === undefined) return [];
    const isSame = ({ reason, signed }: Said) => reason === shown.reason && signed === shown.signed;
    return [{ ...shown, at: same.find(isSame)?.at ?? shown.at }];
  });
}

/** Whether it is one of those that are given, and why not; of a rejection there is nothing to count. */
function countsText({ decision, counts, policyHash }: Said, terms: Terms, t: Texts): string {
  if (decision !== "approve" || counts === undefined) return "—";
  if (counts) return t("yes");
  return t(policyHash === terms.policyHash ? "countsUnsigned" : "countsFormer");
}

interface Terms {
  readonly needed: number;
  readonly signed: boolean;
  readonly policyHash: string | null;
  readonly approvers: readonly { readonly name: string; readonly publicKey: string }[];
  readonly messages: readonly {
    readonly decision: string;
    readonly text: string;
    readonly sha256: string;
  }[];
}

function decisionForms(request: ConsoleRequest, terms: Terms): Content {
  return [
    section(
      request.t("approve"),
      terms.signed ? signingHelp(request, terms) : undefined,
      decisionForm(request, "approve", { isSigned: terms.signed, seen: seenFields(terms) }),
    ),
    section(request.t("reject"), decisionForm(request, "reject", { isSigned: false })),
  ];
}

function decisionForm(
  { params, t, hiddenFields }: ConsoleRequest,
  decision: "approve" | "reject",
  { isSigned, seen }: { readonly isSigned: boolean; readonly seen?: Content },
): Content {
  const signature = (name: string, label: string, digits: number) =>
    field(decision, {
      name,
      label,
      isRequired: true,
      maxLength: digits,
      pattern: `[0-9a-f]{${digits}}`,
    });
  return actionForm(
    {
      action: `/approvals/${segment(params["id"] ?? "")}`,
      hidden: [hiddenFields(), hiddenField("decision", decision), seen],
      submit: submit(t(decision), { isDanger: decision === "reject" }),
    },
    reasonField(decision, t("reasonHint")),
    isSigned ? signature("publicKey", t("publicKey"), 64) : undefined,
    isSigned ? signature("signature", t("signature"), 128) : undefined,
  );
}

/** What the page shows that is approved: sent from an old page, it does not count for what came since. */
function seenFields({ needed, policyHash }: Terms): Content {
  return [
    hiddenField("needed", String(needed)),
    policyHash === null ? undefined : hiddenField("policyHash", policyHash),
  ];
}

function hiddenField(name: string, value: string): Content {
  return el("input", { type: "hidden", name, value });
}

/** The exact bytes, and commands that sign them: the key stays where it is. */
function signingHelp({ t, params }: ConsoleRequest, terms: Terms): Content {
  const message = terms.messages.find(({ decision }) => decision === "approve");
  if (message === undefined) return undefined;
  const commands = [
    `printf '%s' '${message.text}' | openssl dgst -sha256 -binary > message.bin`,
    "openssl pkeyutl -sign -rawin -inkey KEY.pem -in message.bin | xxd -p -c 64",
    "openssl pkey -in KEY.pem -pubout -outform DER | tail -c 32 | xxd -p -c 64",
  ].join("\n");
  const whole =
    `npm run causeway -- withdrawals approve ${params["id"] ?? ""} ` +
    '--reason "..." --signing-key KEY.pem';
  return [
    el("p", {}, t("needsSignature")),
    el("p", {}, t("textToSign")),
    block(message.text, t("textToSign")),
    el("p", {}, `${t("sha256")}: `, code(message.sha256)),
    el("p", {}, t("signWith")),
    block(commands, t("signWith")),
    el("p", {}, t("commandLine")),
    block(whole, t("commandLine")),
    table({
      caption: t("approvers"),
      columns: [t("name"), t("publicKey")],
      empty: t("noEntries"),
      rows: terms.approvers.map(({ name, publicKey }) => [name, code(publicKey)]),
    }),
  ];
}

async function decide(post: ConsolePost): Promise<string> {
  const id = segment(post.params["id"] ?? "");
  const decision = post.form.get("decision");
  if (decision !== "approve" && decision !== "reject") throw badRequest("no decision");
  const reason = reasonOf(post);
  const [publicKey, signature, policyHash, shown] = [
    "publicKey",
    "signature",
    "policyHash",
    "needed",
  ].map((name) => {
    const text = post.form.get(name)?.trim().toLowerCase();
    return text === "" ? undefined : text;
  });
  const needed = shown === undefined ? undefined : Number(shown);
  await post.api.post(
    {
      api: "withdrawal",
      path: `/v1/withdrawals/${id}/approvals`,
      body: { decision, reason, publicKey, signature, policyHash, needed },
      reason,
      idempotencyKey: post.formKey,
      schema: withdrawalAnswer,
    },
    post.signal,
  );
  return `/approvals/${id}?${DONE_QUERY}=${decision === "approve" ? "approved" : "rejected"}`;
}
