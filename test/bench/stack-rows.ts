/** Rows of the whole kit. */
import type { RunLength } from "./chain-rows.js";
import type { BenchRow } from "./report.js";
/** Names. */
export const STACK_ROWS = ["watcher", "withdrawals", "rosetta"] as const;
/** A row. */
export type StackRowName = (typeof STACK_ROWS)[number];
/** Runs. */
export async function runStackRows(_options: {
  readonly rows: readonly StackRowName[];
  readonly length: RunLength;
  readonly say: (line: string) => void;
}): Promise<BenchRow[]> {
  return [];
}
