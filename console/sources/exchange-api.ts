/** The exchange's HTTP APIs as the console calls them: with a user's own key, bounded in time and size. */
import { z } from "zod";
import { errorMessage } from "../../chain/errors.js";
import {
  type HttpAnswer,
  httpExchange,
  refuseRedirect,
} from "../../runtime/http/outgoing/http-exchange.js";
import { routeOf } from "../../runtime/http/outgoing/route-url.js";
import { limitedSignal } from "../../runtime/process/task.js";
import { notFound, PageError } from "../../web/errors.js";
import { ConsoleError } from "../errors.js";

/** Where the APIs are. */
export interface ExchangeApiOptions {
  readonly depositUrl: string;
  readonly withdrawalUrl: string;
  readonly timeoutMs: number;
}

/** Which API. */
export type ApiName = "deposit" | "withdrawal";

/** A question. */
export interface ApiQuestion<T> {
  readonly api: ApiName;
  /** Path with its parts encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly schema: z.ZodType<T>;
}

/** A call that changes something. */
export interface ApiCall<T> extends Omit<ApiQuestion<T>, "query"> {
  readonly body: Readonly<Record<string, unknown>>;
  /** Why, in the user's words. */
  readonly reason: string;
  readonly idempotencyKey: string;
  /** What is refused may be done in part all the same: only the API's words say what was done. */
  readonly isPartial?: boolean;
}

/** The name of the same in the details of a refusal. */
export const PARTIAL = "isPartial";

/** A page of 1,000 withdrawals with their histories is well below. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

const refusal = z.object({ code: z.string(), message: z.string() });

/** Both APIs for one user. */
export class ExchangeApi {
  constructor(
    private readonly options: ExchangeApiOptions,
    private readonly who: { readonly user: string; readonly apiKey: string },
  ) {}

  /**
   * Asks.
   * @throws NOT_FOUND, UNAVAILABLE, NOT_LOGGED_IN where the key is revoked, API_REFUSED
   */
  get<T>(question: ApiQuestion<T>, signal: AbortSignal): Promise<T> {
    const url = this.urlOf(question.api, question.path);
    for (const [name, value] of Object.entries(question.query ?? {})) {
      if (value !== undefined && value !== "") url.searchParams.set(name, String(value));
    }
    return this.exchange(url, { method: "GET" }, question.schema, signal);
  }

  /** Does something once: a repeat with the same key is told in the record. @throws as `get` */
  post<T>(call: ApiCall<T>, signal: AbortSignal): Promise<T> {
    const init = {
      method: "POST",
      body: JSON.stringify(call.body),
      headers: {
        "content-type": "application/json",
        "idempotency-key": call.idempotencyKey,
        "causeway-actor": encodeURIComponent(this.who.user),
        "causeway-reason": encodeURIComponent(call.reason),
      },
    };
    const url = this.urlOf(call.api, call.path);
    return this.exchange(url, init, call.schema, signal, call.isPartial);
  }

  private urlOf(api: ApiName, path: string): URL {
    const { depositUrl, withdrawalUrl } = this.options;
    return routeOf(api === "deposit" ? depositUrl : withdrawalUrl, path);
  }

  private async exchange<T>(
    url: URL,
    init: {
      readonly method: string;
      readonly body?: string;
      readonly headers?: Readonly<Record<string, string>>;
    },
    schema: z.ZodType<T>,
    signal: AbortSignal,
    isPartial = false,
  ): Promise<T> {
    const what = `${init.method} ${url.pathname}`;
    const headers = { ...init.headers, authorization: `Bearer ${this.who.apiKey}` };
    let answer: HttpAnswer;
    try {
      answer = await httpExchange(
        url,
        { ...init, headers },
        {
          maxBytes: MAX_ANSWER_BYTES,
          signal: limitedSignal([signal], this.options.timeoutMs),
        },
      );
      refuseRedirect(answer);
    } catch (cause) {
      signal.throwIfAborted();
      throw new PageError("UNAVAILABLE", `${what} got no answer: ${errorMessage(cause)}`, {
        cause,
      });
    }
    const { status, body: text } = answer;
    if (status < 200 || status > 299) throw refused(what, { status, text, isPartial });
    try {
      return schema.parse(JSON.parse(text));
    } catch (cause) {
      throw new PageError("UNAVAILABLE", `${what} answered in an unknown shape`, { cause });
    }
  }
}

function refused(
  what: string,
  answer: { readonly status: number; readonly text: string; readonly isPartial: boolean },
): Error {
  const { status, text, isPartial } = answer;
  let said = { code: String(status), message: "" };
  try {
    said = refusal.parse(JSON.parse(text));
  } catch {
    // Not the APIs' own words: the status has to do.
  }
  const message = `${what} answered ${status} ${said.code}: ${said.message}`;
  const details = { ...said, [PARTIAL]: isPartial };
  if (status === 401) return new ConsoleError("NOT_LOGGED_IN", message, { details });
  if (status === 404) return notFound(message);
  if (status >= 500) return new PageError("UNAVAILABLE", message, { details: said });
  return new ConsoleError("API_REFUSED", message, { details: { ...details, status } });
}
