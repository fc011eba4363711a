/** Lists by position: oldest first as rows are written, or newest first as people read them. */

/** Which rows come first. */
export type ListOrder = "oldest" | "newest";

/**
 * SQL: rows behind the position in `$1`, in a list's order; 0 is before the first row of either. Positions
 * behind a recovery are far beyond 2^31, and beside 0 a parameter without a type is an integer of 32 bits.
 * @param column trusted name of a column of positive numbers
 */
export function listedBehind(column: string, order: ListOrder = "oldest"): string {
  return order === "oldest" ? `${column} > $1` : `($1::bigint = 0 OR ${column} < $1)`;
}

/** SQL: what to sort by. */
export function listedBy(column: string, order: ListOrder = "oldest"): string {
  return order === "oldest" ? column : `${column} DESC`;
}
