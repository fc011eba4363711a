/** One GET for JSON from a server that is not believed: bounded in time and bytes, not led elsewhere. */
import { httpExchange, refuseRedirect } from "../../runtime/http/outgoing/http-exchange.js";
import { withLimit } from "../../runtime/process/task.js";

/** An answer, its body not yet read as JSON. */
export interface TextAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * Asks. Throws whatever went wrong: no connection, no time left, a redirect, more than `maxBytes`; the
 * signal's reason.
 */
export async function getText(
  url: URL,
  limits: {
    readonly timeoutMs: number;
    readonly maxBytes: number;
    readonly signal: AbortSignal;
    readonly headers?: Readonly<Record<string, string>>;
  },
): Promise<TextAnswer> {
  const { timeoutMs, maxBytes, signal, headers = {} } = limits;
  const init = { headers: { accept: "application/json", ...headers } };
  const answer = await withLimit([signal], timeoutMs, (limited) =>
    httpExchange(url, init, { maxBytes, signal: limited }),
  );
  refuseRedirect(answer);
  return { status: answer.status, text: answer.body };
}
