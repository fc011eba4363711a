/**
 * An installed and built release in a folder: which upgrades it knows, by its own word, and a digest of what
 * of it runs. It is started by the file that was looked at: `bin/causeway.mjs` would install and build first
 * where the sources have changed, and so run what nobody has looked at.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile, realpath } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { escapeUnshowable } from "../../chain/evm/foreign-text.js";
import type { KnownUpgrade } from "../../node/settings/app-version.js";
import type { Environment } from "../../runtime/config/config.js";
import type { Owner } from "../../runtime/files/owner.js";
import { canEnter, canRead } from "../../runtime/files/permissions.js";
import { CliError, systemCode } from "../errors.js";
import { nodeFault } from "./node-range.js";

/** A release as it was found. */
export interface Release {
  /** Absolute, without links: what a link names may change. */
  readonly folder: string;
  /** Of the release, as its package names it. */
  readonly version: string;
  readonly upgrades: readonly KnownUpgrade[];
  /** See `digestOf`. */
  readonly sha256: string;
}

/** A start of the command takes half a second. */
const ANSWER_TIMEOUT_MS = 60_000;

/** Most that the answer may have: a few hundred upgrades. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** Files that are read at once. */
const READ_TOGETHER = 32;

/** Beside the program in its folder: which build it is of this machine, nothing that runs. */
const NOT_COUNTED = /(^|\/)(\.look(\.[0-9]+)?|\.whole)$/;

/** Form of an upgrade's name and version, in this answer and in records. */
export const KNOWN_UPGRADE = z.object({
  name: z.string().min(1),
  appVersion: z.number().int().positive(),
});

const knownAnswer = z.object({
  release: z.string().min(1),
  upgrades: z.array(KNOWN_UPGRADE),
});

const manifestSchema = z.object({
  name: z.literal("causeway"),
  engines: z.object({ node: z.string().optional() }).optional(),
});

/** The script of a release that Node runs. */
export function programOf(folder: string): string {
  return join(folder, "dist", "cli", "main.js");
}

/**
 * Looks at the release in a folder.
 * @throws RELEASE_UNFIT where there is none, it is not installed and built, or it cannot tell which upgrades
 * it knows; the signal's reason
 */
export async function readRelease(
  given: string,
  { env, signal }: { readonly env: Environment; readonly signal: AbortSignal },
): Promise<Release> {
  const folder = await realpath(resolve(given)).catch((cause: unknown) => {
    throw unfit(`There is no folder ${given}`, cause);
  });
  await assertRelease(folder);
  const sha256 = await digestOf(folder, signal);
  const { release: version, upgrades } = await askKnown(folder, env, signal);
  return { folder, version, upgrades, sha256 };
}

/**
 * SHA-256 over the lines `SHA-256 of the file, two spaces, path` of all files below `dist`, sorted by path:
 * what `sha256sum` prints. Clones of the same release with packages of their own have the same, wherever they
 * lie.
 * @throws RELEASE_UNFIT where it cannot be read, or has links: what they name is not looked at; the signal's
 * reason
 */
export async function digestOf(folder: string, signal: AbortSignal): Promise<string> {
  const dist = join(folder, "dist");
  const paths = (await filesBelow(dist, "")).filter((path) => !NOT_COUNTED.test(path)).toSorted();
  const whole = createHash("sha256");
  for (let at = 0; at < paths.length; at += READ_TOGETHER) {
    signal.throwIfAborted();
    const lines = paths.slice(at, at + READ_TOGETHER).map(async (path) => {
      const content = await readFile(join(dist, path)).catch((cause: unknown) => {
        throw unfit(`${join(dist, path)} cannot be read (${systemCode(cause)})`, cause);
      });
      return `${createHash("sha256").update(content).digest("hex")}  ${path}\n`;
    });
    for (const line of await Promise.all(lines)) whole.update(line);
  }
  return whole.digest("hex");
}

async function filesBelow(folder: string, prefix: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((cause: unknown) => {
    throw unfit(`${folder} cannot be read (${systemCode(cause)})`, cause);
  });
  const found = entries.map(async (entry): Promise<readonly string[]> => {
    const path = `${prefix}${entry.name}`;
    if (entry.isFile()) return [path];
    if (entry.isDirectory()) return filesBelow(join(folder, entry.name), `${path}/`);
    throw unfit(`${join(folder, entry.name)} is neither a file nor a folder`);
  });
  return (await Promise.all(found)).flat();
}

/**
 * Why a version of Node will not do for the release in a folder, behind its name; undefined where it will.
 * @throws RELEASE_UNFIT where there is no release
 */
export async function releaseNodeFault(
  folder: string,
  version: string,
): Promise<string | undefined> {
  try {
    const text = await readFile(join(folder, "package.json"), "utf8");
    const { engines } = manifestSchema.parse(JSON.parse(text));
    return engines?.node === undefined ? undefined : nodeFault(engines.node, version);
  } catch (cause) {
    throw unfit(`${folder} is no clone of Causeway`, cause);
  }
}

/** True when the user may read what of the release in a folder is run, its packages among it. */
export function isOpenTo(folder: string, user: Owner): boolean {
  const needed = ["package.json", "dist", "node_modules"];
  return canEnter(folder, user) && needed.every((name) => canRead(join(folder, name), user));
}

async function assertRelease(folder: string): Promise<void> {
  const fault = await releaseNodeFault(folder, process.versions.node);
  if (fault !== undefined) throw unfit(`The release in ${folder} ${fault}`);
  const needed = [
    programOf(folder),
    join(folder, "dist", ".stamp"),
    join(folder, "node_modules", ".package-lock.json"),
  ];
  const missing = needed.find((file) => !existsSync(file));
  if (missing === undefined) return;
  throw unfit(
    `The release in ${folder} is not installed and built (${missing} is missing): ` +
      "type `npm run build` there",
  );
}

async function askKnown(folder: string, env: Environment, signal: AbortSignal) {
  const words = [programOf(folder), "upgrade", "known", "--json"];
  try {
    const { stdout } = await promisify(execFile)(process.execPath, words, {
      env,
      signal,
      timeout: ANSWER_TIMEOUT_MS,
      killSignal: "SIGKILL",
      maxBuffer: MAX_ANSWER_BYTES,
    });
    return knownAnswer.parse(JSON.parse(stdout));
  } catch (cause) {
    signal.throwIfAborted();
    const said: unknown = Reflect.get(Object(cause), "stderr");
    const [first = ""] = (typeof said === "string" ? said : "").trim().split("\n", 1);
    const why = first === "" ? "" : ` (${escapeUnshowable(first, "one")})`;
    throw unfit(
      `The release in ${folder} does not tell which upgrades it knows${why}: it is older than ` +
        "`causeway upgrade`, or does not run here, and is started by hand",
      cause,
    );
  }
}

function unfit(message: string, cause?: unknown): CliError {
  return new CliError("RELEASE_UNFIT", `${message}.`, cause === undefined ? {} : { cause });
}
