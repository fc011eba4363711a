/** The hot wallet's address from its keystore file; the encrypted key in it is not touched. */
import { readFileSync } from "node:fs";
import { type Address, parseAddress } from "../chain/address.js";
import { errorCode } from "../chain/errors.js";
import { LedgerError } from "./errors.js";

/**
 * Address of a keystore v3 file: its `address` field, with or without 0x.
 * @throws INVALID_WALLET_FILE
 */
export function readWalletAddress(path: string): Address {
  let content: string;
  try {
    content = readFileSync(path, "utf8");
  } catch (cause) {
    throw new LedgerError("INVALID_WALLET_FILE", `cannot read ${path} (${errorCode(cause)})`, {
      cause,
    });
  }
  try {
    const parsed: unknown = JSON.parse(content);
    const text: unknown =
      typeof parsed === "object" && parsed !== null ? Reflect.get(parsed, "address") : undefined;
    if (typeof text !== "string") throw new Error("no address");
    return parseAddress(text.startsWith("0x") ? text : `0x${text}`);
  } catch {
    // Without a cause: a parser's message could quote the file.
    throw new LedgerError("INVALID_WALLET_FILE", `${path} is not a keystore with an address`);
  }
}
