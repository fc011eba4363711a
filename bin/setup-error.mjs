/** How installing and building fail: in one sentence. */

/** A failure whose message is all that the reader needs. */
export class SetupError extends Error {}

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
