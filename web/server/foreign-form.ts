/** Which forms another page sent. */
import type { IncomingMessage } from "node:http";

/**
 * Whether a browser sent this form from a page of another origin. Where the browser says by itself how
 * page and target are related, that counts: beside it `Origin` may be "null" for a form of the own page,
 * as the page's referrer policy has it. What says nothing of its origin is no browser of these years, or no
 * browser: such a request has no reader whose rights it could use.
 * Source: Fetch Metadata Request Headers (W3C), `Sec-Fetch-Site`; Fetch (WHATWG), "append a request
 * `Origin` header".
 */
export function isForeignForm(request: IncomingMessage): boolean {
  const { origin, host = "" } = request.headers;
  const site = request.headers["sec-fetch-site"];
  if (typeof site === "string") return site !== "same-origin" && site !== "none";
  return origin !== undefined && hostOf(origin) !== host.toLowerCase();
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host.toLowerCase() : undefined;
}
