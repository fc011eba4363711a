/**
 * One HTTP exchange with a server that the settings name, on a connection of its own. Not by `fetch` and not
 * by Node's common agents: where the environment says so (NODE_USE_ENV_PROXY) these send all that they are
 * given through a proxy, calls of this machine and keys included.
 */
import * as http from "node:http";
import * as https from "node:https";
import { CollectedBytes } from "../collected-bytes.js";

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
}

/**
 * Sends the question and collects the answer. User and password of the URL become Basic authorisation,
 * unless the headers have one. Redirects are not followed.
 * @throws RangeError for an answer of more than `maxBytes`; the system's faults; the signal's reason
 */
export function httpExchange(
  url: URL,
  question: HttpQuestion,
  { maxBytes, signal }: { readonly maxBytes: number; readonly signal: AbortSignal },
): Promise<HttpAnswer> {
  const transport = url.protocol === "https:" ? https : http;
  const { method = "GET", headers = {}, body } = question;
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) => reject(signal.aborted ? signal.reason : error);
    // Where another protocol is to follow (101), Node closes without an answer and without a fault, and what
    // is closed by then does not see the signal.
    const onUnanswered = () => fail(new Error("the connection ended without an answer"));
    // A connection that is kept from before may be gone, and a POST is not sent twice.
    const options = { method, headers, signal, agent: false };
    const request = transport.request(url, options, (response) => {
      // An answer may end with its connection: that it ends is told by the answer from here on.
      request.off("close", onUnanswered);
      const answer = new CollectedBytes();
      response.on("error", fail);
      response.on("data", (chunk: Buffer) => {
        answer.add(chunk);
        if (answer.sizeBytes > maxBytes) request.destroy(new RangeError("the answer is too long"));
      });
      response.on("end", () => {
        resolve({ status: response.statusCode ?? 0, body: answer.whole().toString("utf8") });
      });
    });
    request.on("error", fail);
    request.on("close", onUnanswered);
    request.end(body);
  });
}

/** For who takes no redirect for an answer. @throws RangeError */
export function refuseRedirect({ status }: HttpAnswer): void {
  if (status >= 300 && status < 400) throw new RangeError("the answer is a redirect");
}
