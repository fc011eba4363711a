/**
 * CometBFT's query language for events (libs/pubsub/query): conditions `tag operator argument`
 * joined by AND, or by `&` as the specification writes it (D4). Arguments are 'strings', numbers,
 * DATE yyyy-mm-dd and TIME rfc3339; there is no OR and no NOT.
 */
import { isOfCalendar } from "../../../../chain/encoding/calendar.js";
import { refused } from "../errors.js";

/** Operators that compare, and the two that look inside or only for presence. */
export type Operator = "=" | "<" | "<=" | ">" | ">=" | "CONTAINS" | "EXISTS";

/** What a tag is compared with; `text` is as written, without quotes or keyword. */
export interface Argument {
  readonly kind: "string" | "number" | "date" | "time";
  readonly text: string;
}

/** One condition. Only EXISTS has no argument. */
export interface Condition {
  /** `type.attribute`, or only the type of an event. */
  readonly tag: string;
  readonly operator: Operator;
  readonly argument: Argument | undefined;
}

/** A parsed query: all conditions must hold. */
export interface EventQuery {
  readonly conditions: readonly Condition[];
  /** The one spelling of queries that match the same. */
  readonly canonical: string;
  /** As `canonical`, with each AND and `&` as it was written: what tells subscriptions apart. */
  readonly spelling: string;
}

/** Longest query that is taken; CometBFT's bound against outlandish ones. */
const MAX_QUERY_CHARACTERS = 512;

interface Token {
  readonly kind: "tag" | "and" | "operator" | Argument["kind"];
  readonly text: string;
  readonly at: number;
}

const SPACE = /\s+/y;
const NUMBER = /[0-9]+(\.[0-9]*)?/y;
const WORD = /[\p{L}\p{Nd}_][\p{L}\p{Nd}_.-]*/uy;
const STRING = /'([^']*)'/y;
const COMPARISON = /<=|>=|<|>|=/y;
const MOMENT = / ([-0-9T:+Z]*)/y;

const DATE_TEXT = /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/;
const TIME_TEXT =
  /^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})$/;

/**
 * Untrusted text to a query.
 * @throws INTERNAL (as CometBFT answers) with the offset of what cannot be read
 */
export function parseQuery(text: string): EventQuery {
  if (text.length > MAX_QUERY_CHARACTERS) throw refused("maximum query length exceeded");
  const tokens = scan(text);
  const conditions: Condition[] = [];
  let at = 0;
  const next = (...kinds: readonly Token["kind"][]): Token => {
    const token = tokens[at++];
    if (token === undefined) throw unreadable(text.length, `expected ${kinds.join(" or ")}`);
    if (kinds.includes(token.kind)) return token;
    throw unreadable(token.at, `got ${token.kind}, expected ${kinds.join(" or ")}`);
  };
  let spelling = "";
  for (;;) {
    const tag = next("tag").text;
    const operator = next("operator").text as Operator;
    const condition = { tag, operator, argument: argumentOf(operator, next) };
    conditions.push(condition);
    spelling += conditionText(condition);
    if (at >= tokens.length) break;
    spelling += ` ${next("and").text} `;
  }
  return { conditions, canonical: conditions.map(conditionText).join(" AND "), spelling };
}

function argumentOf(
  operator: Operator,
  next: (...kinds: readonly Token["kind"][]) => Token,
): Argument | undefined {
  if (operator === "EXISTS") return undefined;
  if (operator === "CONTAINS") return { kind: "string", text: next("string").text };
  const kinds = ["number", "time", "date"] as const;
  const { kind, text } = operator === "=" ? next(...kinds, "string") : next(...kinds);
  return { kind: kind as Argument["kind"], text };
}

function conditionText({ tag, operator, argument }: Condition): string {
  if (argument === undefined) return `${tag} ${operator}`;
  const { kind, text } = argument;
  if (kind === "string") return `${tag} ${operator} '${text}'`;
  return `${tag} ${operator} ${kind === "number" ? text : `${kind.toUpperCase()} ${text}`}`;
}

function scan(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match !== null) at = pattern.lastIndex;
    return match;
  };
  while (at < text.length) {
    if (take(SPACE) !== null) continue;
    const start = at;
    const comparison = take(COMPARISON) ?? undefined;
    if (comparison !== undefined) {
      tokens.push({ kind: "operator", text: comparison[0], at: start });
    } else if (text[at] === "&") {
      at++;
      tokens.push({ kind: "and", text: "&", at: start });
    } else {
      tokens.push(scanValue(take, start));
    }
  }
  return tokens;
}

function scanValue(take: (pattern: RegExp) => RegExpExecArray | null, at: number): Token {
  const string = take(STRING);
  if (string !== null) return { kind: "string", text: string[1] ?? "", at };
  const number = take(NUMBER);
  if (number !== null) return { kind: "number", text: number[0], at };
  const word = take(WORD)?.[0];
  switch (word) {
    case undefined:
      throw unreadable(at, "invalid input");
    case "AND":
      return { kind: "and", text: word, at };
    case "EXISTS":
    case "CONTAINS":
      return { kind: "operator", text: word, at };
    case "DATE":
    case "TIME": {
      const moment = take(MOMENT)?.[1];
      if (moment === undefined) return { kind: "tag", text: word, at };
      const isDate = word === "DATE";
      const timeMs = isDate ? dateMs(moment) : timeOfDayMs(moment);
      if (timeMs === undefined || !isPlausible(moment)) {
        throw unreadable(at, `invalid ${word} value`);
      }
      return { kind: isDate ? "date" : "time", text: moment, at };
    }
    default:
      return { kind: "tag", text: word, at };
  }
}

/** CometBFT's range of years. */
function isPlausible(moment: string): boolean {
  const year = Number(moment.slice(0, 4));
  return year >= 1_900 && year <= 2_999;
}

/** Unix milliseconds of `yyyy-mm-dd`; undefined for anything else and for days that are none. */
export function dateMs(text: string): number | undefined {
  return DATE_TEXT.test(text) ? timeOfDayMs(`${text}T00:00:00Z`) : undefined;
}

/** Unix milliseconds of an RFC 3339 time, capitals only as Go has it; undefined for anything else. */
export function timeOfDayMs(text: string): number | undefined {
  const local = TIME_TEXT.exec(text)?.[1];
  if (local === undefined || !isOfCalendar(local)) return undefined;
  const timeMs = Date.parse(text);
  return Number.isNaN(timeMs) ? undefined : timeMs;
}

function unreadable(at: number, what: string) {
  return refused(`failed to parse query: offset ${at}: ${what}`);
}
