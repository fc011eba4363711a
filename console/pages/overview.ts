/** The first page: lights of every part, what waits for persons, and the charts. */
import { errorCode, errorMessage } from "../../chain/errors.js";
import type { Verdict } from "../../chain/consensus/block-age.js";
import type { Clock } from "../../runtime/process/clock.js";
import { type Content, el } from "../../web/html/element.js";
import { badge, section } from "../../web/html/parts.js";
import { momentText } from "../html/amounts.js";
import type { ConsolePage, ConsoleRequest, ConsoleRoutes } from "../server/route.js";
import {
  figures,
  incidentPage,
  killSwitch,
  lacksKey,
  reconciliationPage,
  stoppingIncident,
  treasuryAnswer,
  walletList,
  webhookList,
  withdrawalPage,
} from "../sources/answers.js";
import { readHeadLight, readPartLights } from "../sources/part-lights.js";
import type { Texts } from "../text/catalogue.js";
import { decimalsOf, type PageContext, warning } from "./context.js";
import { durationChart, floatChart } from "./figures.js";

/**
 * Older than this a comparison tells nothing of now: three intervals of the watcher as it is delivered, on
 * which the manual sets the alarm. The console does not know another interval of the watcher's.
 */
const MAX_COMPARISON_AGE_MS = 900_000;

/** Withdrawals that wait for persons, counted up to here. */
const MAX_COUNTED = 1_000;

/** "/". */
export function overviewRoutes(context: PageContext): ConsoleRoutes {
  return { pages: [{ path: "/", show: (request) => overview(context, request) }] };
}

interface Light {
  readonly name: Content;
  readonly verdict: Verdict;
  readonly text: Content;
}

async function overview(context: PageContext, request: ConsoleRequest): Promise<ConsolePage> {
  const { t, signal } = request;
  const [parts, head, lights, charts] = await Promise.all([
    readPartLights(context.parts, signal),
    readHeadLight(context.evm, context.clock, signal),
    ledgerLights(context, request),
    chartsOf(request),
  ]);
  const all: readonly Light[] = [
    {
      name: t("block"),
      verdict: head.verdict,
      text: head.ageSeconds === undefined ? "—" : `${head.height}, ${ageText(head.ageSeconds, t)}`,
    },
    ...parts.map(({ part, verdict, reason }) => ({ name: part, verdict, text: reason })),
    ...lights,
  ];
  return {
    title: t("overview"),
    content: [
      section(
        t("lights"),
        el(
          "ul",
          { class: "lights" },
          all.map((light) => el("li", {}, lightParts(light, t))),
        ),
      ),
      ...charts,
    ],
  };
}

function ageText(ageSeconds: number, t: Texts): string {
  const seconds = Math.round(ageSeconds);
  return seconds < 0 ? t("ageAhead", { seconds: -seconds }) : t("age", { seconds });
}

const KIND = { pass: "good", warn: "warn", fail: "bad" } as const;
const WORD = { pass: "verdictPass", warn: "verdictWarn", fail: "verdictFail" } as const;

function lightParts({ name, verdict, text }: Light, t: Texts): Content {
  return [
    el("strong", {}, name),
    " ",
    badge(KIND[verdict], t(WORD[verdict])),
    text === "" ? undefined : el("div", {}, text),
  ];
}

/** Lights that come from the APIs; where one does not answer, that is the light. */
async function ledgerLights(
  { clock }: PageContext,
  request: ConsoleRequest,
): Promise<readonly Light[]> {
  const { t } = request;
  const found = await Promise.all([
    lightOf(t("incidents"), "/incidents", () => incidentLight(request)),
    lightOf(t("killSwitch"), "/policy", () => switchLight(request)),
    lightOf(t("reconciliation"), "/reconciliation", () => reconciliationLight(request, clock)),
    lightOf(t("wallets"), "/wallets", () => walletLight(request)),
    lightOf(t("treasury"), "/treasury", () => treasuryLight(request)),
    lightOf(t("webhooks"), "/webhooks", () => webhookLight(request)),
    lightOf(t("pendingApprovals"), "/approvals", () => approvalLight(request)),
  ]);
  return found;
}

type Found = Omit<Light, "name">;

async function lightOf(name: string, href: string, read: () => Promise<Found>): Promise<Light> {
  const link = el("a", { href }, name);
  try {
    return { name: link, ...(await read()) };
  } catch (error) {
    const code = errorCode(error);
    // One that refuses, as too often asked, hides nothing of the others.
    if (code === "API_REFUSED") return { name: link, verdict: "fail", text: errorMessage(error) };
    if (code !== "UNAVAILABLE") throw error;
    return { name: link, verdict: "fail", text: "—" };
  }
}

async function incidentLight({ api, signal }: ConsoleRequest): Promise<Found> {
  const question = { api: "deposit", path: "/v1/incidents", schema: incidentPage } as const;
  const query = { order: "newest", limit: 10 };
  const { incidents } = await api.get({ ...question, query }, signal);
  const open = stoppingIncident(incidents);
  return open === undefined
    ? { verdict: "pass", text: "" }
    : { verdict: "fail", text: `${open.kind}: ${open.message}` };
}

