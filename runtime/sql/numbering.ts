/**
 * Numbers that PostgreSQL draws for rows, and that it may draw a second time: where a database was made
 * from a template (`CREATE DATABASE … TEMPLATE`, a quick way to put a copy back), a server that is killed
 * before its next checkpoint forgets what was drawn since. The rows stand, their keys refuse the number,
 * and each try draws the next one. `numbers-behind.ts` is for those that no row has.
 */
import type { AppError } from "../../chain/errors.js";
import { SqlError } from "./sql-errors.js";

/** A sequence logs 32 numbers at once; no more are forgotten. Each try draws one of them at least. */
const MAX_DRAWS_EACH = 64;

/** Unique indexes of one column that a sequence fills, in the schema of the connection. */
export const NUMBERINGS = `
  SELECT x.relname AS name
    FROM pg_index i
    JOIN pg_class x ON x.oid = i.indexrelid
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
   WHERE i.indisunique AND i.indnatts = 1 AND x.relnamespace = current_schema()::regnamespace
     AND (a.attidentity <> '' OR pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%')`;

/**
 * A fault as it is, or NUMBER_TAKEN where a row was refused for its number alone: nothing contradicts
 * the ledger then, which is what a UNIQUE_VIOLATION means to its callers.
 * @param numberings names of indexes, by `NUMBERINGS`
 */
export function asNumberTaken(error: AppError, numberings: ReadonlySet<string>): AppError {
  if (!(error instanceof SqlError) || error.code !== "UNIQUE_VIOLATION") return error;
  const { constraint, details } = error;
  if (constraint === undefined || !numberings.has(constraint)) return error;
  const message = `NUMBER_TAKEN: the database drew a number twice for ${constraint}`;
  return new SqlError("NUMBER_TAKEN", message, { details, retriable: true, cause: error });
}

/**
 * Does work again whose rows were refused for their numbers: it must have no effects besides.
 * @throws NUMBER_TAKEN where even that comes to no end, and what else `work` throws
 */
export async function untilNumbered<T>(work: () => Promise<T>): Promise<T> {
  const drawsOf = new Map<string | undefined, number>();
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof SqlError) || error.code !== "NUMBER_TAKEN") throw error;
      const draws = (drawsOf.get(error.constraint) ?? 0) + 1;
      if (draws > MAX_DRAWS_EACH) throw error;
      drawsOf.set(error.constraint, draws);
    }
  }
}
