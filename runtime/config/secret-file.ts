/** Key and password files: mode 600, written whole or not at all, never echoed. */
import { readFileSync } from "node:fs";
import { AppError, errorCode } from "../../chain/errors.js";
import { createFileOnce, SECRET_MODE } from "../files/durable-file.js";

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
  return readContent(path).trim();
}

/**
 * The passphrase in a file.
 * @throws SECRET_FILE_UNREADABLE also when the file is blank or larger than 64 KiB
 */
export function readPassphraseFile(path: string): string {
  return passphraseOf(readContent(path));
}

/** The passphrase that a file's text holds: blanks are part of it, line ends around it are not. */
export function passphraseOf(content: string): string {
  return content.replace(/^[\r\n]+/, "").replace(/[\r\n]+$/, "");
}

function readContent(path: string): string {
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
  if (content.trim() === "" || content.length > MAX_SECRET_BYTES) {
    throw new SecretFileError("SECRET_FILE_UNREADABLE", `${path} holds no usable value`, {
      details: { path },
    });
  }
  return content;
}

/**
 * The API key in a file: what a header `Authorization: Bearer <key>` can carry.
 * @throws SECRET_FILE_UNREADABLE also for a key that no client could send, and so nobody could use
 */
export function readApiKeyFile(path: string): string {
  const key = readSecretFile(path);
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new SecretFileError(
    "SECRET_FILE_UNREADABLE",
    `${path} holds no API key: it is one line of printable ASCII without white space`,
    { details: { path } },
  );
}

/**
 * Writes a new secret file durably (mode 600, newline added) and never replaces an existing one.
 * @returns false when the file was there already; its content is then untouched
 * @throws SECRET_FILE_UNWRITABLE
 */
export function writeNewSecretFile(path: string, secret: string): boolean {
  try {
    return createFileOnce(path, `${secret}\n`, SECRET_MODE);
  } catch (cause) {
    throw new SecretFileError(
      "SECRET_FILE_UNWRITABLE",
      `cannot write ${path} (${errorCode(cause)})`,
      { details: { path }, cause },
    );
  }
}
