/** Pages of the console as somebody is shown them, from answers of the APIs. */
import type { ConsoleRequest, ConsoleRoutes } from "../../../console/server/route.js";
import type { ApiQuestion } from "../../../console/sources/exchange-api.js";
import { textsOf } from "../../../console/text/catalogue.js";
import { el, renderDocument } from "../../../web/html/element.js";
import { parseHtml, textOf } from "./html.js";

/** Who asks for a page, and how the APIs answer. */
export interface ShownRequest {
  readonly role: ConsoleRequest["role"];
  readonly params?: ConsoleRequest["params"];
  /** Of the page's address. */
  readonly query?: string;
  /** True for what is shown where no turn came. */
  readonly isBusy?: boolean;
  /** What the APIs answer, unparsed. */
  readonly answer: (question: ApiQuestion<unknown>) => unknown;
}

/** The page of a path: its text, and its elements. */
export async function shownPage(
  { pages }: ConsoleRoutes,
  path: string,
  { role, params = {}, query = "", isBusy = false, answer }: ShownRequest,
) {
  const get = async (question: ApiQuestion<unknown>) => question.schema.parse(answer(question));
  const request = {
    params,
    query: new URLSearchParams(query),
    user: "ann",
    role,
    api: { get },
    // As who was led there sees it, the first time.
    takeDone: () => new URLSearchParams(query).get("done") ?? undefined,
    hiddenFields: () => undefined,
    language: "en",
    t: textsOf("en"),
    signal: new AbortController().signal,
  } as unknown as ConsoleRequest;
  const route = pages.find((one) => one.path === path);
  const page = isBusy ? route?.showBusy?.(request) : await route?.show(request);
  const root = parseHtml(renderDocument(el("main", {}, page?.content)));
  return { text: textOf(root), root };
}

/** A withdrawal as the withdrawal API answers it, with these fields changed. */
export const withdrawalAnswerOf = (changed: Readonly<Record<string, unknown>>) => ({
  id: "wd_1",
  customerId: "alice",
  asset: "TOKEN",
  to: `0x${"70".repeat(20)}`,
  amountUnits: "1",
  feeUnits: "0",
  status: "pending_approval",
  reason: null,
  expiresAt: null,
  wallet: null,
  nonce: null,
  hashes: [],
  txHash: null,
  blockNumber: null,
  history: [],
  approvalsNeeded: 0,
  approvalsGiven: 0,
  approvals: [],
  ...changed,
});
