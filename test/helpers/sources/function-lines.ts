/**
 * Functions of a formatted source and how many lines each has, from its name to its last brace. The
 * formatter sets that brace under the line on which the function begins, so that no parser is needed.
 */

/** A function and its lines. */
export interface FunctionLines {
  /** "file:line" of its beginning. */
  readonly place: string;
  readonly count: number;
}

const DECLARATION = /^ *(export )?(default )?(async )?function\b/;
const ARROW = /=> \{$/;
const METHOD =
  /^ +((private|protected|public|static|override|async|get|set) )*[*#]?[\w$]+(<.*>)?\(/;
/** What has a block behind brackets, too, and calls that are statements. */
const NO_METHOD = /^ *(if|for|while|switch|catch|return|await|super)\b/;

/** All functions of more than one line. */
export function functionLines(path: string, text: string): FunctionLines[] {
  const lines = text.split("\n");
  return lines.flatMap((_line, index) => {
    if (!opensFunction(lines, index)) return [];
    const end = closing(lines, index);
    return end === undefined ? [] : [{ place: `${path}:${index + 1}`, count: end - index + 1 }];
  });
}

function opensFunction(lines: readonly string[], index: number): boolean {
  const line = lines[index] ?? "";
  if (DECLARATION.test(line) || ARROW.test(line)) return true;
  if (!METHOD.test(line) || NO_METHOD.test(line)) return false;
  if (/\)(: .+)? \{$/.test(line)) return true;
  // Its parameters, or its type, stand on lines of their own.
  return /^ *[)}].* \{$/.test(nextAtDepth(lines, index)?.line ?? "");
}

function closing(lines: readonly string[], start: number): number | undefined {
  for (let next = nextAtDepth(lines, start); next !== undefined; ) {
    if (/^ *\}/.test(next.line) && !next.line.endsWith("{")) return next.index;
    if (!/^ *[)}]/.test(next.line)) return undefined;
    next = nextAtDepth(lines, next.index);
  }
  return undefined;
}

/** The next line that is not deeper than one is. */
function nextAtDepth(lines: readonly string[], start: number) {
  const depth = depthOf(lines[start] ?? "");
  for (let index = start + 1; index < lines.length; index++) {
    const line = lines[index] ?? "";
    if (line !== "" && depthOf(line) <= depth) return { line, index };
  }
  return undefined;
}

function depthOf(line: string): number {
  return line.length - line.trimStart().length;
}
