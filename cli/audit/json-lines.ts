/** Files of JSON lines: each line is read by itself, and no more is held than the longest one. */
import { createReadStream } from "node:fs";

/**
 * What stands between line feeds, and nothing else: JSON leaves other line ends in texts. Throws the
 * system's fault.
 * @param bound.tooLong makes the error for a line, counted from 1, of more characters than `maxLength`
 */
export async function* linesOf(
  path: string,
  bound: { readonly maxLength: number; readonly tooLong: (place: number) => Error },
): AsyncGenerator<string> {
  const { maxLength, tooLong } = bound;
  // Pieces of a line that has not ended: put together once, however many they are.
  let [pieces, length, place] = [[] as string[], 0, 1];
  for await (const chunk of createReadStream(path, { encoding: "utf8" })) {
    const [first = "", ...lines] = String(chunk).split("\n");
    pieces.push(first);
    length += first.length;
    for (const next of lines) {
      if (length > maxLength) throw tooLong(place);
      yield withoutReturn(pieces.join(""));
      place += 1;
      [pieces, length] = [[next], next.length];
    }
    if (length > maxLength) throw tooLong(place);
  }
  if (length > 0) yield withoutReturn(pieces.join(""));
}

/** A copy that was made as a text may have both characters at the end of its lines. */
function withoutReturn(text: string): string {
  return text.endsWith("\r") ? text.slice(0, -1) : text;
}

/**
 * Passes items on until the command is stopped, and tells how many there were by then: files of years take
 * minutes, and nothing else of the work looks up. Throws the signal's reason.
 */
export async function* underWay<Item>(
  items: AsyncIterable<Item>,
  { signal, tell }: { readonly signal: AbortSignal; readonly tell: (count: number) => void },
): AsyncGenerator<Item> {
  let count = 0;
  for await (const item of items) {
    signal.throwIfAborted();
    yield item;
    tell((count += 1));
  }
}