async function switchLight({ api, signal, t }: ConsoleRequest): Promise<Found> {
  const question = { api: "withdrawal", path: "/v1/kill-switch", schema: killSwitch } as const;
  const { level } = await api.get(question, signal);
  return level === "none"
    ? { verdict: "pass", text: t("levelNone") }
    : { verdict: "fail", text: level };
}

async function reconciliationLight(
  { api, signal, t }: ConsoleRequest,
  clock: Clock,
): Promise<Found> {
  const path = "/v1/reconciliations";
  const query = { order: "newest", limit: 1 };
  const question = { api: "deposit", path, query, schema: reconciliationPage } as const;
  const { reconciliations } = await api.get(question, signal);
  const [last] = reconciliations;
  if (last === undefined) return { verdict: "warn", text: t("noReconciliations") };
  const where = `${t("block")} ${last.blockNumber}, ${momentText(last.at)}`;
  if (!last.clean) return { verdict: "fail", text: `${t("notClean")}, ${where}` };
  const isOld = clock.nowMs() - Date.parse(last.at) > MAX_COMPARISON_AGE_MS;
  return { verdict: isOld ? "warn" : "pass", text: `${t("clean")}, ${where}` };
}

async function walletLight({ api, signal, t }: ConsoleRequest): Promise<Found> {
  const question = { api: "withdrawal", path: "/v1/wallets", schema: walletList } as const;
  const { wallets } = await api.get(question, signal);
  // Nobody signs for a retired one: its switch stops nothing.
  const frozen = wallets.filter((wallet) => wallet.frozen && wallet.status !== "retired");
  if (frozen.length > 0) {
    return {
      verdict: "fail",
      text: `${t("frozen")}: ${frozen.map(({ label }) => label).join(", ")}`,
    };
  }
  const keyless = wallets.filter(lacksKey);
  const canPay = wallets.some((wallet) => wallet.status === "active" && !lacksKey(wallet));
  if (!canPay) return { verdict: "fail", text: t("nobodyPays") };
  return keyless.length === 0
    ? { verdict: "pass", text: String(wallets.length) }
    : { verdict: "warn", text: `${t("noKey")}: ${keyless.map(({ label }) => label).join(", ")}` };
}

async function treasuryLight({ api, signal, t }: ConsoleRequest): Promise<Found> {
  const question = { api: "withdrawal", path: "/v1/treasury", schema: treasuryAnswer } as const;
  const { assets } = await api.get(question, signal);
  const frozen = assets.filter(({ frozenSweeps }) => frozenSweeps > 0);
  if (frozen.length > 0) {
    const words = frozen.map(({ asset, frozenSweeps: count }) =>
      t("frozenSweeps", { asset, count }),
    );
    return { verdict: "fail", text: words.join(" ") };
  }
  const short = assets.flatMap(({ asset, refill }) => (refill === null ? [] : [asset]));
  return short.length === 0
    ? { verdict: "pass", text: "" }
    : { verdict: "warn", text: `${t("refillWaits")}: ${short.join(", ")}` };
}

async function webhookLight({ api, signal }: ConsoleRequest): Promise<Found> {
  const question = { api: "deposit", path: "/v1/webhooks", schema: webhookList } as const;
  const { webhooks } = await api.get(question, signal);
  const off = webhooks.filter(({ status }) => status === "disabled");
  return off.length === 0
    ? { verdict: "pass", text: String(webhooks.length) }
    : { verdict: "fail", text: `disabled: ${off.map(({ id }) => id).join(", ")}` };
}

async function approvalLight({ api, signal }: ConsoleRequest): Promise<Found> {
  const query = { status: "pending_approval", limit: MAX_COUNTED };
  const path = "/v1/withdrawals";
  const question = { api: "withdrawal", path, query, schema: withdrawalPage } as const;
  const { withdrawals, next } = await api.get(question, signal);
  const { length } = withdrawals;
  const text = next === null ? String(length) : `${length}+`;
  return { verdict: length === 0 ? "pass" : "warn", text };
}

async function chartsOf(request: ConsoleRequest): Promise<readonly Content[]> {
  const { api, t, signal } = request;
  try {
    const question = { api: "deposit", path: "/v1/figures", schema: figures } as const;
    const [found, decimals] = await Promise.all([api.get(question, signal), decimalsOf(request)]);
    return [
      section(t("floatAndLiabilities"), floatChart(found.coins, { t, decimals })),
      section(t("depositDelay"), durationChart(t("depositDelay"), found.depositDelays, t)),
      section(
        t("withdrawalLatency"),
        durationChart(t("withdrawalLatency"), found.withdrawalLatencies, t),
      ),
    ];
  } catch (error) {
    const code = errorCode(error);
    if (code === "API_REFUSED") return [warning(errorMessage(error))];
    if (code !== "UNAVAILABLE") throw error;
    return [warning(t("unavailableText"))];
  }
}
