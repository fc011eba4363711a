/** One HTTP request as every probe makes it: with a deadline and a bound on the answer. */
import * as http from "node:http";
import * as https from "node:https";
import { CollectedBytes } from "../../runtime/http/collected-bytes.js";
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

/** What is asked; a GET where nothing is said. */
export interface HttpQuestion {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Longest answer that is read; some megabytes where nothing is said. */
  readonly maxAnswerBytes?: number;
}

/**
 * One HTTP request with a deadline and a bound on the answer. By Node's own client: loading what
 * stands behind `fetch` takes longer than most probes. Redirects are not followed.
 * @throws CLIENT_FAILED naming method and path, never headers or bodies
 */
export async function httpRequest(
  url: URL,
  question: HttpQuestion,
  options: { readonly signal: AbortSignal; readonly timeoutMs?: number },
): Promise<HttpAnswer> {
  const what = `${question.method ?? "GET"} ${url.origin}${url.pathname}`;
  try {
    return await withTimeout((signal) => exchange(url, question, signal), {
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

/** Sends the question and collects the answer, as far as it may be long. */
function exchange(url: URL, question: HttpQuestion, signal: AbortSignal): Promise<HttpAnswer> {
  const transport = url.protocol === "https:" ? https : http;
  const { method = "GET", headers = {}, body, maxAnswerBytes = MAX_ANSWER_BYTES } = question;
  return new Promise((resolve, reject) => {
    // A connection of its own: one kept from before may be gone, and a POST is not sent twice.
    const options = { method, headers, signal, agent: false };
    const request = transport.request(url, options, (response) => {
      const answer = new CollectedBytes();
      response.on("error", reject);
      response.on("data", (chunk: Buffer) => {
        answer.add(chunk);
        if (answer.sizeBytes > maxAnswerBytes) request.destroy(new Error("the answer is too long"));
      });
      response.on("end", () => {
        resolve({ status: response.statusCode ?? 0, body: answer.whole().toString("utf8") });
      });
    });
    request.on("error", reject);
    request.end(body);
  });
}
