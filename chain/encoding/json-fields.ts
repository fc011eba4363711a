/** Fields of JSON that are written twice: a parser keeps the last, and others may have read the first. */

/** Bytes that are no part of any other character in UTF-8. */
const [QUOTE, BACKSLASH, COLON] = [0x22, 0x5c, 0x3a];

/**
 * Whether an object of a JSON text has a field of one name more than once.
 * @param text the well-formed text, UTF-8
 * @param value what a parser made of it; nested no deeper than the stack allows
 */
export function hasRepeatedField(text: Uint8Array, value: unknown): boolean {
  return countFields(value) !== countColons(text);
}

/** Fields that well-formed JSON writes: each has one colon outside of texts. */
function countColons(text: Uint8Array): number {
  let count = 0;
  let isText = false;
  for (let place = 0; place < text.length; place += 1) {
    const byte = text[place];
    if (byte === QUOTE) isText = !isText;
    else if (byte === BACKSLASH) place += 1;
    else if (byte === COLON && !isText) count += 1;
  }
  return count;
}

/** Those of its parts included. */
function countFields(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const items: readonly unknown[] = Object.values(value);
  let count = Array.isArray(value) ? 0 : items.length;
  for (const item of items) count += countFields(item);
  return count;
}
