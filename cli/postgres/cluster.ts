/** The database folder: where it lies, how it is made whole or not at all, its password. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { AppError, errorCode } from "../../chain/errors.js";
import { readSecretFile, writeNewSecretFile } from "../../runtime/config/secret-file.js";
import {
  EMBEDDED_POSTGRES_DATABASE,
  postgresPasswordPath,
} from "../../runtime/config/service-urls.js";
import { SECRET_MODE } from "../../runtime/files/durable-file.js";
import { syncFolderSync } from "../../runtime/files/folder.js";
import { canEnter } from "../../runtime/files/permissions.js";
import { retry } from "../../runtime/process/task.js";
import { type PostgresAccount, accountFor, giveTree } from "./account.js";
import { openSharedFolder, type PostgresBinaries } from "./binaries.js";
import { claimCluster, sharedPlaceOf } from "./cluster-owner.js";
import { EmbeddedPostgresError, folderError, folderErrorFromOutput } from "./errors.js";
import { assertInitRunsIn, assertLoadable } from "./init-paths.js";

/** Where the cluster of a home is, or is going to be. */
export interface ClusterPlace {
  /** Real folder of the cluster, without links. */
  readonly folder: string;
  readonly isNew: boolean;
  /** `<home>/data/postgres`, when the cluster lies elsewhere and is linked from there. */
  readonly link: string | undefined;
  /** Account that the server runs as; undefined: as this process. */
  readonly account: PostgresAccount | undefined;
}

/** What works on a cluster needs. */
export interface ClusterContext {
  readonly place: ClusterPlace;
  readonly home: string;
  readonly binaries: PostgresBinaries;
  readonly signal: AbortSignal;
}

/** Longest that making a cluster may take; slow disks need some seconds. */
const INIT_TIMEOUT_MS = 120_000;

/** Some seconds: a program that writes into what is being removed fails at its next file. */
const REMOVAL_ATTEMPTS = 50;

/** Output of server programs kept for a fault's message. */
const MAX_OUTPUT_BYTES = 1_048_576;

/**
 * Finds the home's cluster or decides where it will be: `<home>/data/postgres`, or for root, where
 * the account `nobody` cannot enter the home, `/var/lib/causeway/<hash of home>`.
 * @throws CLUSTER_MISSING when the home links to a folder that is gone, FOLDER_UNUSABLE
 */
export function placeCluster(home: string, notice: (sentence: string) => void): ClusterPlace {
  const dataFolder = join(home, "data");
  const path = join(dataFolder, "postgres");
  try {
    // 711: the server's account must pass through, but nobody may list it.
    mkdirSync(dataFolder, { recursive: true, mode: 0o711 });
    const present = lstatSync(path, { throwIfNoEntry: false });
    if (present !== undefined) {
      return findCluster(path, present.isSymbolicLink());
    }
    const account = accountFor(undefined);
    if (account === undefined || canEnter(realpathSync(dataFolder), account)) {
      const folder = join(realpathSync(dataFolder), "postgres");
      return { folder, isNew: true, link: undefined, account };
    }
    return placeOutside(home, path, account, notice);
  } catch (error) {
    throw folderError(path, error);
  }
}

/**
 * Makes the cluster with role and database `causeway`, in a draft folder that is renamed when it is
 * complete: a start that was killed in between leaves nothing that would be taken for a cluster.
 * @throws BINARIES_UNUSABLE, FOLDER_UNUSABLE, START_FAILED
 */
