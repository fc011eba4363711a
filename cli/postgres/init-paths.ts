/** Folders that PostgreSQL's initdb cannot be run from: told before anything is made, in words for people. */
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { accountFor } from "./account.js";
import { findPrograms } from "./binaries.js";
import { EmbeddedPostgresError } from "./errors.js";

/** initdb runs its neighbours through a shell, between double quotes, and escapes nothing. */
const REFUSED = /["$`\r\n]/;

/**
 * @param folder the one with the server's programs
 * @throws BINARIES_UNUSABLE for a path that initdb fails on in words of its own
 */
export function assertInitRunsIn(folder: string): void {
  if (!REFUSED.test(folder)) return;
  const shown = folder.replaceAll("\n", "\\n").replaceAll("\r", "\\r");
  throw new EmbeddedPostgresError(
    "BINARIES_UNUSABLE",
    `PostgreSQL's programs cannot make a database from ${shown}: move the clone to a folder whose ` +
      'path has no ", no $, no ` and no line break, or set DATABASE_URL to a PostgreSQL of your own',
    { details: { folder } },
  );
}

/**
 * The same for a home before its first start; one that has a database needs no initdb any more.
 * @throws BINARIES_UNUSABLE, UNSUPPORTED_PLATFORM
 */
export function assertClusterCanBeMade(home: string): void {
  const data = join(home, "data");
  if (lstatSync(join(data, "postgres"), { throwIfNoEntry: false }) !== undefined) return;
  const { folder } = findPrograms({ account: accountFor(undefined), copyFolder: data });
  assertInitRunsIn(folder);
}
