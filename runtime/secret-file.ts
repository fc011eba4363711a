/** Key and password files: mode 600, written whole or not at all, never echoed. */
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { AppError, errorCode } from "../chain/errors.js";

/** Codes of faults with secret files. */
export type SecretFileErrorCode = "SECRET_FILE_UNREADABLE" | "SECRET_FILE_UNWRITABLE";

/** A secret file that cannot be read or written; the message names the file, never its content. */
export class SecretFileError extends AppError<SecretFileErrorCode> {}

/** No secret of ours comes near this size; a larger file is not one of them. */
const MAX_SECRET_BYTES = 65_536;

/**
 * Content of a secret file without surrounding white space.
 * @throws SECRET_FILE_UNREADABLE also when it is empty or larger than 64 KiB
 */
export function readSecretFile(path: string): string {
  let content: string;
  try {
    content = readFileSync(path, "utf8");
  } catch (cause) {
    throw new SecretFileError(
      "SECRET_FILE_UNREADABLE",
      `cannot read ${path} (${errorCode(cause)})`,
      { details: { path }, cause },
    );
  }
  const secret = content.trim();
  if (secret === "" || content.length > MAX_SECRET_BYTES) {
    throw new SecretFileError("SECRET_FILE_UNREADABLE", `${path} holds no usable value`, {
      details: { path },
    });
  }
  return secret;
}

/**
 * Writes a new secret file durably (mode 600, newline added) and never replaces an existing one.
 * @returns false when the file was there already; its content is then untouched
 * @throws SECRET_FILE_UNWRITABLE
 */
export function writeNewSecretFile(path: string, secret: string): boolean {
  const draft = `${path}.${process.pid}.new`;
  try {
    rmSync(draft, { force: true });
    const handle = openSync(draft, "wx", 0o600);
    try {
      writeSync(handle, `${secret}\n`);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    // A hard link fails when the target exists, so two starts at once cannot overwrite a key.
    linkSync(draft, path);
    syncFolder(dirname(path));
    return true;
  } catch (cause) {
    if (errorCode(cause) === "EEXIST") {
      return false;
    }
    throw new SecretFileError(
      "SECRET_FILE_UNWRITABLE",
      `cannot write ${path} (${errorCode(cause)})`,
      { details: { path }, cause },
    );
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Makes a new folder entry durable; file systems that cannot sync folders need no help. */
function syncFolder(path: string): void {
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } catch (error) {
    if (!["EINVAL", "EPERM", "ENOTSUP"].includes(errorCode(error))) {
      throw error;
    }
  } finally {
    closeSync(handle);
  }
}
