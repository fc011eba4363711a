/** What every command needs first: a fitting Node, the packages, a build of the present sources. */
import { PRODUCT, build } from "./build.mjs";
import { SetupError, install } from "./install.mjs";

/**
 * Lowest minor version of Node by major one, as in package.json's engines: 21 and the first ones of
 * 22 lack what 20.19 has.
 */
const LOWEST_MINORS = new Map([
  [20, 19],
  [22, 12],
]);

/** Every later one will do. */
const NEWER_MAJOR = 23;

// A reader that went away (`npm start | head`, a closed terminal) is no reason to stop half way.
process.stdout.on("error", () => undefined);
process.stderr.on("error", () => undefined);

/**
 * Installs and builds what is missing.
 * @param {{isDevWanted: boolean, say: (text: string) => void, target?: typeof PRODUCT}} options
 * @throws {SetupError}
 */
export async function prepare({ isDevWanted, say, target = PRODUCT }) {
  assertNode();
  await install({ isDevWanted, say });
  await build({ target, say });
}

/** Runs a preparing step; a failure prints its sentence and ends the process with 1. */
export async function runSetup(work) {
  try {
    await work();
  } catch (error) {
    const sentence = error instanceof SetupError ? error.message : folderFault(error);
    console.error(`causeway: ${sentence}`);
    process.exit(1);
  }
}

/** Why the product does not run on a version of Node, null where it does. */
export function nodeFault(version) {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const lowest = LOWEST_MINORS.get(major) ?? Infinity;
  if (major >= NEWER_MAJOR || minor >= lowest) return null;
  return `Node 20.19, 22.12 or newer is needed; this is ${version}`;
}

function assertNode() {
  const fault = nodeFault(process.versions.node);
  if (fault !== null) throw new SetupError(fault);
}

/** A read-only or full clone is the likely cause of a file system fault here. */
function folderFault(error) {
  const causes = {
    EROFS: "read-only file system",
    EACCES: "permission denied",
    ENOSPC: "disk full",
  };
  const cause = causes[error.code];
  return cause === undefined ? (error.stack ?? String(error)) : `${error.path ?? ""}: ${cause}`;
}
