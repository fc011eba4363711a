/** What a browser asks for: path, query and language, read once. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { ambiguityOf, takeOriginForm } from "../../runtime/http/request-checks.js";
import { PageError } from "../errors.js";
import { type Language, parseLanguage, preferredLanguage } from "../text/languages.js";
import { isProbePath } from "./page-listener.js";

/** What was asked for. */
export interface Asked {
  /** Decoded. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly language: Language;
  /** True where the query chose the language: it is remembered. */
  readonly isChosen: boolean;
}

/** What is shown of a request that cannot be read. */
export const UNREADABLE: Asked = {
  path: "/",
  query: new URLSearchParams(),
  language: "en",
  isChosen: false,
};

/** Longest path and query: a hash, an address, a cursor. */
const MAX_URL_CHARACTERS = 1_024;

/** A year; the choice of a language is no secret and of no use to anybody else. */
const LANGUAGE_COOKIE = "; Path=/; Max-Age=31536000; SameSite=Lax; HttpOnly";

/** Reads the head of a request. @throws BAD_REQUEST */
export function readAsked(request: IncomingMessage): Asked {
  takeOriginForm(request);
  const target = request.url ?? "/";
  if (target.length > MAX_URL_CHARACTERS || !target.startsWith("/")) {
    throw new PageError("BAD_REQUEST", "the address is too long or not a path");
  }
  const [rawPath = "/", ...rest] = target.split("?");
  let path: string;
  try {
    path = decodeURIComponent(rawPath);
  } catch (cause) {
    throw new PageError("BAD_REQUEST", "the address is not encoded rightly", { cause });
  }
  // Browsers take "//host" in a link for another origin.
  if (/^\/[/\\]/.test(path)) throw new PageError("BAD_REQUEST", "the path has no beginning");
  if (/\p{Cc}/u.test(path)) throw new PageError("BAD_REQUEST", "control characters");
  // Probes are answered whoever asks, as those of the APIs.
  const ambiguity = ambiguityOf(request);
  if (ambiguity !== undefined && !isProbePath(path)) throw new PageError("BAD_REQUEST", ambiguity);
  const query = new URLSearchParams(rest.join("?"));
  const chosen = parseLanguage(query.get("lang") ?? undefined);
  const remembered = parseLanguage(cookieOf(request, "lang"));
  const language = chosen ?? remembered ?? preferredLanguage(request.headers["accept-language"]);
  return { path, query, language, isChosen: chosen !== undefined };
}

/** A cookie's value, letters, digits, "-" and "_"; undefined without one. */
export function cookieOf(request: IncomingMessage, name: string): string | undefined {
  const { cookie = "" } = request.headers;
  return new RegExp(`(?:^|;\\s*)${name}=([\\w-]+)`).exec(cookie)?.[1];
}

/** The cookie that remembers a language that was chosen; undefined where none was. */
function languageCookie({ language, isChosen }: Asked): string | undefined {
  return isChosen ? `lang=${language}${LANGUAGE_COOKIE}` : undefined;
}

/** The same, on a response. */
export function sendLanguage(asked: Asked, response: ServerResponse): void {
  const cookie = languageCookie(asked);
  if (cookie !== undefined) response.appendHeader("set-cookie", cookie);
}

/** The part of a query that a page knows, in the page's order: one page, one key. */
export function ownQuery(given: URLSearchParams, names: readonly string[]): URLSearchParams {
  const query = new URLSearchParams();
  for (const name of names) {
    const value = given.get(name)?.trim();
    if (value !== undefined && value !== "") query.set(name, value);
  }
  return query;
}

/** The address of what was asked for, as links have it: the path and what of the query is known. */
export function addressOf({ path, query }: Pick<Asked, "path" | "query">): string {
  const text = query.toString();
  const encoded = path.split("/").map(encodeURIComponent).join("/");
  return text === "" ? encoded : `${encoded}?${text}`;
}