export async function createCluster(options: ClusterContext): Promise<void> {
  const { place, binaries, signal } = options;
  assertInitRunsIn(dirname(binaries.initdb));
  assertLoadable(binaries.initdb);
  const password = ensurePassword(options.home);
  const draft = `${place.folder}.init-${process.pid}`;
  try {
    await removeDrafts(place.folder, signal);
    mkdirSync(draft, { mode: 0o700 });
    const passwordFile = join(draft, "password");
    writeFileSync(passwordFile, `${password}\n`, { mode: SECRET_MODE });
    if (place.account !== undefined) {
      giveTree(draft, place.account);
    }
    const cluster = join(draft, "cluster");
    await runProgram({
      path: binaries.initdb,
      args: [
        `--pgdata=${cluster}`,
        "--username=postgres",
        "--auth=scram-sha-256",
        `--pwfile=${passwordFile}`,
        "--encoding=UTF8",
        // PostgreSQL's own provider: the same order on every machine, no system locale needed.
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--locale=C",
      ],
      place,
      signal,
    });
    await runSingleUser(cluster, options, [
      `CREATE ROLE ${EMBEDDED_POSTGRES_DATABASE} LOGIN PASSWORD '${password}'`,
      `CREATE DATABASE ${EMBEDDED_POSTGRES_DATABASE} OWNER ${EMBEDDED_POSTGRES_DATABASE}`,
    ]);
    renameSync(cluster, place.folder);
    syncFolderSync(dirname(place.folder));
    if (place.link !== undefined) {
      symlinkSync(place.folder, place.link);
      await claimCluster(place.folder, options.home, place.link);
    }
  } catch (error) {
    throw error instanceof AppError ? error : folderError(place.folder, error);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/**
 * Prepares an existing cluster for a start: version, owner, and a password file that was lost is
 * replaced, with the role's password set anew.
 * @throws CLUSTER_VERSION, FOLDER_UNUSABLE, START_FAILED
 */
export async function checkCluster(options: ClusterContext): Promise<void> {
  const { place, binaries } = options;
  try {
    await removeDrafts(place.folder, options.signal);
    const found = readFileSync(join(place.folder, "PG_VERSION"), "utf8").trim();
    if (found !== String(binaries.majorVersion)) {
      throw new EmbeddedPostgresError(
        "CLUSTER_VERSION",
        `the database in ${place.folder} is of PostgreSQL ${found}, the programs are ` +
          `${binaries.majorVersion}: install the release it was made with and move it with a dump`,
        { details: { folder: place.folder, found } },
      );
    }
    if (place.account !== undefined) {
      // A home that was copied or restored by root belongs to root.
      giveTree(place.folder, place.account);
    }
    chmodSync(place.folder, 0o700);
  } catch (error) {
    throw folderError(place.folder, error);
  }
  const passwordPath = postgresPasswordPath(options.home);
  if (!hasPassword(passwordPath)) {
    const password = makePassword();
    await setPassword(options, password);
    // Behind it: a file that is there is taken for the role's own, also where this start was cut off.
    keepPassword(passwordPath, password);
  }
}

/**
 * Gives the role of a cluster whose server does not run the password that the home's file holds: a database
 * that was put back by itself has the one of its own time.
 * @throws START_FAILED, also for a file that holds no password of the kit's
 */
export async function takeFilePassword(options: ClusterContext): Promise<void> {
  await setPassword(options, readPassword(postgresPasswordPath(options.home)));
}

/** The password of the home, made on first use: 32 random bytes as hex, mode 600. */
function ensurePassword(home: string): string {
  const path = postgresPasswordPath(home);
  if (!hasPassword(path)) keepPassword(path, makePassword());
  return readPassword(path);
}

function readPassword(path: string): string {
  const password = readSecretFile(path);
  // It becomes part of an SQL text and of a URL.
  if (/^[0-9a-f]{64}$/.test(password)) return password;
  throw new EmbeddedPostgresError(
    "START_FAILED",
    `${path} must hold 64 hexadecimal digits: remove it, and the next start makes a new password`,
    { details: { path } },
  );
}

/** @param password hexadecimal digits alone */
async function setPassword(options: ClusterContext, password: string): Promise<void> {
  await runSingleUser(options.place.folder, options, [
    `ALTER ROLE ${EMBEDDED_POSTGRES_DATABASE} PASSWORD '${password}'`,
  ]);
}

function makePassword(): string {
  return randomBytes(32).toString("hex");
}

/** Whether the file is there. @throws START_FAILED for a link to nothing: no new file could take its name */
function hasPassword(path: string): boolean {
  if (existsSync(path)) return true;
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return false;
  throw new EmbeddedPostgresError(
    "START_FAILED",
    `${path} links to a file that is gone: bring that back, or remove the link, and a new password ` +
      "is made",
    { details: { path } },
  );
}

/** @throws START_FAILED where a file is there by now, which says another password */
function keepPassword(path: string, password: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  if (writeNewSecretFile(path, password)) return;
  throw new EmbeddedPostgresError(
    "START_FAILED",
    `somebody else wrote ${path} while it was made: remove it and start again`,
    { details: { path } },
  );
}

function findCluster(path: string, isLink: boolean): ClusterPlace {
  if (isLink && !existsSync(path)) {
    throw new EmbeddedPostgresError(
      "CLUSTER_MISSING",
      `${path} links to a database folder that is gone: restore it, or remove the link to start ` +
        "with an empty ledger",
      { details: { path } },
    );
  }
  const folder = realpathSync(path);
  const account = accountFor(folder);
  if (account !== undefined && !canEnter(dirname(folder), account)) {
    throw new EmbeddedPostgresError(
      "FOLDER_UNUSABLE",
      `the database folder ${folder} cannot be entered by the account it runs as (uid ` +
        `${account.uid}): give the folders above it the permission x`,
      { details: { folder, uid: account.uid } },
    );
  }
  return { folder, isNew: false, link: isLink ? path : undefined, account };
}

/** Root's place for the clusters of closed homes. */
function placeOutside(
  home: string,
  link: string,
  account: PostgresAccount,
  notice: (sentence: string) => void,
): ClusterPlace {
  let folder = sharedPlaceOf(home);
  openSharedFolder(account);
  if (existsSync(folder)) {
    // A home that once stood here was deleted, or moved aside and still links to it. Its database may
    // hold money, so it is kept, and where it is.
    notice(`The database of an earlier home at ${home} is kept in ${folder}.`);
    folder = `${folder}-${randomBytes(4).toString("hex")}`;
  }
  notice(`PostgreSQL may not enter ${home}, so its database lies in ${folder}.`);
  return { folder, isNew: true, link, account };
}

/**
 * Removes what starts that were killed left behind. Their program may still be at work in it, until it
 * finds its files gone.
 */
async function removeDrafts(folder: string, signal: AbortSignal): Promise<void> {
  const parent = dirname(folder);
  const prefix = `${basename(folder)}.init-`;
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(prefix)) continue;
    await retry(async () => rmSync(join(parent, name), { recursive: true, force: true }), {
      signal,
      attempts: REMOVAL_ATTEMPTS,
      minDelayMs: 100,
      maxDelayMs: 100,
      isRetriable: (error) => errorCode(error) === "ENOTEMPTY",
    });
  }
}

