/** The hot wallet that a command names. */
import { type Address, parseAddress } from "../../../chain/address.js";
import { CliError } from "../../errors.js";

/**
 * A wallet's address as typed; its label names it for people alone.
 * @throws USAGE
 */
export function readWalletAddress(text: string): Address {
  try {
    return parseAddress(text);
  } catch (cause) {
    const what = `"${text}" is no address of a hot wallet (0x and 40 hex digits)`;
    throw new CliError("USAGE", `${what}: see causeway wallets list.`, { cause });
  }
}
