/** Whom the console answers at all: under which names, and from which pages. */
import type { IncomingMessage } from "node:http";
import { isForeignForm } from "../../web/server/foreign-form.js";
import { ConsoleError } from "../errors.js";

/** Names of this machine for itself. */
const LOCAL_NAME = /^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/i;

/**
 * Refuses requests under another name: a page of a stranger that has its own name lead to this machine
 * (DNS rebinding) would otherwise be of the same origin.
 * @param publicHost host of the setting `server.public-url`; undefined without one
 * @throws WRONG_HOST
 */
export function checkHost(request: IncomingMessage, publicHost: string | undefined): void {
  const { host = "" } = request.headers;
  if (LOCAL_NAME.test(host) || host.toLowerCase() === publicHost) return;
  throw new ConsoleError("WRONG_HOST", "asked under another name");
}

/**
 * Refuses forms that another page sent. Browsers say where a form comes from; what says nothing still
 * needs the session's token.
 * @throws FORM_REFUSED
 */
export function checkOrigin(request: IncomingMessage): void {
  if (isForeignForm(request)) throw new ConsoleError("FORM_REFUSED", "sent by another page");
}

/**
 * Path and query of the console's page that a form was sent from; undefined where the browser does not
 * tell, or tells of another site.
 */
export function formPath({ headers, method }: IncomingMessage): string | undefined {
  if (method !== "POST" || headers.referer === undefined) return undefined;
  if (!URL.canParse(headers.referer)) return undefined;
  const { host, pathname, search } = new URL(headers.referer);
  // A path of two slashes would be a link to another host.
  return host === headers.host && !pathname.startsWith("//") ? `${pathname}${search}` : undefined;
}
