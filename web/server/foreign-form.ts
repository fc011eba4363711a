/** Which forms another page sent. */
import type { IncomingMessage } from "node:http";

/**
 * Whether a browser sent this form from a page of another origin. What says nothing of its origin is no
 * browser of these years, or no browser: such a request has no reader whose rights it could use.
 * Source: Fetch Metadata Request Headers (W3C), `Sec-Fetch-Site`.
 */
export function isForeignForm(request: IncomingMessage): boolean {
  const { origin, host = "" } = request.headers;
  const site = request.headers["sec-fetch-site"];
  const isElsewhere = typeof site === "string" && site !== "same-origin" && site !== "none";
  return isElsewhere || (origin !== undefined && hostOf(origin) !== host.toLowerCase());
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host.toLowerCase() : undefined;
}
