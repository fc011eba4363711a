/**
 * Where tests put their files: in memory where the system has room there, because thousands of small
 * databases and stores are made and thrown away, and most time would go to a disk that nobody reads
 * afterwards. Elsewhere it is a folder of the usual place. What a killed run left is removed.
 */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { freemem, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { isAlive } from "../setup/lock.mjs";
import { SetupError } from "../setup/setup-error.mjs";

/** A file system in memory, on Linux. */
const MEMORY_FOLDER = "/dev/shm";

/** Where everybody may go. */
const OPEN_FOLDER = "/tmp";

/** `f_type` of tmpfs (statfs(2)). */
const TMPFS_MAGIC = 0x01021994;

/** A run of all tests held 300 MiB of files at most, and its processes 5 GiB of memory. */
const ROOM_BYTES = 2 ** 30;
const FREE_MEMORY_BYTES = 8 * 2 ** 30;

/**
 * Folder for temporary files: the system's. Root's is another one where that is closed to the account of its
 * PostgreSQL, whose databases would lie in a folder of the system then, and stay.
 * @param {{say: (text: string) => void}} options
 * @returns {string}
 * @throws {SetupError} where no files can be made there
 */
export function temporaryFolder({ say }) {
  const usual = tmpdir();
  try {
    rmSync(mkdtempSync(join(usual, "causeway-probe-")), { recursive: true });
  } catch (error) {
    throw new SetupError(
      `no temporary files can be made in ${usual} (${error.code}): make that folder usable, or name ` +
        "another one by TMPDIR",
    );
  }
  if (process.getuid?.() !== 0 || isOpen(realpathSync(usual))) return usual;
  say(
    `${usual} lets no other user in, and PostgreSQL is one for root: files lie in ${OPEN_FOLDER}`,
  );
  return OPEN_FOLDER;
}

/** Whether everybody may go there: `canEnter` of `runtime/files/permissions.ts`, before that is built. */
function isOpen(folder) {
  const parent = dirname(folder);
  return (statSync(folder).mode & 0o001) !== 0 && (parent === folder || isOpen(parent));
}

/**
 * Makes the folder of a run of the tests.
 * @param {{say: (text: string) => void}} options
 * @returns {{path: string, isInMemory: boolean, remove: () => void}}
 * @throws {SetupError}
 */
export function openTestFolder({ say }) {
  const isInMemory = process.env.TMPDIR === undefined && hasRoomInMemory();
  const parent = isInMemory ? MEMORY_FOLDER : temporaryFolder({ say });
  removeLeftovers(parent);
  const path = mkdtempSync(join(parent, `causeway-tests-${process.pid}-`));
  // A database server of the tests runs under another account where they run as root.
  chmodSync(path, 0o711);
  return { path, isInMemory, remove: () => rmSync(path, { recursive: true, force: true }) };
}

function hasRoomInMemory() {
  try {
    const { type, bavail, bsize } = statfsSync(MEMORY_FOLDER);
    const hasRoom = bavail * bsize >= ROOM_BYTES && freemem() >= FREE_MEMORY_BYTES;
    return type === TMPFS_MAGIC && hasRoom && canRunPrograms();
  } catch {
    return false; // No such folder, or not ours to write.
  }
}

/** Containers often mount it without the right to run what lies there; some tests write programs. */
function canRunPrograms() {
  const folder = mkdtempSync(join(MEMORY_FOLDER, "causeway-probe-"));
  try {
    const program = join(folder, "program.sh");
    writeFileSync(program, "#!/bin/sh\nexit 0\n", { mode: 0o755 });
    return spawnSync(program, { stdio: "ignore" }).status === 0;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Removes the folders of runs that were killed. */
function removeLeftovers(parent) {
  for (const name of readdirSync(parent)) {
    const pid = /^causeway-tests-([0-9]+)-/.exec(name)?.[1];
    if (pid === undefined || isAlive(Number(pid))) continue;
    try {
      rmSync(join(parent, name), { recursive: true, force: true });
    } catch {
      // Another account's: its own next run removes it.
    }
  }
}
