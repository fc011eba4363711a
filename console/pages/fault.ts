/** Pages that say what went wrong, and whether something was done. */
import { AppError, errorCode } from "../../chain/errors.js";
import { type Content, el } from "../../web/html/element.js";
import { section } from "../../web/html/parts.js";
import { PageError, STATUS_OF } from "../../web/errors.js";
import { CONSOLE_STATUS, ConsoleError, type ConsoleErrorCode } from "../errors.js";
import { block } from "../html/amounts.js";
import type { FormFields } from "../server/form-body.js";
import { PARTIAL } from "../sources/exchange-api.js";
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
  TOO_LARGE: ["badRequestTitle", "badRequestText"],
  NO_FORM: ["badRequestTitle", "badRequestText"],
  NOT_LOGGED_IN: ["login", "loginEnded"],
};

/** Fields that are not a person's words, and those that nobody is to read. */
const NOT_SHOWN: ReadonlySet<string> = new Set([
  "token",
  "formKey",
  "needed",
  "policyHash",
  "user",
  "password",
  "current",
  "new",
  "again",
]);

/** What was written into a form that was not carried out, to be copied: nothing of it is lost. */
function writtenContent(form: FormFields | undefined, t: Texts): Content {
  const written = [...(form ?? [])].filter(([name, text]) => !NOT_SHOWN.has(name) && text !== "");
  if (written.length === 0) return undefined;
  return section(
    t("written"),
    el("p", {}, t("writtenText")),
    written.map(([name, text]) => block(text, name)),
  );
}

/**
 * The page of whatever was thrown.
 * @param of who asked, and where a form was sent what he wrote into it and which page has it
 */
export function faultPage(
  error: unknown,
  t: Texts,
  {
    role = "",
    form,
    formPath,
  }: {
    readonly role?: string | undefined;
    readonly form?: FormFields | undefined;
    readonly formPath?: string | undefined;
  },
): FaultPage {
  const isKnown = error instanceof PageError || error instanceof ConsoleError;
  const code = isKnown ? error.code : "";
  const [title, text] = WORDS[code] ?? FAILED;
  const details = error instanceof AppError ? error.details : {};
  const [retry, said, isPartial] = ["retryAfterSeconds", "message", PARTIAL].map(
    (name) => details[name],
  );
  const refusal = isPartial === true ? "apiRefusedInPart" : "apiRefusedText";
  const content =
    code === "API_REFUSED"
      ? t(refusal, { code: String(details["code"]), message: String(said) })
      : t(text, { role });
  // What has no answer may be half done: only the API's own words say which half.
  const isHalf = code === "UNAVAILABLE" || (code === "NOT_LOGGED_IN" && isPartial === true);
  const isSaid = isHalf && typeof said === "string" && said !== "";
  return {
    page: {
      status: statusOf(error, details["status"]),
      title: code === "API_REFUSED" ? t("apiRefusedTitle") : t(title),
      content: [
        el("p", { role: "alert" }, content),
        isSaid ? el("p", {}, said) : undefined,
        code === "NOT_LOGGED_IN"
          ? el("p", {}, el("a", { href: "/login" }, t("login")))
          : [
              formPath === undefined
                ? undefined
                : el("p", {}, el("a", { href: formPath }, t("backToForm"))),
              el("p", {}, el("a", { href: "/" }, t("backHome"))),
            ],
        writtenContent(form, t),
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
