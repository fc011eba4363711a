/** The secret of a home by which browsers are known again: made at the first login, kept beside the users. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { errorCode } from "../../chain/errors.js";
import { createFileOnce, SECRET_MODE } from "../../runtime/files/durable-file.js";
import { makeFolders } from "../../runtime/files/folder.js";
import { usersFolder } from "./user-files.js";

const KEY_BYTES = 32;

const CONTENT = /^([0-9a-f]{64})\n$/;

/**
 * The home's secret; made where there is none.
 * @returns undefined where the file is no such secret; throws the system's fault
 */
export function browserKey(home: string): Buffer | undefined {
  const file = join(usersFolder(home), "browsers.key");
  const found = contentOf(file);
  if (found !== undefined) return parse(found);
  makeFolders(usersFolder(home));
  const made = `${randomBytes(KEY_BYTES).toString("hex")}\n`;
  // Of two consoles that make one at the same time the second takes the first one's.
  return parse(createFileOnce(file, made, SECRET_MODE) ? made : (contentOf(file) ?? ""));
}

function contentOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

function parse(content: string): Buffer | undefined {
  const [, hex] = CONTENT.exec(content) ?? [];
  return hex === undefined ? undefined : Buffer.from(hex, "hex");
}
