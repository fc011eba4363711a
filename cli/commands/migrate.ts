/** `causeway migrate`: the ledger's tables at this version. */
import { type CommandContext, printJson } from "../command-context.js";
import { grantIndexerRole, grantLedgerRoles, refuseFormerRoles } from "../../ledger/roles.js";
import { readRolePasswords } from "../home/role-homes.js";
import { type OpenedLedger, withLedger } from "../ledger/ledger-tools.js";

/**
 * Brings the tables up to date; safe to run again. A ledger belongs to one chain: an empty one waits for
 * the node, any other knows it.
 * @returns 0
 */
export async function runMigrate(context: CommandContext): Promise<number> {
  const passwords = readRolePasswords(context.home);
  const grant = async ({ database }: OpenedLedger): Promise<void> => {
    if (passwords === undefined) return;
    await grantLedgerRoles(database, passwords);
    // Homes of before the indexer have no password for it, until `init` writes them again.
    if (passwords.indexer !== undefined) await grantIndexerRole(database, passwords.indexer);
    await refuseFormerRoles(database);
  };
  await withLedger(context, grant, { olderTables: "migrate", mayLackNode: true });
  const hasRoles = passwords !== undefined;
  if (context.json) printJson(context, { migrated: true, roles: hasRoles });
  else {
    const roles = hasRoles ? ", and the services' roles have their rights" : "";
    context.print(`The ledger's tables are up to date${roles}.`);
  }
  return 0;
}
