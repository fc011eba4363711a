/** JSON of files that people edit. */

/** Some editors put it before a text; `JSON.parse` knows no such sign. */
const BYTE_ORDER_MARK = "\ufeff";

/** The value of a text, which may begin with a byte order mark. Throws as `JSON.parse` does. */
export function parseEditedJson(text: string): unknown {
  return JSON.parse(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text);
}
