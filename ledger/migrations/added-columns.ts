/**
 * Rights to columns that a migration adds. Services add rows by the right to each column that they name,
 * which covers none that comes later: where nobody gives rights anew behind a migration, as in a database
 * that has another name by now, a service of this release could store nothing in that table any more.
 */

/**
 * SQL: whoever may add rows to a table may name its new columns in them. Stands behind each `ADD COLUMN` of a
 * table that services add rows to, in the same migration.
 * @param table its name
 * @param columns those that were added
 */
export function mayNameAdded(table: string, columns: readonly string[]): string {
  return `
  DO $$
  DECLARE
    who text;
  BEGIN
    FOR who IN
      SELECT DISTINCT CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
       CROSS JOIN LATERAL aclexplode(a.attacl) AS g
       WHERE c.oid = 'public.${table}'::regclass AND g.grantee <> c.relowner
         AND g.privilege_type = 'INSERT'
    LOOP
      EXECUTE format('GRANT INSERT (${columns.join(", ")}) ON public.${table} TO %s', who);
    END LOOP;
  END $$;`;
}
