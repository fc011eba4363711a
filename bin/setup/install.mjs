/** Installs what package-lock.json wants; a complete node_modules is used without any network. */
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runChild } from "./child.mjs";
import { withLock } from "./lock.mjs";
import { SetupError } from "./setup-error.mjs";
import { withSignsOfLife } from "./signs-of-life.mjs";

const ROOT = fileURLToPath(new URL("../../", import.meta.url)).replace(/[/\\]$/, "");

const FOLDER = join(ROOT, "node_modules");
const LOCK = join(ROOT, ".cache", "setup.lock");

/** Where packages are installed while others are in place; on their file system, for the renames. */
const DRAFT = join(ROOT, ".cache", "install");

/** The packages of before, between the two renames that put others in their place. */
const FORMER = join(ROOT, ".cache", "node_modules.former");

/** Which optional packages npm went without, for which lock file and when. */
const WENT_WITHOUT = join(ROOT, ".cache", "went-without.json");

/** For so long they are not asked for again: each time is a whole install, and some registries lack them. */
const RETRY_AFTER_MS = 3_600_000;

/** Lines of npm's output that are kept for the report of a failure. */
const TAIL_LINES = 5;

/** Whatever a user's settings leave out (`omit=optional`): programs of this machine are optional packages. */
const INCLUDED = ["--include=optional"];
const DEV = ["--include=dev"];

/** npm's error codes in words; the first that occurs in its output is shown. */
const CAUSES = [
  [/ENOSPC/, "there is no space left on the device"],
  [/EROFS/, "the folder is on a read-only file system"],
  [/EACCES|EPERM/, "npm may not write there (permission denied)"],
  [
    /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|ECONNRESET|network/,
    "the npm registry cannot be reached",
  ],
  [/E401|E403/, "the npm registry refuses access"],
  [/E404/, "the npm registry does not have a package"],
  [/EINTEGRITY/, "a downloaded package does not match package-lock.json"],
  [/EUSAGE/, "package.json and package-lock.json do not fit together"],
  [/EBADENGINE/, "this version of Node does not fit"],
];

/**
 * What is missing or different in node_modules, as package paths; empty when it is complete. Optional packages
 * of other platforms may be missing, those that npm went without lately, and dev packages unless they are
 * wanted.
 * @param {{isDevWanted: boolean}} options
 * @returns {string[]}
 */
export function missingPackages({ isDevWanted }) {
  const missing = allMissing(ROOT, isDevWanted);
  if (missing.length === 0) return missing;
  const forgone = readForgone();
  return missing.filter((path) => !forgone.has(path));
}

function allMissing(root, isDevWanted) {
  const wanted = readPackages(join(root, "package-lock.json"));
  if (wanted === undefined) {
    throw new SetupError(`${join(root, "package-lock.json")} is missing or unreadable`);
  }
  const present = readInstalled(root) ?? {};
  const asked = askedByOthers(wanted, present);
  return (
    Object.entries(wanted)
      .filter(([path]) => path.startsWith("node_modules/"))
      // npm marks leftovers of an edit of package.json as extraneous and does not install them.
      .filter(([, entry]) => entry.extraneous !== true && (isDevWanted || !isDev(entry, wanted)))
      .filter(([path, entry]) =>
        present[path] === undefined
          ? !mayBeMissing(path, entry, asked)
          : !isInstalled(root, path, entry, present[path]),
      )
      .map(([path]) => path)
  );
}

/**
 * Installs with `npm ci` unless everything is there. Where packages of another release are in place, they
 * stay until all of this one are there: a kit may run from them.
 * @param {{isDevWanted: boolean, say: (text: string) => void}} options
 * @throws {SetupError}
 */
export async function install({ isDevWanted, say }) {
  if (missingPackages({ isDevWanted }).length === 0 && !existsSync(FORMER)) {
    return;
  }
  await withLock(LOCK, { say }, async () => {
    putBack();
    const missing = missingPackages({ isDevWanted });
    if (missing.length > 0) {
      assertOwnFolder(missing.length);
      say(
        `installing packages with npm ci (${missing.length} missing); this takes a minute or two`,
      );
      const isThere = readInstalled(ROOT) !== undefined;
      if (isThere && missing.every(isOptional)) {
        await askAgain(isDevWanted, say);
      } else if (!isThere || !(await installBeside(isDevWanted, say))) {
        // npm ci begins by emptying node_modules.
        await runNpm(ROOT, isDevWanted, say);
      }
      noteForgone(assertComplete(ROOT, isDevWanted), say);
    }
  });
}

/** Of what has run without them so far: a machine without a network goes on as it is. */
async function askAgain(isDevWanted, say) {
  try {
    await installBeside(isDevWanted, say);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(error.message.split("\n", 1)[0]);
  }
}

/**
 * Whether node_modules is as an install has left it, of whichever release.
 * @param {{say: (text: string) => void}} output
 */
