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

/** What a user may be kept from who did not make the clone: nothing is written where all is in place. */
const OWNER_REMEDY =
  "packages or build are missing, or of older sources: make the clone writable, or type `npm run build` " +
  "once as its owner";

/** Causes of file system faults in words, with what to do about them. */
const CAUSES = {
  EROFS: `read-only file system; ${OWNER_REMEDY}`,
  EACCES: `permission denied; ${OWNER_REMEDY}`,
  ENOSPC: "disk full",
  EDQUOT: "disk quota used up",
};

/** A read-only or full clone is the likely cause of a file system fault here. */
function folderFault(error) {
  const cause = CAUSES[error.code];
  return cause === undefined ? (error.stack ?? String(error)) : `${error.path ?? ""}: ${cause}`;
}
