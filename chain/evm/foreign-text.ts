/** Texts that strangers chose, made safe to keep and to show. */

/**
 * Control characters, which PostgreSQL's text does not take (NUL) or which move a terminal's cursor,
 * and those that turn the direction of writing.
 */
const UNSHOWABLE = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/** Stands for a character that is not shown (Unicode's replacement character). */
const REPLACEMENT = "\ufffd";

/**
 * The text without what a database, JSON or a terminal could stumble over: control characters and
 * halves of surrogate pairs become U+FFFD, and what is behind `maxCharacters` is cut off between two
 * characters (code points). Every text that a node or a contract chose passes here once, where it
 * comes in.
 */
export function cleanForeignText(text: string, maxCharacters: number): string {
  // A character is at most two units: cutting first bounds the work by what is kept.
  const start = text.slice(0, 2 * maxCharacters).toWellFormed();
  return shorten(start, maxCharacters).replace(UNSHOWABLE, REPLACEMENT);
}

/**
 * How long the reason of what a person does may be, in characters. `api`: of calls, as in the API files and
 * the checks of their tables. `record`: of decisions typed where the ledger is, which keeps them for ever.
 */
export const MAX_REASON_CHARACTERS = { api: 500, record: 1_000 } as const;

/** Ends of lines and tabs, with the blanks around them. */
const LINE_ENDS = / *[\t\n\v\f\r\u0085\u2028\u2029][\s\u0085]*/g;

/**
 * What a person wrote, on one line: where a line ends is a blank, and the rest is cleaned as a stranger's
 * text is. Forms have room for several lines, and records have one.
 */
export function oneLine(text: string, maxCharacters: number): string {
  return cleanForeignText(text.trim().replace(LINE_ENDS, " "), maxCharacters);
}

/**
 * The same of a text that has to say something, and of which nothing may be cut off.
 * @returns undefined for one that says nothing, or is longer with the blanks around it
 */
export function wholeLine(text: string, maxCharacters: number): string | undefined {
  if (text.trim() === "" || shorten(text, maxCharacters) !== text) return undefined;
  return oneLine(text, maxCharacters);
}

/** The first characters (code points) of a text; none is cut in two. */
export function shorten(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  return Array.from(text.slice(0, 2 * maxCharacters))
    .slice(0, maxCharacters)
    .join("");
}

/**
 * A text for a terminal, whoever wrote what is in it: a character that a terminal would obey is shown
 * as JSON escapes it (`\u001b`). A JSON document stays the document that it was.
 * @param lines "one": line feeds and tabs are escaped, too; "many": they stand as in a document
 */
export function escapeUnshowable(text: string, lines: "one" | "many"): string {
  return text.replace(UNSHOWABLE, (character) =>
    lines === "many" && (character === "\n" || character === "\t")
      ? character
      : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
