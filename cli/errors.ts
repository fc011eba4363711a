/** Faults of the command line and the kit, and the one sentence that a person reads about each. */
import { dirname } from "node:path";
import { AppError, errorMessage } from "../chain/errors.js";
import { NodeFault } from "../rpc-client/errors.js";

/** Codes of faults in `cli/`. */
export type CliErrorCode =
  | "HOME_LOCKED"
  | "HOME_LOST"
  | "HOME_UNUSABLE"
  | "HOME_EXISTS"
  | "HOME_INCOMPLETE"
  | "HOME_ORPHANS"
  | "PORT_TAKEN"
  | "SERVICE_UNREACHABLE"
  | "SERVICE_REFUSES"
  | "NODE_FOREIGN"
  | "NODE_UNFIT"
  | "CONFIG_INVALID"
  | "CHILD_FAILED"
  | "CLIENT_FAILED"
  | "STEP_FAILED"
  | "NOT_TRUE"
  | "NOTHING_COMPARED"
  | "OUTPUT_LOST"
  | "RELEASE_UNFIT"
  | "USAGE";

/** Causes of failed file operations in words; other codes are shown as they are. */
const FILE_CAUSES: Readonly<Record<string, string>> = {
  ENOSPC: "there is no space left on its disk",
  EDQUOT: "the disk quota is used up",
  EROFS: "its file system is read-only",
  EACCES: "permission is denied to this user",
  EPERM: "the operation is not permitted for this user",
  EEXIST: "a file of that name is there",
  ENOENT: "no such file or folder",
  EISDIR: "it is a folder and has to be a file",
  ENOTDIR: "a part of the path is not a folder",
  EMFILE: "too many files are open",
  EIO: "the disk reports an input/output error",
};

/** What to do where the database knows the user or the password of a home no better than a stranger's. */
const LOGIN_REMEDY =
  "Another home's kit may have this port: check --home and --port-offset, or what DATABASE_URL names.";

/** A fault whose message is the complete sentence for the person at the terminal. */
export class CliError extends AppError<CliErrorCode> {}

/** `code` of a failed system call, "UNKNOWN" for anything else; any realm's errors count. */
export function systemCode(error: unknown): string {
  const isCoded = typeof error === "object" && error !== null && "code" in error;
  return isCoded && typeof error.code === "string" ? error.code : "UNKNOWN";
}

/** Words for why a file operation failed. */
export function fileCause(error: unknown): string {
  const code = systemCode(error);
  return FILE_CAUSES[code] ?? (code === "UNKNOWN" ? errorMessage(error) : code);
}

/** HOME_UNUSABLE naming the folder and the cause of a failed write to `path`. */
export function cannotWrite(path: string, cause: unknown): CliError {
  const message = `Cannot write ${path} in the folder ${dirname(path)}: ${fileCause(cause)}.`;
  return new CliError("HOME_UNUSABLE", message, { cause, retriable: true });
}

/** What a person does where nobody listens at a node's address. */
export const SILENT_NODE_REMEDY = "Start the kit, or the node that the settings name.";

/**
 * The sentence for any thrown value; coded errors carry it, others are named as unexpected.
 * @param silentRemedy what to do where nobody listens
 */
export function sentenceOf(error: unknown, silentRemedy = SILENT_NODE_REMEDY): string {
  if (error instanceof NodeFault && error.code === "NODE_UNREACHABLE") {
    const { reason } = error.details;
    return `${error.message} (${String(reason)}). ${silentRemedy}`;
  }
  if (error instanceof AppError) {
    return isRefusedLogin(error) ? `${error.message}. ${LOGIN_REMEDY}` : error.message;
  }
  // A person's own doing, such as Ctrl-C.
  if (Reflect.get(Object(error), "name") === "AbortError") return `${errorMessage(error)}.`;
  if (systemCode(error) in FILE_CAUSES && error instanceof Error && "path" in error) {
    return `Cannot use ${String(error.path)}: ${fileCause(error)}.`;
  }
  return `Unexpected fault: ${errorMessage(error)}`;
}

/** Whether a database server refused user or password (SQLSTATE class 28). */
function isRefusedLogin({ details }: AppError): boolean {
  return typeof details["sqlState"] === "string" && details["sqlState"].startsWith("28");
}
