/** Pages that say what went wrong, and what can be done about it. */
import { AppError } from "../../chain/errors.js";
import { isPruned, NodeFault, RpcError } from "../../rpc-client/errors.js";
import { PageError, STATUS_OF } from "../../web/errors.js";
import { el } from "../../web/html/element.js";
import type { Page } from "../server/page.js";
import type { Texts } from "../text/catalogue.js";
import type { TextKey } from "../text/english.js";

/** A fault as a page. */
export interface FaultPage {
  readonly page: Page & { readonly status: number };
  /** What the page says. */
  readonly text: string;
  /** True where somebody has to look at the explorer itself. */
  readonly isOurs: boolean;
  readonly retryAfterSeconds?: number;
}

/** Pause after which a node that does not answer may be asked again. */
const NODE_RETRY_SECONDS = 5;

const WORDS: Readonly<Record<string, readonly [title: TextKey, text: TextKey]>> = {
  NOT_FOUND: ["notFoundTitle", "notFoundText"],
  BAD_REQUEST: ["badRequestTitle", "badRequestText"],
  METHOD_NOT_ALLOWED: ["badRequestTitle", "readOnlyText"],
  TOO_LARGE: ["badRequestTitle", "tooLargeText"],
  RATE_LIMITED: ["rateLimitedTitle", "rateLimitedText"],
  BUSY: ["busyTitle", "busyText"],
  UNAVAILABLE: ["unavailableTitle", "unavailableText"],
};

/** The page of whatever was thrown. */
export function faultPage(error: unknown, t: Texts): FaultPage {
  if (error instanceof PageError) {
    const { retryAfterSeconds } = error.details;
    const fault = faultOf(t, STATUS_OF[error.code], ...(WORDS[error.code] ?? FAILED));
    const retry = typeof retryAfterSeconds === "number" ? { retryAfterSeconds } : {};
    return { ...fault, isOurs: false, ...retry };
  }
  if (isPruned(error)) {
    return { ...faultOf(t, 404, "notFoundTitle", "prunedText"), isOurs: false };
  }
  const isTimeout = error instanceof Error && error.name === "TimeoutError";
  if (isTimeout || error instanceof NodeFault || error instanceof RpcError) {
    const fault = faultOf(t, STATUS_OF.UNAVAILABLE, "unavailableTitle", "unavailableText");
    return { ...fault, isOurs: false, retryAfterSeconds: NODE_RETRY_SECONDS };
  }
  const isAbort = error instanceof Error && error.name === "AbortError";
  const isOurs = !isAbort && !(error instanceof AppError && error.retriable);
  return { ...faultOf(t, 500, ...FAILED), isOurs };
}

const FAILED = ["failedTitle", "failedText"] as const;

function faultOf(
  t: Texts,
  status: number,
  title: TextKey,
  text: TextKey,
): Pick<FaultPage, "page" | "text"> {
  const content = [el("p", {}, t(text)), el("p", {}, el("a", { href: "/" }, t("backHome")))];
  return { page: { status, title: t(title), content }, text: t(text) };
}
