/** Which origins may open a WebSocket, beside those that may read answers over HTTP. */
import { isIP } from "node:net";

/** An origin, or the part of one that an entry of `ws-origins` names; empty where it names nothing. */
interface OriginParts {
  readonly scheme: string;
  readonly host: string;
  readonly port: string;
}

/** Scheme and port may be left out; an IPv6 address stands in brackets. */
const ENTRY = /^(?:([a-z][a-z0-9+.-]*):\/\/)?(\[[^\]]*\]|[^:/]*)(?::(\d+))?\/?$/;

/**
 * True for what programs send that name the server itself as their origin, as the WebSocket client most
 * used with Python does. Only of an address or `localhost`; another name may be made to mean this
 * machine by whoever owns it, and then a page of theirs has the server's own origin.
 * @param host the request's Host
 */
export function isOwnOrigin(origin: string, host: string | undefined): boolean {
  const asking = webUrl(origin);
  if (asking === undefined || host === undefined) return false;
  const { protocol, hostname } = asking;
  const isRebound = hostname !== "localhost" && isIP(hostname.replace(/^\[|\]$/g, "")) === 0;
  return !isRebound && webUrl(`${protocol}//${host}`)?.host === asking.host;
}

/**
 * True when an entry of `ws-origins` fits, as go-ethereum reads them: what an entry does not name may be
 * anything, so that `localhost` is every page of this machine. `*` is all origins.
 */
export function isSocketOrigin(origin: string, entries: readonly string[]): boolean {
  const asking = partsOf(origin);
  return entries.some((entry) => {
    if (entry === "*") return true;
    const wanted = partsOf(entry);
    if (asking === undefined || wanted === undefined || wanted.host === "") return false;
    return (
      wanted.host === asking.host &&
      ["", asking.scheme].includes(wanted.scheme) &&
      ["", asking.port].includes(wanted.port)
    );
  });
}

function partsOf(text: string): OriginParts | undefined {
  const match = ENTRY.exec(text.toLowerCase());
  if (match === null) return undefined;
  const [, scheme = "", host = "", port = ""] = match;
  return { scheme, host, port };
}

/** The address in its one spelling; undefined for what is no page of the web. */
function webUrl(text: string): URL | undefined {
  const isWeb = /^https?:\/\/[^/?#@\\]+$/i.test(text);
  return isWeb && URL.canParse(text) ? new URL(text) : undefined;
}