/** Runs statements without a server, one a line; secrets go through stdin only. */
async function runSingleUser(
  cluster: string,
  options: Pick<ClusterContext, "place" | "binaries" | "signal">,
  statements: readonly string[],
): Promise<void> {
  await runProgram({
    path: options.binaries.postgres,
    args: ["--single", "-D", cluster, "-c", "exit_on_error=on", "postgres"],
    input: `${statements.join(";\n")};\n`,
    place: options.place,
    signal: options.signal,
  });
}

/** Runs a server program to its end, which a stop brings about at once and waits for. */
async function runProgram(run: {
  readonly path: string;
  readonly args: readonly string[];
  readonly input?: string;
  readonly place: ClusterPlace;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { place, signal } = run;
  signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const child = execFile(
      run.path,
      [...run.args],
      {
        ...place.account,
        cwd: "/",
        env: { LC_ALL: "C", TZ: "UTC", PATH: "/usr/bin:/bin" },
        maxBuffer: MAX_OUTPUT_BYTES,
        timeout: INIT_TIMEOUT_MS,
        killSignal: "SIGKILL",
      },
      (error, stdout, stderr) => {
        signal.removeEventListener("abort", onAbort);
        if (error === null) {
          resolve();
        } else if (signal.aborted) {
          reject(signal.reason);
        } else {
          reject(programError(basename(run.path), place.folder, `${stdout}\n${stderr}`, error));
        }
      },
    );
    // With a signal of its own `execFile` would not wait until all that was started has let go of the folder.
    const onAbort = (): void => {
      child.kill("SIGKILL");
    };
    signal.addEventListener("abort", onAbort, { once: true });
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(run.input ?? "");
  });
}

function programError(
  program: string,
  folder: string,
  output: string,
  cause: unknown,
): EmbeddedPostgresError {
  const known = folderErrorFromOutput(folder, output);
  if (known !== undefined) {
    return known;
  }
  // As programs of containers often run: PostgreSQL asks the system for the name, and takes none else.
  const nameless = /could not look up effective user ID (\d+)/.exec(output)?.[1];
  if (nameless !== undefined) {
    return new EmbeddedPostgresError(
      "START_FAILED",
      `PostgreSQL makes no database for a user without a name, and /etc/passwd has none for the id ` +
        `${nameless}: add a line for it, start as another user, or set DATABASE_URL to a PostgreSQL of ` +
        "your own",
      { details: { folder, program }, cause },
    );
  }
  const lines = output.split("\n").map((text) => text.trim());
  const reason =
    lines.find((text) => /\b(error|FATAL|PANIC|could not)\b/.test(text)) ?? reasonOf(cause);
  return new EmbeddedPostgresError(
    "START_FAILED",
    `${program} could not prepare the database folder ${folder}: ${reason}`,
    { details: { folder, program }, cause },
  );
}

/** What the system says of a program that has said nothing itself: mostly that it was not even started. */
function reasonOf(cause: unknown): string {
  const code = errorCode(cause);
  if (code !== "UNKNOWN") return `it cannot be run (${code})`;
  const isOverdue = Reflect.get(Object(cause), "killed") === true;
  return isOverdue ? `it took longer than ${INIT_TIMEOUT_MS / 1_000} s` : "no reason given";
}
