/**
 * What every command needs first: a fitting Node that may open enough files, the packages, a build of the
 * present sources.
 */
import { readFileSync } from "node:fs";
import { PRODUCT, build, isBuilt } from "./compile.mjs";
import { install, missingPackages } from "./install.mjs";
import { SetupError } from "./setup-error.mjs";
import { runsAsBuilt } from "./standing.mjs";

/**
 * Lowest minor version of Node by major one, as in package.json's engines: 21 and the first ones of
 * 22 lack what 20.19 has.
 */
const LOWEST_MINORS = new Map([
  [20, 19],
  [22, 12],
]);

/** Node opens as many modules of a program at once as it finds, two hundred of the kit's. */
const LEAST_OPEN_FILES = 256;

/** Every later one will do. */
const NEWER_MAJOR = 23;

// A reader that went away (`npm start | head`, a closed terminal) is no reason to stop half way.
process.stdout.on("error", () => undefined);
process.stderr.on("error", () => undefined);

/**
 * Installs and builds what is missing.
 * @param {{
 *   isDevWanted: boolean, say: (text: string) => void, target?: typeof PRODUCT, words?: string[],
 * }} options `words`: of a command that may run what is built (`standing.mjs`); others always build
 * @throws {SetupError}
 */
export async function prepare({ isDevWanted, say, target = PRODUCT, words }) {
  assertNode();
  assertOpenFiles();
  if (words !== undefined) {
    // All that most commands ask: it is looked at once.
    if (isInPlace({ isDevWanted, target })) return;
    if (await runsAsBuilt(words, say)) return;
  }
  await install({ isDevWanted, say });
  await build({ target, say });
}

/** Whether nothing has to be installed or built. */
export function isInPlace({ isDevWanted, target = PRODUCT }) {
  try {
    return missingPackages({ isDevWanted }).length === 0 && isBuilt(target);
  } catch {
    return false; // Half an update: who installs says what is wrong with it.
  }
}

/** Why the product does not run on a version of Node, null where it does. */
export function nodeFault(version) {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const lowest = LOWEST_MINORS.get(major) ?? Infinity;
  if (major >= NEWER_MAJOR || minor >= lowest) return null;
  return `Node 20.19, 22.12 or newer is needed; this is ${version}`;
}

/**
 * A Node that does not fit is told before anything of a newer one is asked of it.
 * @throws {SetupError}
 */
export function assertNode() {
  const fault = nodeFault(process.versions.node);
  if (fault !== null) throw new SetupError(fault);
}

/** Else a program ends with the first module that cannot be opened; Node has raised a soft limit by now. */
function assertOpenFiles() {
  let limits;
  try {
    limits = readFileSync("/proc/self/limits", "latin1");
  } catch {
    return; // Only Linux tells.
  }
  const allowed = /^Max open files +([0-9]+)/m.exec(limits)?.[1];
  if (allowed === undefined || Number(allowed) >= LEAST_OPEN_FILES) return;
  throw new SetupError(
    `a process may open only ${allowed} files here (ulimit -n), and ${LEAST_OPEN_FILES} are needed at least; ` +
      "allow 4096 or more",
  );
}
