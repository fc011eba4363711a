/** Faults of the embedded PostgreSQL as one sentence with folder or port and cause. */
import { AppError, errorCode, errorMessage } from "../../chain/errors.js";

/** Codes of faults of the embedded database server. */
export type EmbeddedPostgresErrorCode =
  | "UNSUPPORTED_PLATFORM"
  | "BINARIES_UNUSABLE"
  | "FOLDER_UNUSABLE"
  | "CLUSTER_MISSING"
  | "CLUSTER_SHARED"
  | "CLUSTER_VERSION"
  | "PORT_TAKEN"
  | "START_FAILED"
  | "SURVIVOR_STUCK";

/** The embedded server cannot be made, started or stopped; the message is fit for people. */
export class EmbeddedPostgresError extends AppError<EmbeddedPostgresErrorCode> {}

/** Words for the causes that people can do something about, by Node's codes. */
const CAUSES: Readonly<Record<string, string>> = {
  ENOSPC: "no space left on the device",
  EDQUOT: "the disk quota is used up",
  EROFS: "the file system is read-only",
  EACCES: "permission denied",
  EPERM: "the operation is not permitted",
  EIO: "the device reports an input/output error",
};

/** The same causes as PostgreSQL's programs write them. */
const OUTPUT_CAUSES: readonly (readonly [RegExp, string])[] = [
  // A write that fits in part sets no errno: PostgreSQL tells its length in place of the cause.
  [/No space left on device|wrote only \d+ of \d+ bytes/i, "ENOSPC"],
  [/Disk quota exceeded/i, "EDQUOT"],
  [/Read-only file system/i, "EROFS"],
  [/Permission denied/i, "EACCES"],
  [/Operation not permitted/i, "EPERM"],
  [/Input\/output error/i, "EIO"],
];

/** A folder that cannot be used, from a file system fault. */
export function folderError(folder: string, cause: unknown): EmbeddedPostgresError {
  if (cause instanceof EmbeddedPostgresError) {
    return cause;
  }
  const code = errorCode(cause);
  const reason = CAUSES[code] ?? errorMessage(cause);
  return new EmbeddedPostgresError(
    "FOLDER_UNUSABLE",
    `the database folder ${folder} cannot be used: ${reason}`,
    { details: { folder, cause: code }, cause, retriable: code === "ENOSPC" },
  );
}

/** Finds a known cause in a program's output, with what it is about; undefined when it tells none. */
export function folderErrorFromOutput(
  folder: string,
  output: string,
): EmbeddedPostgresError | undefined {
  const lines = output.split("\n");
  const found = OUTPUT_CAUSES.find(([pattern]) => lines.some((line) => pattern.test(line)));
  if (found === undefined) return undefined;
  const [pattern, code] = found;
  if (lines.every((line) => !pattern.test(line) || /shared memory segment/i.test(line))) {
    // Its files lie in memory, and are of another size: 64 MB in a container.
    const place = "the system's shared memory (/dev/shm) cannot be used by PostgreSQL";
    return new EmbeddedPostgresError("START_FAILED", `${place}: ${CAUSES[code] ?? code}`, {
      details: { cause: code },
    });
  }
  return new EmbeddedPostgresError(
    "FOLDER_UNUSABLE",
    `the database folder ${folder} cannot be used: ${CAUSES[code] ?? code}`,
    { details: { folder, cause: code }, retriable: code === "ENOSPC" },
  );
}