export async function hasWholePackages({ say }) {
  if (isWhole()) return true;
  if (!existsSync(FORMER)) return false;
  await withLock(LOCK, { say }, async () => putBack());
  return isWhole();
}

function isWhole() {
  const present = readInstalled(ROOT);
  if (present === undefined) return false;
  return Object.entries(present)
    .filter(([path]) => path.startsWith("node_modules/"))
    .every(([path, entry]) => isInstalled(ROOT, path, entry, entry));
}

/**
 * A crash at any place leaves the packages of before, or all of the new ones, once `putBack` has run.
 * @returns false where the folder cannot be moved, as a volume or one of an image's layers
 */
async function installBeside(isDevWanted, say) {
  rmSync(DRAFT, { recursive: true, force: true });
  mkdirSync(DRAFT, { recursive: true });
  try {
    copyManifests();
    await runNpm(DRAFT, isDevWanted, say);
    assertComplete(DRAFT, isDevWanted);
    try {
      renameSync(FOLDER, FORMER);
    } catch (error) {
      say(`${FOLDER} cannot be replaced as a whole (${error.code}): npm ci empties it first`);
      return false;
    }
    renameSync(join(DRAFT, "node_modules"), FOLDER);
    return true;
  } finally {
    putBack();
    rmSync(DRAFT, { recursive: true, force: true });
  }
}

/** What npm ci reads: the clone's manifests, and those of its own packages, which are linked. */
function copyManifests() {
  const own = Object.keys(readPackages(join(ROOT, "package-lock.json")) ?? {})
    .filter((path) => path !== "" && !path.includes("node_modules/"))
    .map((path) => join(path, "package.json"));
  for (const path of ["package.json", "package-lock.json", ".npmrc", ...own]) {
    if (existsSync(join(ROOT, path))) cpSync(join(ROOT, path), join(DRAFT, path));
  }
}

/** Ends a swap of packages, whether it was done or cut off between its renames. Call it with the lock held. */
function putBack() {
  if (!existsSync(FORMER)) return;
  if (readInstalled(ROOT) !== undefined) {
    rmSync(FORMER, { recursive: true, force: true });
    return;
  }
  // What a tool has made there meanwhile is no install.
  rmSync(FOLDER, { recursive: true, force: true });
  renameSync(FORMER, FOLDER);
}

/** @returns optional packages of this machine that npm could not have, and is content without */
function assertComplete(root, isDevWanted) {
  const still = allMissing(root, isDevWanted);
  const needed = still.filter((path) => !isOptional(path));
  if (needed.length === 0) return still;
  throw new SetupError(`npm ci ended, but packages are missing: ${needed.slice(0, 5).join(", ")}`);
}

function isOptional(path) {
  return (readPackages(join(ROOT, "package-lock.json")) ?? {})[path]?.optional === true;
}

/** Who needs one of them says so; they are asked for again by the first command behind an hour. */
function noteForgone(paths, say) {
  rmSync(WENT_WITHOUT, { force: true });
  if (paths.length === 0) return;
  writeFileSync(WENT_WITHOUT, JSON.stringify({ lock: lockHash(), atMs: Date.now(), paths }));
  const names = paths.map(nameOf).join(", ");
  say(`npm went without what it calls optional: ${names}. It is tried again in an hour`);
}

function readForgone() {
  try {
    const { lock, atMs, paths } = JSON.parse(readFileSync(WENT_WITHOUT, "utf8"));
    const isNew = Math.abs(Date.now() - atMs) < RETRY_AFTER_MS && lock === lockHash();
    return new Set(isNew ? paths : []);
  } catch {
    return new Set();
  }
}

function lockHash() {
  return createHash("sha256")
    .update(readFileSync(join(ROOT, "package-lock.json")))
    .digest("hex");
}

