/**
 * What is staged: one file for each planned upgrade in `<home>/upgrades`, named after the plan. It is changed
 * under a lock and replaced whole.
 */
import { readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { awaitLockFile, LockHeldError } from "../../runtime/files/lock-file.js";
import { syncFolder } from "../../runtime/files/folder.js";
import { limitedSignal } from "../../runtime/process/task.js";
import { cannotWrite, CliError, systemCode } from "../errors.js";
import { createSecretFolder, inHome } from "../home/home.js";
import { PLAIN_MODE, readTextIfPresent, replaceFile } from "../home/home-file.js";
import { KNOWN_UPGRADE } from "./release.js";

/** A record is written in a moment. */
const LOCK_PATIENCE_MS = 5_000;

const SUFFIX = ".json";

/** Further fields are those of later releases: who reads an older one's record knows this much. */
const recordSchema = z.object({
  /** Name of the plan. */
  name: z.string().min(1),
  /** Folder of the release, absolute. */
  release: z.string().startsWith("/"),
  /** Its version and the upgrades that it knows, as it told them. */
  version: z.string(),
  upgrades: z.array(KNOWN_UPGRADE).readonly(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /**
   * `staged`: it goes on at the plan's height. `switched`: a program without the upgrade has met the plan,
   * and whoever starts such a program from now on gets this release at once.
   */
  state: z.enum(["staged", "switched"]),
  /** Height of the plan that was met; of `switched` only. */
  height: z.number().int().positive().optional(),
});

/** A release that is to go on where this program does not know the upgrade. */
export type StagedUpgrade = Readonly<z.infer<typeof recordSchema>>;

/** A record, or why it cannot be read. */
export interface FoundRecord {
  readonly file: string;
  readonly record: StagedUpgrade | undefined;
}

/** File of a plan: names are of any characters. */
export function recordFile(home: string, name: string): string {
  // Files that begin with a dot are drafts.
  const word = encodeURIComponent(name).replace(/^\./, "%2E");
  return join(home, "upgrades", `${word}${SUFFIX}`);
}

/**
 * The record of a plan; undefined where nothing is staged.
 * @throws HOME_UNUSABLE for a file that cannot be read or understood
 */
export async function readRecord(home: string, name: string): Promise<StagedUpgrade | undefined> {
  const file = recordFile(home, name);
  const text = await inHome(file, () => readTextIfPresent(file));
  if (text === undefined) return undefined;
  const record = parseRecord(text);
  // On a file system that takes capitals for small letters it may be another plan's.
  if (record?.name === name) return record;
  throw new CliError(
    "HOME_UNUSABLE",
    `${file} is no record of a release staged for ${JSON.stringify(name)}: move it aside and stage it again.`,
  );
}

/**
 * All records of a home by their files' names, also those that cannot be understood.
 * @throws HOME_UNUSABLE where their folder cannot be read
 */
export async function readRecords(home: string): Promise<readonly FoundRecord[]> {
  const folder = dirname(recordFile(home, ""));
  return inHome(folder, async () => {
    const names = await readdir(folder).catch((error: unknown) => {
      if (systemCode(error) === "ENOENT") return [];
      throw error;
    });
    const files = names.filter((name) => name.endsWith(SUFFIX) && !name.startsWith("."));
    return Promise.all(
      files.toSorted().map(async (name) => {
        const file = join(folder, name);
        // One that is taken back in this moment is none; what is no readable file keeps nobody from starting.
        const text = await readTextIfPresent(file).catch(() => "");
        if (text === undefined) return [];
        const record = parseRecord(text);
        const isOwn = record !== undefined && recordFile(home, record.name) === file;
        return [{ file, record: isOwn ? record : undefined }];
      }),
    ).then((found) => found.flat());
  });
}

/**
 * Changes the record of a plan, durably; nobody else does meanwhile.
 * @param change what it shall be, by what it is; `undefined`: gone, the same object: as it is
 * @returns what it is now
 * @throws what `change` throws; HOME_UNUSABLE; HOME_LOCKED where another command does not come to its end
 */
export async function changeRecord(
  place: { readonly home: string; readonly name: string; readonly signal: AbortSignal },
  change: (present: StagedUpgrade | undefined) => StagedUpgrade | undefined,
): Promise<StagedUpgrade | undefined> {
  const { home, name, signal } = place;
  const file = recordFile(home, name);
  await createSecretFolder(dirname(file));
  const lock = await lockRecords(dirname(file), signal);
  try {
    const present = await readRecord(home, name);
    const next = change(present);
    if (next === present) return present;
    if (next === undefined) await removeRecord(file);
    else await replaceFile(file, `${JSON.stringify({ schemaVersion: 1, ...next })}\n`, PLAIN_MODE);
    return next;
  } finally {
    await lock.release();
  }
}

async function lockRecords(folder: string, signal: AbortSignal) {
  const file = join(folder, "records.lock");
  const patience = limitedSignal([], LOCK_PATIENCE_MS);
  try {
    return await awaitLockFile(file, { patience, signal });
  } catch (cause) {
    signal.throwIfAborted();
    if (!(cause instanceof LockHeldError)) throw cannotWrite(file, cause);
    const message = `Another command holds ${file}; try again.`;
    throw new CliError("HOME_LOCKED", message, { cause, retriable: true });
  }
}

function removeRecord(file: string): Promise<void> {
  return inHome(file, async () => {
    await rm(file, { force: true });
    await syncFolder(dirname(file));
  });
}

function parseRecord(text: string): StagedUpgrade | undefined {
  try {
    return recordSchema.parse(JSON.parse(text));
  } catch {
    return undefined; // Somebody else's file, which the caller names.
  }
}
