/** TOML as settings see it: leaf values by dotted key, comments, and values shown to people. */
import { readFileSync } from "node:fs";
import { TomlError, parse as parseToml } from "smol-toml";
import { errorCode } from "../../chain/errors.js";

/** Leaf values of a file by dotted key, and what is wrong with the file as a whole. */
export interface TomlLeaves {
  readonly leaves: ReadonlyMap<string, unknown>;
  /** What the file should be, when it cannot be read; undefined when all is well. */
  readonly expected: string | undefined;
}

/** Reads a file; a missing one has no leaves. Whole numbers come as bigint. */
export function readTomlLeaves(path: string): TomlLeaves {
  const leaves = new Map<string, unknown>();
  try {
    collectLeaves(parseToml(readFileSync(path, "utf8"), { integersAsBigInt: true }), "", leaves);
    return { leaves, expected: undefined };
  } catch (error) {
    if (errorCode(error) === "ENOENT") {
      return { leaves, expected: undefined };
    }
    const isSyntax = error instanceof TomlError;
    const firstLine = isSyntax ? (error.message.split("\n")[0] ?? "") : "";
    return {
      leaves,
      expected: isSyntax
        ? `TOML; line ${error.line}: ${firstLine}`
        : `a readable file (${errorCode(error)})`,
    };
  }
}

/** "section.key", or "key" for the section "". */
export function joinKey(section: string, key: string): string {
  return section === "" ? key : `${section}.${key}`;
}

/** A raw value for a fault's line: short, one line, without what opens anything. */
export function showValue(raw: unknown): string {
  const text =
    typeof raw === "string" ? JSON.stringify(withoutAccess(raw)) : withoutAccess(String(raw));
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

/**
 * Texts without what URLs in them give away, also URLs that are none: user and password, and what
 * stands behind the host, as keys of access do. Behind `tcp:` stand node ids, which are public.
 */
export function withoutAccess(text: string): string {
  return text
    .replace(/(?<!tcp:)\/\/[^\s,"]*@/g, "//***@")
    .replace(/(?<!tcp:)(\/\/[^\s,"/?#]+[/?#])[^\s,"]+/g, "$1***")
    .replace(/(password\s*=\s*)[^\s,"]+/gi, "$1***");
}

/** Comment lines of at most 98 columns. */
export function wrapComment(text: string): string[] {
  return (text.match(/.{1,96}(?:\s|$)/g) ?? [text]).map((line) => `# ${line.trimEnd()}`);
}

function collectLeaves(table: object, prefix: string, leaves: Map<string, unknown>): void {
  for (const [key, value] of Object.entries(table)) {
    const dottedKey = joinKey(prefix, key);
    if (Object.prototype.toString.call(value) === "[object Object]") {
      collectLeaves(value, dottedKey, leaves);
    } else {
      leaves.set(dottedKey, value);
    }
  }
}
