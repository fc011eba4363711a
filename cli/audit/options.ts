/** Values of the command line that several audits take. */
import { existsSync } from "node:fs";
import { type Address, parseAnyAddress, parseStrictAddress } from "../../chain/address.js";
import { type Hash32, type Height, parseHash32 } from "../../chain/hex.js";
import { type Genesis, loadGenesis } from "../../node/settings/genesis.js";
import { homePaths } from "../home/home.js";
import { AuditError } from "./errors.js";

/** A height. Throws BAD_OPTION. */
export function readHeightOption(name: string, text: string): Height {
  const value = /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(value)) throw badOption(name, text);
  return value;
}

/** An http or https URL. Throws BAD_OPTION. */
export function readUrlOption(name: string, text: string): string {
  const isHttp = URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
  if (!isHttp) throw badOption(name, text);
  return text;
}

/** A hash of 32 bytes. Throws BAD_OPTION. */
export function readHashOption(name: string, text: string): Hash32 {
  try {
    return parseHash32(text);
  } catch {
    throw badOption(name, text);
  }
}

/** An address in either form. Throws BAD_OPTION. */
export function readAddressOption(name: string, text: string): Address {
  try {
    return parseAnyAddress(text, { parseHex: parseStrictAddress });
  } catch {
    throw badOption(name, text);
  }
}

/**
 * The genesis of the file that is named, else of the home. Throws BAD_OPTION where none is named and
 * the home has none, as one on somebody's node; GENESIS_INVALID.
 */
export function readGenesisOption(file: string | undefined, home: string): Genesis {
  const path = file ?? homePaths(home).genesis;
  if (file === undefined && !existsSync(path)) {
    const message = `There is no genesis in ${home}: name the chain's with --genesis FILE.`;
    throw new AuditError("BAD_OPTION", message);
  }
  return loadGenesis(path);
}

/** BAD_OPTION that names option and value. */
export function badOption(name: string, text: string): AuditError {
  return new AuditError("BAD_OPTION", `${name} does not take "${text}"; see --help.`);
}