/** What a link points to is another clone's: npm ci begins by emptying it. */
function assertOwnFolder(missingCount) {
  if (lstatSync(FOLDER, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return;
  const packages = missingCount === 1 ? "1 package is" : `${missingCount} packages are`;
  throw new SetupError(
    `${FOLDER} is a symbolic link to ${readlinkSync(FOLDER)}, where ${packages} missing or of another ` +
      "version, and npm ci would empty that folder: remove the link, or bring that folder up to date",
  );
}

/** True for what only development needs; a linked folder says so where it lies, not at its link. */
function isDev(entry, wanted) {
  return entry.dev === true || (entry.link === true && wanted[entry.resolved]?.dev === true);
}

/** True when a package that npm has put there is of the wanted version, and still there. */
function isInstalled(root, path, entry, installed) {
  const isSame = installed.version === entry.version && installed.integrity === entry.integrity;
  return isSame && (entry.link === true || existsSync(join(root, path, "package.json")));
}

/**
 * npm ends with 0 also where an optional package could not be had. One that says for which machines it is
 * holds programs or native code, without which who asks for it does not run, or slower: it may be missing
 * on others alone, or where nobody is there who asks for it.
 */
function mayBeMissing(path, entry, asked) {
  if (entry.optional !== true) return entry.devOptional === true;
  const isForSome = entry.os !== undefined || entry.cpu !== undefined;
  return !isForSome || !asked.has(nameOf(path)) || !fitsMachine(entry);
}

/** Names that the clone itself and the packages that are there ask for, where they can be had. */
function askedByOthers(wanted, present) {
  const there = Object.entries(wanted).filter(
    ([path]) => !path.startsWith("node_modules/") || present[path] !== undefined,
  );
  return new Set(there.flatMap(([, entry]) => Object.keys(entry.optionalDependencies ?? {})));
}

function nameOf(path) {
  return path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
}

/** By npm's own rules; where the C library cannot be told, no package of one fits. */
function fitsMachine({ os, cpu, libc }) {
  return (
    isListed(process.platform, os) &&
    isListed(process.arch, cpu) &&
    (libc === undefined || isListed(libraryOfC(), libc))
  );
}

/** A list names what fits, or with "!" what does not. */
function isListed(value, list = []) {
  const names = [list].flat();
  const fitting = names.filter((name) => !name.startsWith("!"));
  if (names.includes(`!${value}`)) return false;
  return fitting.length === 0 || fitting.includes("any") || fitting.includes(value);
}

/**
 * "glibc" or "musl" where the two ways in which releases of npm find it agree; else undefined.
 */
function libraryOfC() {
  const { report } = process;
  const { excludeNetwork } = report;
  // Else the names of this machine's connections are asked for, which takes seconds on some.
  report.excludeNetwork = true;
  const { header, sharedObjects = [] } = report.getReport();
  report.excludeNetwork = excludeNetwork;
  const isMusl = sharedObjects.some((file) => /libc\.musl-|ld-musl-/.test(file));
  const ofNode = header.glibcVersionRuntime !== undefined ? "glibc" : isMusl ? "musl" : undefined;
  return [ofNode, "unknown"].includes(libraryOfLdd()) ? ofNode : undefined;
}

function libraryOfLdd() {
  try {
    const text = readFileSync("/usr/bin/ldd", "latin1");
    return text.includes("musl") ? "musl" : text.includes("GNU C Library") ? "glibc" : undefined;
  } catch {
    return "unknown";
  }
}

function readPackages(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8")).packages;
  } catch {
    return undefined;
  }
}

/** What npm has written when an install was complete; undefined where none was. */
function readInstalled(root) {
  return readPackages(join(root, "node_modules", ".package-lock.json"));
}

async function runNpm(root, isDevWanted, say) {
  const { command, args } = npmCommand();
  const tail = [];
  const record = (text) => {
    tail.push(...text.split("\n").filter((line) => line.trim() !== ""));
    tail.splice(0, Math.max(0, tail.length - 200));
  };
  const child = {
    what: "npm ci",
    command,
    args: [...args, "ci", "--no-audit", "--no-fund", ...INCLUDED, ...(isDevWanted ? DEV : [])],
    cwd: root,
    recordPath: join(ROOT, ".cache", "setup-child.json"),
    onOutput: record,
  };
  const words = (seconds) =>
    `still installing after ${seconds} s: ${countInstalled(root)} packages are in place`;
  try {
    const code = await withSignsOfLife(say, words, () => runChild(child));
    if (code !== 0) throw npmError(root, code, tail);
  } catch (error) {
    if (error.syscall?.startsWith("spawn") !== true) throw error;
    throw new SetupError(`npm cannot be started (${error.code}); is it installed?`);
  }
}

/** The npm that runs this script, else the one beside node, else the one in PATH. */
function npmCommand() {
  const running = process.env.npm_execpath ?? "";
  if (/npm-cli\.[cm]?js$/.test(running) && existsSync(running)) {
    return { command: process.execPath, args: [running] };
  }
  const beside = join(dirname(process.execPath), "npm");
  return { command: existsSync(beside) ? beside : "npm", args: [] };
}

function npmError(root, code, tail) {
  const errors = tail.filter((line) => /^npm error(?! +at )/.test(line));
  const text = (errors.length > 0 ? errors : tail).join("\n");
  const cause = CAUSES.find(([pattern]) => pattern.test(text))?.[1] ?? `exit code ${code}`;
  const shown = (errors.length > 0 ? errors : tail).slice(0, TAIL_LINES).join("\n");
  const kept =
    root === ROOT
      ? ""
      : " The packages that were in place still are. Where there is no room for both, end what runs from " +
        "here, and delete node_modules.";
  return new SetupError(`npm ci failed in ${root}: ${cause}.${kept}\n${shown}`);
}

/** Packages whose files have arrived. */
function countInstalled(root) {
  const wanted = readPackages(join(root, "package-lock.json")) ?? {};
  return Object.keys(wanted).filter(
    (path) => path !== "" && existsSync(join(root, path, "package.json")),
  ).length;
}
