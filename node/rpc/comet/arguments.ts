/**
 * Arguments of a request, as CometBFT reads them. In JSON 64-bit numbers are strings (numbers are
 * taken as well), bytes base64 and hashes hex, by route. In a URL strings are quoted, numbers may
 * be, and bytes are `0x` hex; a string without quotes is taken as it stands.
 */
import { MAX_URL_PIECES, urlPieces } from "../url-pieces.js";
import { invalidArgument } from "./errors.js";

/** Where arguments come from: a URL's texts, or JSON values. */
export type ArgumentSource =
  | { readonly form: "url"; readonly values: ReadonlyMap<string, string> }
  | { readonly form: "json"; readonly values: ReadonlyMap<string, unknown> };

const WHOLE_NUMBER = /^-?[0-9]{1,19}$/;
const MAX_INT64 = 2n ** 63n - 1n;
const HEX_BYTES = /^([0-9a-fA-F]{2})*$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Typed access by name; each read throws INVALID_PARAMS for a value that is not of the type. */
export class Arguments {
  constructor(private readonly source: ArgumentSource) {}

  /**
   * A whole number; undefined where absent. What only an int64 can hold becomes the nearest number
   * that is safe to compute with: no height or page is that large, and clients ask for "all" so.
   */
  integer(name: string): number | undefined {
    const value = this.source.form === "url" ? this.unquoted(name) : this.source.values.get(name);
    if (value === undefined || value === null) return undefined;
    if (typeof value === "string" && WHOLE_NUMBER.test(value)) {
      const number = BigInt(value);
      if (number <= MAX_INT64 && number >= -MAX_INT64 - 1n) return nearestSafe(number);
    }
    if (typeof value === "number" && Number.isSafeInteger(value)) return value;
    throw invalidArgument(name, "a whole number");
  }

  /** False where absent. */
  boolean(name: string): boolean {
    const value = this.source.form === "url" ? this.unquoted(name) : this.source.values.get(name);
    if (value === undefined || value === null || value === false || value === "false") return false;
    if (value === true || value === "true") return true;
    throw invalidArgument(name, "true or false");
  }

  /** Empty where absent. */
  text(name: string): string {
    if (this.source.form === "url") {
      const text = this.source.values.get(name) ?? "";
      if (/^0x/i.test(text)) return Buffer.from(this.urlHex(name, text)).toString("utf8");
      return this.unquoted(name) ?? "";
    }
    const value = this.source.values.get(name) ?? "";
    if (typeof value !== "string") throw invalidArgument(name, "a string");
    return value;
  }

  /** Bytes that are base64 in JSON; empty where absent. */
  bytes(name: string): Uint8Array {
    if (this.source.form === "url") return this.urlBytes(name);
    const value = this.source.values.get(name) ?? "";
    if (typeof value !== "string" || value.length % 4 !== 0 || !BASE64.test(value)) {
      throw invalidArgument(name, "base64");
    }
    return Buffer.from(value, "base64");
  }

  /** Bytes that are hex in JSON, without prefix or with it; empty where absent. */
  hexBytes(name: string): Uint8Array {
    if (this.source.form === "url") return this.urlBytes(name);
    const value = this.source.values.get(name) ?? "";
    if (typeof value !== "string") throw invalidArgument(name, "hex digits");
    return this.hex(name, value.replace(/^0x/i, ""));
  }

  /** The value itself, for structures; only JSON has them. */
  json(name: string): unknown {
    if (this.source.form === "json") return this.source.values.get(name);
    const text = this.source.values.get(name);
    if (text === undefined) return undefined;
    try {
      return JSON.parse(text);
    } catch {
      throw invalidArgument(name, "JSON");
    }
  }

  /** `0x` hex; a quoted text stands for its own bytes, as in CometBFT. */
  private urlBytes(name: string): Uint8Array {
    const text = this.source.form === "url" ? (this.source.values.get(name) ?? "") : "";
    if (/^0x/i.test(text)) return this.urlHex(name, text);
    if (text.startsWith('"')) return Buffer.from(this.unquoted(name) ?? "", "utf8");
    return this.hex(name, text);
  }

