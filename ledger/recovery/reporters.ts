/**
 * Whose memory a recovery goes by. Addresses are given out by the watcher: a home of those who pay knows no
 * more of them than the ledger said when it was last at work.
 */
import type { Sql } from "../../runtime/sql/sql.js";

/** Processes that give out no address, as their guards name them. */
const PAYERS: readonly string[] = ["withdrawal-worker", "treasury"];

/** Who has said what a home remembers, or a person by a word, since the ledger was recovered last. */
export async function readReporters(sql: Sql): Promise<readonly string[]> {
  const rows = await sql.query<{ name: string }>(
    `SELECT DISTINCT reported_by AS name FROM remembered_ledger
      WHERE reported_at > coalesce((SELECT max(resolved_at) FROM incident WHERE kind = 'RECOVERY'),
                                   '-infinity')
      ORDER BY name`,
  );
  return rows.map(({ name }) => name);
}

/**
 * Pure: what a person has to know where nobody spoke who gives out addresses.
 * @returns undefined where one did
 */
export function unknownAddressesText(
  reporters: readonly string[],
  isApplied: boolean,
): string | undefined {
  if (reporters.length === 0 || reporters.some((name) => !PAYERS.includes(name))) return undefined;
  return (
    `Known is what ${reporters.join(" and ")} remembered, and no watcher's home has spoken: addresses that ` +
    "were given out while those stood still are not in it, and the next customers would be given the same. " +
    (isApplied ? "" : "Start the deposit watcher and look again, before you apply this. ") +
    'Where its home is new, or was lost: causeway recover --declare "<reason>", with --last-address-index ' +
    "of your own records"
  );
}
