/** Where PostgreSQL's initdb cannot be run: told before anything is made, in words for people. */
import { closeSync, existsSync, lstatSync, openSync, readSync } from "node:fs";
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

/** What loads a program, as it says itself at its beginning: that of its C library, or of a script. */
const LOADERS = [/^#! *([^ \n]+)/, /\0(\/[^\0]*\/ld[^/\0]*\.so\.\d+)\0/];

/** Where the beginning of a program ends that names its loader. */
const BEGINNING_BYTES = 4_096;

/**
 * @throws BINARIES_UNUSABLE on a system without the C library of the programs, which says of them that they
 * do not exist
 */
export function assertLoadable(initdb: string): void {
  const loader = loaderOf(initdb);
  if (loader === undefined || existsSync(loader)) return;
  throw new EmbeddedPostgresError(
    "BINARIES_UNUSABLE",
    `this system has no glibc (${loader}), which PostgreSQL's programs need: use a Debian-like system, or ` +
      "set DATABASE_URL to a PostgreSQL of your own",
    { details: { initdb, loader } },
  );
}

/** Undefined where it cannot be told: initdb's own fault is told then. */
function loaderOf(program: string): string | undefined {
  const beginning = Buffer.alloc(BEGINNING_BYTES);
  try {
    const file = openSync(program, "r");
    try {
      readSync(file, beginning);
    } finally {
      closeSync(file);
    }
  } catch {
    return undefined;
  }
  const text = beginning.toString("latin1");
  return LOADERS.map((pattern) => pattern.exec(text)?.[1]).find((found) => found !== undefined);
}

/**
 * The same for a home before its first start; one that has a database needs no initdb any more.
 * @throws BINARIES_UNUSABLE, UNSUPPORTED_PLATFORM
 */
export function assertClusterCanBeMade(home: string): void {
  const data = join(home, "data");
  if (lstatSync(join(data, "postgres"), { throwIfNoEntry: false }) !== undefined) return;
  const account = accountFor(undefined);
  const { folder, installed } = findPrograms({ account, copyFolder: data });
  assertInitRunsIn(folder);
  assertLoadable(join(installed.native, "bin", "initdb"));
}
