/** One GET for JSON from a server that is not believed: bounded in time and bytes, not led elsewhere. */
import { fetchable } from "../../runtime/http/outgoing/route-url.js";
import { limitedSignal } from "../../runtime/process/task.js";

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
  const { url: place, headers: ofPlace } = fetchable(url);
  const answer = await fetch(place, {
    signal: limitedSignal([signal], timeoutMs),
    headers: { accept: "application/json", ...ofPlace, ...headers },
    redirect: "error",
  });
  return { status: answer.status, text: await readBounded(answer, maxBytes) };
}

async function readBounded({ body }: Response, maxBytes: number): Promise<string> {
  if (body === null) return "";
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of body) {
    const bytes: Uint8Array = chunk;
    sizeBytes += bytes.length;
    if (sizeBytes > maxBytes) throw new RangeError("the answer is too large");
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString("utf8");
}
