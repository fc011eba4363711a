/** JSON from outside: how much of it is parsed at a stretch. */

/**
 * Lists, objects and members of one text, counted by the characters that begin or divide them. The
 * largest requests that clients make have some tens of thousands. `JSON.parse` takes up to half a
 * microsecond for each, and nothing else gets its turn meanwhile.
 */
const MAX_JSON_VALUES = 250_000;

/** "," "[" and "{". */
const MARKS = [0x2c, 0x5b, 0x7b];

/** Whether a text in UTF-8 holds more than it is parsed for. Marks inside of strings count as well. */
export function hasTooManyValues(json: Buffer, most = MAX_JSON_VALUES): boolean {
  if (json.length <= most) return false;
  let count = 0;
  for (const mark of MARKS) {
    for (let at = json.indexOf(mark); at >= 0; at = json.indexOf(mark, at + 1)) {
      count += 1;
      if (count > most) return true;
    }
  }
  return false;
}
