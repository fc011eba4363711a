/** One HTTP request as every probe makes it: with a deadline and a bound on the answer. */
import {
  httpExchange,
  type HttpAnswer,
  type HttpQuestion,
} from "../../runtime/http/outgoing/http-exchange.js";
import { withTimeout } from "../../runtime/process/task.js";
import { CliError, systemCode } from "../errors.js";

/** Longest answer that is read: a full page of 1,000 rows is well below. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

/** One request may take this long; both APIs answer within milliseconds when healthy. */
const REQUEST_TIMEOUT_MS = 10_000;

/**
 * One HTTP request with a deadline and a bound on the answer. By Node's own client: loading what
 * stands behind `fetch` takes longer than most probes. Redirects are not followed.
 * @throws CLIENT_FAILED naming method and path, never headers or bodies
 */
export async function httpRequest(
  url: URL,
  question: HttpQuestion & {
    /** Longest answer that is read; some megabytes where nothing is said. */
    readonly maxAnswerBytes?: number;
  },
  options: { readonly signal: AbortSignal; readonly timeoutMs?: number },
): Promise<HttpAnswer> {
  const what = `${question.method ?? "GET"} ${url.origin}${url.pathname}`;
  const { maxAnswerBytes: maxBytes = MAX_ANSWER_BYTES } = question;
  try {
    return await withTimeout((signal) => httpExchange(url, question, { maxBytes, signal }), {
      timeoutMs: options.timeoutMs ?? REQUEST_TIMEOUT_MS,
      signal: options.signal,
      what,
    });
  } catch (cause) {
    options.signal.throwIfAborted();
    const detail = cause instanceof Error ? systemCode(cause) : "UNKNOWN";
    const reason = detail === "UNKNOWN" ? "" : ` (${detail})`;
    throw new CliError("CLIENT_FAILED", `${what} got no answer${reason}.`, {
      cause,
      retriable: true,
    });
  }
}
