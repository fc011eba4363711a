/** Reading of single setting values: listen addresses, URLs, numbers; no files, no environment. */

/** Which texts a setting takes. */
export type TextRule = Pick<RegExp, "test">;

/** What a setting must look like; thrown by parsers and turned into a fault with file and key. */
export class InvalidValueError extends Error {}

/** A host and port to listen on. */
export interface ListenAddress {
  /** Name or IP address without brackets, for example "127.0.0.1" or "::1". */
  readonly host: string;
  /** 0 to 65535; 0 lets the system choose. */
  readonly port: number;
}

/** The highest port of TCP. */
export const MAX_PORT = 65_535;

/**
 * Reads "127.0.0.1:8080", "[::1]:8080", ":8080" (all interfaces) or CometBFT's "tcp://host:port".
 * @throws InvalidValueError
 */
export function parseListenAddress(text: string): ListenAddress {
  const match = /^(?:tcp:\/\/)?(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]*)):([0-9]{1,5})$/.exec(text);
  const port = Number(match?.[3] ?? "NaN");
  if (match === null || port > MAX_PORT) {
    throw new InvalidValueError("expected host:port");
  }
  const host = match[1] ?? match[2] ?? "";
  return Object.freeze({ host: host === "" ? "0.0.0.0" : host, port });
}

/** Writes a listen address as `parseListenAddress` reads it. */
export function formatListenAddress(address: ListenAddress, scheme = ""): string {
  const host = address.host.includes(":") ? `[${address.host}]` : address.host;
  return `${scheme}${host}:${address.port}`;
}

/**
 * Checks an absolute URL of one of the schemes and returns it as written.
 * @throws InvalidValueError
 */
export function parseUrl(text: string, schemes: readonly string[]): string {
  if (isUrl(text, schemes)) return text;
  throw new InvalidValueError(`expected a URL starting with ${schemes.join(":// or ")}://`);
}

/** Whether a text is an absolute URL of one of the schemes, to which a connection can be tried. */
export function isUrl(text: string, schemes: readonly string[]): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, hash, href } = new URL(text);
  const scheme = protocol.replace(/:$/, "");
  // Whoever connects to a WebSocket is thrown an exception for a fragment, for which no server has a use.
  const isForSockets = scheme === "ws" || scheme === "wss";
  // "redis:6379" is a URL, too: of no host.
  const isWhole = (!isForSockets || hash === "") && href.startsWith(`${protocol}//`);
  return schemes.includes(scheme) && isWhole && [username, password].every(isEscaped);
}

/** False where a percent sign stands for itself: what makes Basic authorisation of it throws. */
function isEscaped(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** True for hosts that only this machine can reach. */
function isLoopbackHost(host: string): boolean {
  return /^(localhost|127(\.[0-9]{1,3}){3}|\[?::1\]?)$/.test(host);
}

/** A URL as it is asked for: names of this machine are one, and fragments are not sent. */
export function whereIs(text: string): URL {
  const url = new URL(text);
  if (isLoopbackHost(url.hostname)) url.hostname = "localhost";
  url.hash = "";
  return url;
}

/** Whether two URLs are one, however they are written. */
export function isSamePlace(one: string, other: string): boolean {
  return whereIs(one).href === whereIs(other).href;
}

/** The URL with its explicit port raised by `portOffset`; unchanged without a loopback port. */
export function shiftUrlPort(text: string, portOffset: number): string {
  if (text === "" || portOffset === 0) {
    return text;
  }
  const url = new URL(text);
  if (!isLoopbackHost(url.hostname) || url.port === "") {
    return text;
  }
  return text.replace(`:${url.port}`, `:${Number(url.port) + portOffset}`);
}

/** The address with its port raised by `portOffset`; port 0 stays "any". */
export function shiftAddressPort(address: ListenAddress, portOffset: number): ListenAddress {
  return address.port === 0
    ? address
    : Object.freeze({ host: address.host, port: address.port + portOffset });
}

/**
 * Reads a whole number from a TOML value (number or bigint) or from text.
 * @throws InvalidValueError
 */
export function parseWholeNumber(raw: unknown): bigint {
  if (typeof raw === "bigint") {
    return raw;
  }
  if (typeof raw === "number" && Number.isSafeInteger(raw)) {
    return BigInt(raw);
  }
  if (typeof raw === "string" && /^-?[0-9]{1,80}$/.test(raw)) {
    return BigInt(raw);
  }
  throw new InvalidValueError("expected a whole number");
}

/** A TOML basic string: quoted, with backslashes, quotes and control characters escaped. */
export function tomlString(text: string): string {
  return JSON.stringify(text).replace(/\u007f/g, "\\u007F");
}