  private urlHex(name: string, text: string): Uint8Array {
    return this.hex(name, text.slice(2));
  }

  private hex(name: string, digits: string): Uint8Array {
    if (!HEX_BYTES.test(digits)) throw invalidArgument(name, "hex digits");
    return Buffer.from(digits, "hex");
  }

  /** A URL's text without its quotes; an empty one counts as absent. */
  private unquoted(name: string): string | undefined {
    const text = this.source.form === "url" ? this.source.values.get(name) : undefined;
    if (text === undefined || text === "") return undefined;
    if (!text.startsWith('"')) return text;
    try {
      const value: unknown = JSON.parse(text);
      if (typeof value === "string") return value;
    } catch {
      // Told below, as for any other value that is no string.
    }
    throw invalidArgument(name, "a quoted string");
  }
}

function nearestSafe(number: bigint): number {
  const { MAX_SAFE_INTEGER, MIN_SAFE_INTEGER } = Number;
  return Math.max(MIN_SAFE_INTEGER, Math.min(MAX_SAFE_INTEGER, Number(number)));
}

/** A piece of a URL's query whose key is no argument but the tag of an event. */
const STRAY_CONDITION = /^\s*[\w-]+\.[\w.-]+\s*(=|<|>|%3C|%3E|CONTAINS|EXISTS|\s)/i;

/**
 * Arguments of a URL. A `&` between the conditions of an event query splits the URL where it is
 * not escaped (D4), so pieces that look like a condition are put back behind the query.
 * @throws INVALID_PARAMS for more pieces than are read
 */
export function urlArguments(search: string, names: readonly string[]): Arguments {
  const given = urlPieces(search.replace(/^\?/, ""));
  if (given === undefined) {
    throw invalidArgument("params", `at most ${MAX_URL_PIECES} parameters`);
  }
  const pieces: string[] = [];
  let queryAt = -1;
  for (const piece of given) {
    const name = piece.slice(0, Math.max(0, piece.indexOf("=")));
    const isStray = !names.includes(name) && STRAY_CONDITION.test(decode(piece));
    // Other arguments may stand between: a condition that is dropped would widen the search without a word.
    const query = pieces[queryAt];
    if (isStray && query !== undefined) {
      pieces[queryAt] = joinConditions(query, piece);
      continue;
    }
    if (queryAt < 0 && piece.startsWith("query=")) queryAt = pieces.length;
    pieces.push(piece);
  }
  const values = new Map<string, string>();
  for (const piece of pieces) {
    const at = piece.indexOf("=");
    const name = at < 0 ? piece : piece.slice(0, at);
    if (!values.has(name)) values.set(name, at < 0 ? "" : decode(piece.slice(at + 1)));
  }
  return new Arguments({ form: "url", values });
}

/** The closing quote may stand behind the first condition or behind the last one. */
function joinConditions(query: string, condition: string): string {
  const closing = /("|%22)$/;
  const isClosed = closing.test(query) && !closing.test(condition);
  return isClosed ? `${query.replace(closing, "")}%26${condition}%22` : `${query}%26${condition}`;
}

/** Percent signs that encode nothing are left as they are. */
function decode(text: string): string {
  const spaced = text.replaceAll("+", " ");
  try {
    return decodeURIComponent(spaced);
  } catch {
    return spaced;
  }
}

/**
 * Arguments of a JSON-RPC request: an object by name, or an array of all in order.
 * @throws INVALID_PARAMS
 */
export function jsonArguments(params: unknown, names: readonly string[]): Arguments {
  if (params === undefined || params === null) {
    return new Arguments({ form: "json", values: new Map() });
  }
  if (Array.isArray(params)) {
    // An empty array is what many libraries send for no arguments.
    if (params.length !== 0 && params.length !== names.length) {
      throw invalidArgument("params", `${names.length} parameters (${names.join(",")})`);
    }
    const entries = params.map((value: unknown, index) => [names[index] ?? "", value] as const);
    return new Arguments({ form: "json", values: new Map(entries) });
  }
  if (typeof params !== "object") throw invalidArgument("params", "an object or an array");
  return new Arguments({ form: "json", values: new Map(Object.entries(params)) });
}
