/** What pages are made from, and what many of them need. */
import { MAX_REASON_CHARACTERS } from "../../chain/evm/foreign-text.js";
import { errorCode } from "../../chain/errors.js";
import { TOKEN_DECIMALS, TOKEN_SYMBOL } from "../../chain/units.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { Clock } from "../../runtime/process/clock.js";
import { badRequest } from "../../web/errors.js";
import { type Content, el } from "../../web/html/element.js";
import { shortHex } from "../../web/html/format.js";
import { note, pager } from "../../web/html/parts.js";
import { choice, field, filterForm } from "../html/forms.js";
import type { AssetDecimals } from "../html/amounts.js";
import type { ConsolePost, ConsoleRequest } from "../server/route.js";
import { assetList, policyAnswer, type PolicyView } from "../sources/answers.js";
import type { ApiQuestion } from "../sources/exchange-api.js";
import type { WatchedPart } from "../sources/part-lights.js";
import type { TextKey } from "../text/english.js";

/** The sources behind pages, beside the APIs. */
export interface PageContext {
  readonly evm: Pick<EvmClient, "getBlockHeader">;
  readonly parts: readonly WatchedPart[];
  readonly clock: Clock;
}

/** Rows of a list's page. */
export const PAGE_ROWS = 50;

/**
 * Decimals of all assets; of the chain's own coin alone while the API that knows them does not answer: who
 * has to stop a payment then does not need it.
 */
export async function decimalsOf({ api, signal }: ConsoleRequest): Promise<AssetDecimals> {
  const question = { api: "deposit", path: "/v1/assets", schema: assetList } as const;
  const given = await ifGiven(api.get(question, signal));
  return given === undefined
    ? new Map([[TOKEN_SYMBOL, TOKEN_DECIMALS]])
    : new Map(given.assets.map(({ asset, decimals }) => [asset, decimals]));
}

/**
 * The policy in force; undefined while the API does not give it, as while its file is wrong or gone: who has
 * to stop payments then does not need it.
 */
export function policyOf({ api, signal }: ConsoleRequest): Promise<PolicyView | undefined> {
  const question = { api: "withdrawal", path: "/v1/policy", schema: policyAnswer } as const;
  return ifGiven(api.get(question, signal));
}

/** An answer that a page can do without; undefined while there is none. */
export async function ifGiven<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (errorCode(error) !== "UNAVAILABLE") throw error;
    return undefined;
  }
}

/** What was just done, by the word that leads to its page. */
const DONE: ReadonlyMap<string, TextKey> = new Map([
  ["approved", "doneApproved"],
  ["rejected", "doneRejected"],
  ["cancelled", "doneCancelled"],
  ["raised", "doneRaised"],
  ["raised-in-ledger", "doneRaisedInLedger"],
  ["redelivered", "doneRedelivered"],
  ["nothing-redelivered", "doneNothingRedelivered"],
  ["resumed", "doneResumed"],
  ["password", "donePassword"],
] as const);

/** What was done in part: not to be overlooked. */
const DONE_IN_PART: ReadonlySet<TextKey> = new Set(["doneRaisedInLedger"] as const);

/** Name of the query that says what was done. */
export const DONE_QUERY = "done";

/**
 * The sentence about what was just done, the first time that its page is shown: who comes again sees how it
 * stands by then. Nothing where nothing was done.
 * @param instead says more of it, by what the page shows
 */
export function doneNote({ takeDone, t }: ConsoleRequest, instead?: TextKey): Content {
  const known = DONE.get(takeDone() ?? "");
  if (known === undefined) return undefined;
  const key = instead ?? known;
  const kind = DONE_IN_PART.has(key) ? "warning" : "info";
  return el("p", { class: `note ${kind}`, role: "status" }, t(key));
}

/** A sentence that must not be overlooked. */
export function warning(...content: Content[]): Content {
  return note("warning", ...content);
}

/** The filter of a list of customers' rows: one of its statuses, or all; whose; and what it has beside. */
export function listFilter(
  { query, t }: ConsoleRequest,
  path: string,
  statuses: readonly string[],
  ...further: Content[]
): Content {
  const [status, customerId] = ["status", "customerId"].map((name) => query.get(name) ?? undefined);
  const options = [
    ["", t("allStatuses")],
    ...statuses.map((known) => [known, known] as const),
  ] as const;
  return filterForm(
    path,
    t("filter"),
    choice("filter", { name: "status", label: t("status"), value: status, options }),
    field("filter", { name: "customerId", label: t("customerHint"), value: customerId }),
    ...further,
  );
}

/** A page of a list, newest first, with the decimals of the assets in it. */
export function newestPage<Answer>(
  request: ConsoleRequest,
  list: Omit<ApiQuestion<Answer>, "query">,
  filters: Readonly<Record<string, string | undefined>>,
): Promise<[Answer, AssetDecimals]> {
  const query = { ...filters, after: cursorOf(request), order: "newest", limit: PAGE_ROWS };
  return Promise.all([request.api.get({ ...list, query }, request.signal), decimalsOf(request)]);
}

/** Ways through a list that is shown newest first. */
export function olderPager(
  request: ConsoleRequest,
  path: string,
  next: string | null,
  names: readonly string[],
): Content {
  const { query, t } = request;
  const kept = new URLSearchParams();
  for (const name of names) {
    const value = query.get(name);
    if (value !== null && value !== "") kept.set(name, value);
  }
  const withCursor = (after: string | undefined) => {
    const all = new URLSearchParams(kept);
    if (after !== undefined) all.set("after", after);
    const text = all.toString();
    return text === "" ? path : `${path}?${text}`;
  };
  return pager(t, {
    newer: query.has("after") ? withCursor(undefined) : undefined,
    older: next === null ? undefined : withCursor(next),
  });
}

/** The cursor of a query. @throws BAD_REQUEST */
export function cursorOf({ query }: ConsoleRequest): string | undefined {
  const after = query.get("after");
  if (after === null) return undefined;
  if (!/^(0|[1-9][0-9]{0,14})$/.test(after)) throw badRequest("after is no cursor");
  return after;
}

/** The reason of a form. @throws BAD_REQUEST */
export function reasonOf({ form }: ConsolePost): string {
  const reason = (form.get("reason") ?? "").trim();
  // Browsers count UTF-16 units where they hold a field to its length.
  const isShort = reason.length <= MAX_REASON_CHARACTERS.api;
  if (reason === "" || !isShort) throw badRequest("a reason is needed");
  return reason;
}

/** The ends of a hash or an address, the whole of it beside. */
export function short(hex: string): Content {
  return el("code", { title: hex }, shortHex(hex));
}

/** A part of a path. */
export function segment(text: string): string {
  return encodeURIComponent(text);
}
