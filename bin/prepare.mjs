/** What every command needs first: a fitting Node, the packages, a build of the present sources. */
import { PRODUCT, build } from "./build.mjs";
import { SetupError, install } from "./install.mjs";

/** Lowest version of Node, as in package.json's engines. */
const MINIMUM_NODE = [20, 19];

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

function assertNode() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major < MINIMUM_NODE[0] || (major === MINIMUM_NODE[0] && minor < MINIMUM_NODE[1])) {
    throw new SetupError(
      `Node ${MINIMUM_NODE.join(".")} or newer is needed; this is ${process.versions.node}`,
    );
  }
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
