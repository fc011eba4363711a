/** Pages of the commands that list rows: `--limit` and `--after`. */
import { readWholeNumber } from "./whole-number.js";

/** Rows of one page, and the most that one may ask for: a terminal is no place for more. */
const LIST_ROWS = { usual: 100, most: 1_000 } as const;

/** Flags of a list, as typed. */
export interface PageOptions {
  /** Rows at most. */
  readonly limit?: string;
  /** Only rows behind this position. */
  readonly after?: string;
}

/** The page that is asked for; without flags the first rows of the list. @throws USAGE */
export function readPage({ limit = `${LIST_ROWS.usual}`, after = "0" }: PageOptions): {
  readonly limit: number;
  readonly after: number;
} {
  return {
    limit: readWholeNumber("--limit", limit, { least: 1, most: LIST_ROWS.most }),
    after: readWholeNumber("--after", after, { least: 0 }),
  };
}

/** The row behind which the next page begins; undefined where this page is the last. */
export function lastIfFull<Row>(rows: readonly Row[], limit: number): Row | undefined {
  return rows.length === limit ? rows.at(-1) : undefined;
}
