/** The hot wallet's address from its keystore file. */
import { readFileSync } from "node:fs";
import type { Address } from "../../chain/address.js";
import { errorCode } from "../../chain/errors.js";
import { keystoreAddress } from "../../chain/signing/keystore.js";
import { LedgerError } from "../errors.js";

/**
 * Address that a keystore file states; its encrypted key is not touched.
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
    return keystoreAddress(content);
  } catch (cause) {
    const message = `${path} is not a keystore with an address`;
    throw new LedgerError("INVALID_WALLET_FILE", message, { cause });
  }
}
