/** The key of a validator's operator: who owns its stake and speaks for it. */
import { readFile } from "node:fs/promises";
import type { Address } from "../../../chain/address.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { createFileOnce, SECRET_MODE } from "../home-file.js";
import type { HomePaths } from "../home.js";
import { createPrivateKey, encodeKeyFile, parseKeyFile } from "./wallet-keys.js";

/**
 * Makes `config/operator.key` where it is missing.
 * @returns the operator's account
 * @throws HOME_UNUSABLE naming folder and cause, HOME_INCOMPLETE for a file that is no key
 */
export async function createOperator({ operatorKey }: HomePaths): Promise<Address> {
  await createFileOnce(operatorKey, encodeKeyFile(createPrivateKey()), SECRET_MODE);
  return privateKeyToAddress(parseKeyFile(await readFile(operatorKey, "utf8"), operatorKey));
}
