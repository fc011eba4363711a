/** The console's cookies: what they are called, and how browsers are told to keep them. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { cookieOf } from "../../web/server/page-request.js";

/** Of the session, of the login's form, and of a user who was in before: names have no `:`. */
export type CookieKind = "session" | "login" | `known-${string}`;

/** A request and its answer. */
export interface CookieExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** All cookies that the console gives and reads. */
export class ConsoleCookies {
  private readonly rules: string;

  /** @param isSecure whether browsers reach the console by https */
  constructor(private readonly isSecure: boolean) {
    this.rules = `; Path=/; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}`;
  }

  /** What the browser brings; undefined for nothing. */
  read(kind: CookieKind, request: IncomingMessage): string | undefined {
    return cookieOf(request, this.nameOf(kind, request));
  }

  /** Gives one, until the browser is closed where no time is said. */
  give(
    kind: CookieKind,
    { request, response }: CookieExchange,
    { value, seconds }: { readonly value: string; readonly seconds?: number },
  ): void {
    const age = seconds === undefined ? "" : `; Max-Age=${seconds}`;
    response.appendHeader(
      "set-cookie",
      `${this.nameOf(kind, request)}=${value}${this.rules}${age}`,
    );
  }

  /** Browsers send the cookies of a host to all of its ports: kits side by side have names of their own. */
  private nameOf(kind: CookieKind, { headers }: IncomingMessage): string {
    if (this.isSecure) return `__Host-causeway-${kind}`;
    const [, port = ""] = /:(\d{1,5})$/.exec(headers.host ?? "") ?? [];
    return `causeway-${kind}-${port}`;
  }
}
