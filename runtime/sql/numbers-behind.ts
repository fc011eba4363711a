/**
 * Sequences that are behind the rows that they have numbered: a server that was killed soon after it copied
 * the database has forgotten numbers (`numbering.ts`), and logical replication brings rows and leaves
 * sequences where they began. A number that a row has is refused as it is drawn again; one that a
 * transaction drew and gave up is not, and its row comes to lie before others of which everybody thinks that
 * nothing can come before them any more.
 */
import type { Logger } from "../process/logger.js";
import type { Sql } from "./sql.js";

/** Columns of one unique index that a sequence fills, where this role may read both and there are rows. */
const NUMBERED = `
  -- Materialized: of other relations the rights of a sequence cannot be asked.
  WITH sequence AS MATERIALIZED (
    SELECT oid FROM pg_class WHERE relkind = 'S' AND relnamespace = current_schema()::regnamespace),
  filled (sequence, relation, place) AS (
    SELECT d.objid, d.refobjid, d.refobjsubid FROM pg_depend d
     WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype = 'i'
     UNION ALL
    SELECT d.refobjid, f.adrelid, f.adnum
      FROM pg_attrdef f JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
     WHERE d.refclassid = 'pg_class'::regclass)
  SELECT DISTINCT s.oid::regclass::text AS sequence, a.attrelid::regclass::text AS table,
         quote_ident(a.attname) AS column, has_sequence_privilege(s.oid, 'UPDATE') AS is_movable
    FROM sequence s
    JOIN filled ON filled.sequence = s.oid
    JOIN pg_attribute a ON a.attrelid = filled.relation AND a.attnum = filled.place
    JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisunique AND i.indnatts = 1
     AND i.indkey[0] = a.attnum
   WHERE has_sequence_privilege(s.oid, 'SELECT')
     AND has_column_privilege(a.attrelid, a.attnum, 'SELECT')
     -- A table without a page has no row: most of a young ledger's are not asked, which is cheaper tenfold.
     AND pg_relation_size(a.attrelid) > 0`;

interface Numbered {
  readonly sequence: string;
  readonly table: string;
  readonly column: string;
  readonly is_movable: boolean;
}

/** What others draw while a sequence is on its way is not drawn once more. */
const ROOM = 1_000;

/** Higher ones were written by hand: what is told behind them no JSON would hold. */
const HIGHEST = 2n ** 52n;

/**
 * Moves sequences beyond all rows that they have numbered. Those that are there already, which is all of them
 * on most days, stay as they are; may be called by several processes at once, beside others that write.
 * @returns sequences that are behind, and that this role may not move
 * @throws SqlError
 */
export async function moveNumbersOn(
  sql: Sql,
  { log }: { readonly log: Logger },
): Promise<readonly string[]> {
  const numbered = await sql.query<Numbered>(NUMBERED);
  if (numbered.length === 0) return [];
  const behind = await sql.query<{ place: number; newest: string }>(
    `SELECT place, newest::text FROM (${numbered.map(reach).join(" UNION ALL ")}) AS reach
      WHERE newest > drawn AND newest < ${HIGHEST}`,
  );
  const left: string[] = [];
  for (const { place, newest } of behind) {
    const { sequence = "", is_movable: isMovable } = numbered[place] ?? {};
    if (isMovable !== true) {
      left.push(sequence);
      continue;
    }
    await sql.query(
      `SELECT setval($1::regclass, greatest(nextval($1::regclass), $2::bigint) + ${ROOM})`,
      [sequence, newest],
    );
    log.warn(
      { sequence, newest },
      "numbers were about to be given again: they go on behind all rows",
    );
  }
  return left;
}

/**
 * SQL: the newest number that a row has, and the last one that was drawn. That is read as it is, and rows as
 * they were when the statement began: who draws meanwhile leaves no sequence behind.
 */
function reach({ sequence, table, column }: Numbered, place: number): string {
  return `SELECT ${place} AS place, (SELECT max(${column}) FROM ${table}) AS newest,
    (SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END FROM ${sequence}) AS drawn`;
}
