/** `<home>/config/tokens.json`: the pinned ERC-20 tokens of a home, as settings are read. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { errorCode } from "../../chain/errors.js";
import { parseTokenList, type TokenEntry, TokenListError } from "../../chain/token-list.js";
import { ConfigError } from "./config.js";

/** Path of the list. */
export function tokenFile(home: string): string {
  return join(home, "config", "tokens.json");
}

/**
 * The tokens in the order of the file; a home without the file has none.
 * @throws ConfigError with every fault of the list
 */
export function loadTokenFile(home: string): TokenEntry[] {
  const file = tokenFile(home);
  try {
    return parseTokenList(readFileSync(file, "utf8"));
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [];
    if (error instanceof TokenListError) {
      throw new ConfigError(error.faults.map((fault) => ({ file, ...fault })));
    }
    const allowed = "a file that this process can read";
    throw new ConfigError([{ file, key: "(whole file)", value: errorCode(error), allowed }]);
  }
}
