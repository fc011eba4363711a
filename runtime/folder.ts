/** Folders that a process needs. */
import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { AppError, errorCode, errorMessage } from "../chain/errors.js";

/** A folder is not there and cannot be made; the message names it and the cause. */
export class FolderError extends AppError<"FOLDER_UNUSABLE"> {}

/**
 * Makes a folder, and those above it, where they are missing; only the owner may enter. Step by
 * step, because Node's recursive mkdir calls a read-only file system ENOENT, and never returns
 * where a file system itself refuses with ENOENT, such as /proc.
 * @throws FOLDER_UNUSABLE
 */
export function ensureFolder(folder: string): void {
  if (existsSync(folder)) return;
  if (dirname(folder) !== folder) ensureFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (cause) {
    if (errorCode(cause) === "EEXIST") return;
    const message = `cannot create the folder ${folder}: ${errorMessage(cause)}`;
    throw new FolderError("FOLDER_UNUSABLE", message, { cause, details: { folder } });
  }
}
