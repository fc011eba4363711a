/** Pages that say what went wrong, and whether something was done. */
import { AppError, errorCode } from "../../chain/errors.js";
import { el } from "../../web/html/element.js";
import { PageError, STATUS_OF } from "../../web/errors.js";
import { CONSOLE_STATUS, ConsoleError, type ConsoleErrorCode } from "../errors.js";
import type { ConsolePage } from "../server/route.js";
import type { Texts } from "../text/catalogue.js";
import type { TextKey } from "../text/english.js";

/** A fault as a page. */
export interface FaultPage {
  readonly page: ConsolePage & { readonly status: number };
  /** True where somebody has to look at the console itself. */
  readonly isOurs: boolean;
  readonly retryAfterSeconds: number | undefined;
}

const FAILED = ["failedTitle", "failedText"] as const;

const WORDS: Readonly<Record<string, readonly [title: TextKey, text: TextKey]>> = {
  NOT_FOUND: ["notFoundTitle", "notFoundText"],
  BAD_REQUEST: ["badRequestTitle", "badRequestText"],
  METHOD_NOT_ALLOWED: ["badRequestTitle", "badRequestText"],
  RATE_LIMITED: ["rateLimitedTitle", "rateLimitedText"],
  BUSY: ["busyTitle", "busyText"],
  UNAVAILABLE: ["unavailableTitle", "unavailableText"],
  FORM_REFUSED: ["formRefusedTitle", "formRefusedText"],
  FORBIDDEN: ["forbiddenTitle", "forbiddenText"],
  WRONG_HOST: ["wrongHostTitle", "wrongHostText"],
  PASSWORD_UNFIT: ["changePassword", "passwordUnfit"],
  TOO_LARGE: ["badRequestTitle", "badRequestText"],
  NO_FORM: ["badRequestTitle", "badRequestText"],
  NOT_LOGGED_IN: ["login", "loginEnded"],
};

/** The page of whatever was thrown. */
export function faultPage(error: unknown, t: Texts, role = ""): FaultPage {
  const isKnown = error instanceof PageError || error instanceof ConsoleError;
  const code = isKnown ? error.code : "";
  const [title, text] = WORDS[code] ?? FAILED;
  const details = error instanceof AppError ? error.details : {};
  const content =
    code === "API_REFUSED"
      ? t("apiRefusedText", { code: String(details["code"]), message: String(details["message"]) })
      : t(text, { role });
  const retry = details["retryAfterSeconds"];
  return {
    page: {
      status: statusOf(error, details["status"]),
      title: code === "API_REFUSED" ? t("apiRefusedTitle") : t(title),
      content: [
        el("p", { role: "alert" }, content),
        el("p", {}, el("a", { href: "/" }, t("backHome"))),
      ],
    },
    isOurs: !isKnown && errorCode(error) !== "ABORT_ERR",
    retryAfterSeconds: typeof retry === "number" ? retry : undefined,
  };
}

function statusOf(error: unknown, ofApi: unknown): number {
  if (error instanceof PageError) return STATUS_OF[error.code];
  if (!(error instanceof ConsoleError)) return 500;
  const code: ConsoleErrorCode = error.code;
  return code === "API_REFUSED" && typeof ofApi === "number" ? ofApi : CONSOLE_STATUS[code];
}
