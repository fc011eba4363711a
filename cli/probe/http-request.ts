/** One HTTP request as every probe makes it: with a deadline and a bound on the answer. */
import { withTimeout } from "../../runtime/process/task.js";
import { CliError, systemCode } from "../errors.js";

/** Longest answer that is read: a full page of 1,000 rows is well below. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

/** One request may take this long; both APIs answer within milliseconds when healthy. */
const REQUEST_TIMEOUT_MS = 10_000;

/** Answer of an HTTP server, whatever its status; the body as text. */
export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
}

/**
 * One HTTP request with a deadline and a bound on the answer.
 * @throws CLIENT_FAILED naming method and path, never headers or bodies
 */
export async function httpRequest(
  url: URL,
  init: RequestInit,
  options: { readonly signal: AbortSignal; readonly timeoutMs?: number },
): Promise<HttpAnswer> {
  const what = `${init.method ?? "GET"} ${url.origin}${url.pathname}`;
  try {
    return await withTimeout(
      async (signal) => {
        const response = await fetch(url, { ...init, signal, redirect: "error" });
        const body = await response.text();
        if (body.length > MAX_ANSWER_BYTES) throw new Error("the answer is too long");
        return { status: response.status, body };
      },
      { timeoutMs: options.timeoutMs ?? REQUEST_TIMEOUT_MS, signal: options.signal, what },
    );
  } catch (cause) {
    options.signal.throwIfAborted();
    const detail = cause instanceof Error ? systemCode(cause.cause ?? cause) : "UNKNOWN";
    const reason = detail === "UNKNOWN" ? "" : ` (${detail})`;
    throw new CliError("CLIENT_FAILED", `${what} got no answer${reason}.`, {
      cause,
      retriable: true,
    });
  }
}
